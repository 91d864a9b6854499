// Package spend prices usage and keeps budgets.
package spend
