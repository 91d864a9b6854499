// Package quantity reads counts, sizes and durations as people write them.
//
// A count is "200k" or "1.5M", a size "64MiB" or "64MB", a duration "2s", "1d12h"
// or "2w". What is read is exact: text that does not stand for a whole number of
// units (calls or tokens, bytes, nanoseconds) within an int64 is an error and is
// never rounded. There is no sign, because none of these can be negative. Every
// formatter writes text that its reader reads back as the same number.
//
// Errors name an example, and quote at most 16 characters of what was given: a
// secret that strayed into the wrong place does not reach a log whole.
package quantity
