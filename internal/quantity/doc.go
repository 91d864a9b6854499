// Package quantity reads counts, sizes and durations as people write them.
package quantity
