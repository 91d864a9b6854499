// Package rules writes Prometheus rules, Alertmanager routes and a Grafana dashboard from the configured objectives.
//
// The rules judge the same counts as the gateway does, by the same windows, factors
// and budgets, and raise alerts of the same names and labels. They are for those who
// keep Prometheus anyway: they add up over several gateways, and they fire when no
// gateway is left to tell. Sums over all models of a class stand under the same names
// as the series of single models, and have no label model.
//
// What Prometheus cannot do is said in comments of the file, beside the rule.
package rules
