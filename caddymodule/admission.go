package caddymodule

import (
	"errors"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/limit"
)

// DefaultPool is the pool of directives that name none.
const DefaultPool = "default"

// defaultReaderTimeout is Handler.ReaderTimeout where limits are enforced.
const defaultReaderTimeout = 2 * time.Minute

// provisionAdmission makes what calls pass before they are sent, if the
// directive or the global options ask for anything.
func (h *Handler) provisionAdmission() error {
	a := h.app
	own := h.Limits != nil || h.Queue != nil
	name := h.Pool
	if name == "" {
		name = DefaultPool
	}
	// What is wrong with them Validate tells, which comes later.
	if own && h.validateAdmission() == nil {
		w := wanted{limited: true, queue: a.queueOf(h.Queue), policy: limit.Policy{Mode: limit.Enforce}}
		if err := w.queue.Validate(); err != nil {
			return err
		}
		if h.Limits != nil {
			w.policy = *h.Limits
		}
		if err := a.want(name, w); err != nil {
			return err
		}
	}
	// A directive without limits of its own joins a pool that it names.
	limited := own || h.Pool != ""
	if !limited && a.keys == nil && a.Ledger == nil {
		return nil
	}
	admission := &gateway.Admission{
		Keys: a.keys, Estimates: h.shared.rooms.estimates, DefaultOutput: h.DefaultOutputTokens,
		ReaderTimeout: time.Duration(h.ReaderTimeout), TTFT: h.Queue.objectives(),
	}
	if a.keys != nil {
		admission.Budgets = h.shared.rooms.budgets
	}
	if a.Ledger != nil {
		admission.Ledger = lateLedger{a}
	}
	if h.RequireKey != nil {
		admission.RequireKey, admission.AllowPaths = true, h.RequireKey.AllowPaths
	}
	if limited || a.keys != nil { // a key may bring limits of its own
		p, err := h.shared.rooms.pool(name)
		if err != nil {
			return err
		}
		admission.Limits = p.limits
		if !own {
			if err := a.want(name, wanted{policy: limit.Policy{Mode: limit.Enforce}}); err != nil {
				return err
			}
		}
		if h.Queue != nil || h.Pool != "" {
			admission.Queue = p.queue
		}
	}
	switch {
	case h.ReaderTimeout < 0: // off
		admission.ReaderTimeout = 0
	case h.ReaderTimeout == 0 && admission.Limits != nil && (h.Limits == nil || h.Limits.Mode == limit.Enforce):
		// Also where only keys are known: one of them may have a limit of its own.
		admission.ReaderTimeout = defaultReaderTimeout
	}
	h.options.Admission = admission
	return nil
}

func (h *Handler) validateAdmission() error {
	if h.RequireKey != nil && h.app.keys == nil {
		return errors.New("require_key needs to know the keys; add the global option: weir { keys keys.json }")
	}
	if h.DefaultOutputTokens < 0 {
		return errors.New("default_output_tokens cannot be negative")
	}
	if h.Limits != nil {
		if err := h.Limits.Validate(); err != nil {
			return err
		}
	}
	if err := h.Queue.validate(); err != nil {
		return err
	}
	return h.RequireKey.validate()
}

// lateLedger is the ledger of a configuration, which is opened when that begins
// to run and not when it is only checked.
type lateLedger struct{ app *App }

// Start implements gateway.Ledger.
func (l lateLedger) Start(s *ledger.Start) error {
	if open := l.app.ledger.Load(); open != nil {
		return open.Start(s)
	}
	return nil
}

// End implements gateway.Ledger.
func (l lateLedger) End(rec *call.Record) {
	if open := l.app.ledger.Load(); open != nil {
		open.End(rec)
	}
}

// Amend implements gateway.Ledger.
func (l lateLedger) Amend(a *call.Amendment) {
	if open := l.app.ledger.Load(); open != nil {
		open.Amend(a)
	}
}
