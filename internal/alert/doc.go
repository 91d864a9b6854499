// Package alert tells people, once and reliably.
//
// A Manager is shown how all objectives stand, again and again, and keeps one alert for
// each class, objective, model and severity. An alert fires at once: a page must not
// wait. It ends when its condition has been away for a while, so that one that comes
// and goes is one alert.
//
// What a receiver has to be told is not a queue of messages but a difference: that
// between how an alert stands and what the receiver was told of it last. So what waits is
// bounded by the number of alerts, a receiver that was away for an hour gets what holds
// now and not what held then, and an end is owed until it was delivered. Each receiver has
// a goroutine of its own; a slow one holds up none of the others, and none of them holds up
// Observe.
//
// A Keeper keeps all of it for the next process, with what each receiver was told, so that
// an alert goes on over a restart, and a receiver that opened an incident hears of its end.
// What there is to tell is written before it is told, as far as the disk is quick.
//
// The addresses and headers of receivers are secrets: neither errors nor State show
// more than scheme and host.
package alert
