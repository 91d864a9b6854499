package diagnose

import "strings"

// wall is the kind of what refused a call in the gateway. The zero value is one of
// its limits.
type wall int

const (
	refusedByLimit wall = iota
	refusedByQueue
	refusedByKey
	refusedByModel
	refusedByBudget
	refusedByLedger
	refusedByPath
	refusedByMemory
	refusedByTime
)

// wallOf reads Record.RefusedBy: a word of its own for what is no limit, scope and
// dimension for a limit.
func wallOf(by string) wall {
	switch by {
	case "key":
		return refusedByKey
	case "model":
		return refusedByModel
	case "budget":
		return refusedByBudget
	case "ledger":
		return refusedByLedger
	case "path":
		return refusedByPath
	case "memory":
		return refusedByMemory
	case "site timeout":
		return refusedByTime
	}
	if by == "queue" || strings.HasPrefix(by, "queue ") {
		return refusedByQueue
	}
	return refusedByLimit
}

// walls say what each kind of refusal is, and what to do.
var walls = [...]struct{ subject, next string }{
	refusedByLimit: {"Refused by a limit of the gateway",
		"If these calls should have passed, raise the limit that is named; else have the clients send less, or wait for the time that Retry-After says."},
	refusedByQueue: {"Refused by the gateway's queue",
		"See what holds the calls that run (engine, limits): add replicas, or raise the limits on concurrency or the queue's size if the engine has room; else have clients wait for the time that Retry-After says."},
	refusedByKey: {"Refused for want of a valid API key",
		"Give these clients a valid key: weir keys list shows which there are, and which have expired or were revoked. No limit is at work, and sending again does not help."},
	refusedByModel: {"Refused because the key may not use the model",
		"Allow the key this model (models of its entry in the keys file; weir keys list shows it), or have the client ask for one that it may use."},
	refusedByBudget: {"Refused because the key's budget is spent",
		"Raise the key's budget (its entry in the keys file), or have the client wait for the next period; weir usage shows what was spent."},
	refusedByLedger: {"Refused because usage could not be recorded",
		"See why the ledger cannot write: GET /weir/ledger and the gateway's log say it; often the disk is full, or not the gateway's to write to."},
	refusedByPath: {"Refused because the path is not open",
		"If clients need this path, add it to allow_paths (under require_key); else correct the clients' base URL, or leave it closed to those that only look around."},
	refusedByMemory: {"Refused because the gateway held as many request bodies as it may",
		"See what makes requests so large or so slow to come, and spread the load over more gateways; clients may send again."},
	refusedByTime: {"Refused because the site's own time for a request was over while the call waited",
		"Give the site more time for a request, or have calls wait less: add replicas, or raise the limits on concurrency if the engine has room."},
}
