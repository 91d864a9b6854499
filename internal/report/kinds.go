package report

import "github.com/weirgate/weir/internal/endpoint"

// failureKind is a kind of failure, and what to tell people of it.
type failureKind struct {
	kind    endpoint.Kind
	meaning string
}

// kinds are all the kinds of failure, in the order of their definition.
var kinds = []failureKind{
	{endpoint.FailedDNS, "the host's name does not resolve"},
	{endpoint.FailedConnect, "connection refused, or host unreachable"},
	{endpoint.FailedTLS, "no TLS, or a certificate that does not hold"},
	{endpoint.FailedTimeout, "no end within the client's time-out"},
	{endpoint.FailedReset, "the connection broke before or within the answer"},
	{endpoint.FailedCancelled, "cancelled by this program"},
	{endpoint.FailedAuth, "status 401 or 403: the key is missing, wrong or not allowed"},
	{endpoint.FailedNotFound, "status 404 or 405: wrong base URL or model"},
	{endpoint.FailedLimit, "status 429: a limit refused it"},
	{endpoint.FailedRequest, "another status 4xx: the request was refused"},
	{endpoint.FailedServer, "status 5xx: the server failed"},
	{endpoint.FailedStream, "an error inside an answer with status 200"},
	{endpoint.FailedTruncated, "the answer has no proper end"},
	{endpoint.FailedShape, "an answer that is not the API's"},
	{endpoint.FailedEmpty, "an answer without any output"},
}

// meaning says in words what a kind of failure is.
func meaning(k endpoint.Kind) string {
	for _, one := range kinds {
		if one.kind == k {
			return one.meaning
		}
	}
	return unknown
}
