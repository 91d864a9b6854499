package caddymodule

import (
	"fmt"

	"go.uber.org/zap"
)

// announce says once what is in force, so that whoever reads the log knows.
func (a *App) announce() {
	fields := make([]zap.Field, 0, 4)
	if a.keys != nil {
		fields = append(fields, zap.String("keys_file", a.Keys.File), zap.Int("keys", a.keys.State().Keys))
	}
	if a.Ledger != nil {
		fields = append(fields, zap.String("ledger", a.Ledger.Path))
	}
	for name, w := range a.wanted {
		if w.limited {
			fields = append(fields, zap.String("pool_"+name, fmt.Sprintf("%d limits, mode %s", len(w.policy.Rules), w.policy.Mode)))
		}
	}
	if len(fields) > 0 {
		a.log.Info("in force", fields...)
	}
	a.warnOfKeys()
}

// warnOfKeys tells of keys with classes that nothing judges, and with budgets in money
// that can never run out.
func (a *App) warnOfKeys() {
	if a.keys == nil {
		return
	}
	for _, k := range a.keys.All() {
		a.warnOfClass(a.log, k.Class, zap.String("key", k.Alias))
		if a.prices == nil && k.Budget != nil && k.Budget.Money > 0 {
			a.log.Warn("a key has a budget in money, and there are no prices, so it never runs out; add the global option: weir { prices prices.json }",
				zap.String("key", k.Alias))
		}
	}
}
