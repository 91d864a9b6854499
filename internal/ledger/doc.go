// Package ledger keeps usage per key, durably.
package ledger
