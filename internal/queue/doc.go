// Package queue orders the calls that wait for a slot.
//
// A Queue stands before one pool of upstreams and caps the calls and the
// reserved tokens in flight there. Who does not fit waits, within bounds, and
// is let in by the release that makes room: nothing polls, and no goroutine
// runs beside the callers' own.
//
// The order is that of three questions. Which class? The one that has had the
// least service for its weight (16:4:1 by default), so that none starves. Which
// key in it? The one that has had the least service for its weight, counted
// in tokens: a virtual token counter per key, after "Fairness in Serving Large
// Language Models" (Sheng et al., OSDI 2024). Which of its calls? The one with the earliest
// deadline, then the one that came first.
//
// Both levels count alike. A call is charged with its reservation when it is let in and
// with what it really used when it ends. Who was idle is lifted to the level
// of those being served, so that idling saves nothing up. The level is taken
// without the reservations still in flight, because a caller that reserves far
// more than it uses would otherwise be handed the difference at others' cost.
package queue
