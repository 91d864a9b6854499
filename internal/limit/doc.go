// Package limit admits or refuses calls by rates and caps, and settles them.
//
// A [Pool] holds token buckets for rates and counts for caps. Each call takes from
// every bucket that applies to it, or from none: it reserves at admission what it is
// expected to cost, is charged while it streams once it passes that, and settles the
// difference at its end. The buckets are continuous: there is no window and so no
// window's edge.
//
// One mutex guards a pool, and the clock is read while it is held. Were the clock
// read before, goroutines would reach the buckets with their times out of order, and
// a bucket whose time runs back refills twice for the time between.
//
// With Σ over all calls and T the time since the start, each rate holds
//
//	Σ actual ≤ burst + rate·T + calls at once·(largest cost − its reservation)
//
// A call that costs more than it reserved leaves a debt, and a debt blocks the bucket
// until it is repaid: in the long run the rate is exact. The last term is 0 where no
// call costs more than it reserved.
package limit
