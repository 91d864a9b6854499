// Package spend prices usage and keeps budgets.
//
// Prices stand in a file that people keep, and costs are computed when somebody
// asks, from the ledger's sums: a corrected price corrects the past. All
// arithmetic is in whole numbers, so that the parts of a sum add up to it exactly.
// What has no price has no cost; it is never 0.
package spend
