// Package slo keeps objectives, error budgets and burn rates.
//
// An objective such as "TTFT p99 ≤ 2 s" says the same of a window as "at least
// 99 % of its calls have a TTFT of at most 2 s". So a Tracker keeps whole numbers: for
// each class, model, objective and minute how many calls were good, bad, and
// unknown. Compliance, budget and burn rate follow from these counts alone, and the
// counts of several replicas add up.
//
// A call is judged when it is decided, not when it ends: one without a first token
// is bad for a TTFT objective at the instant the threshold passes. The package
// never reads a clock; whoever uses it passes the time in.
package slo
