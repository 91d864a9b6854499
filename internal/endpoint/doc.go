// Package endpoint speaks to an inference endpoint as a client does.
//
// It finds out where below a base URL the API is, writes requests, sends one
// call and tells what came back and when. It is what a load test and a doctor
// have in common.
//
// ParseBase reads a base URL as people write it, Find asks the endpoint which
// of its readings is right, Ask.Body writes a request, and a Client sends it. A Client
// measures with the gateway's own meter and by its definitions, so that both
// sides of a call can be compared; beside that it tells, event by event, what
// the definitions of other tools go by. Whatever fails is called by a Kind, and
// no text of this package shows a key.
package endpoint
