package ledger

import (
	"log/slog"
	"sync"
	"time"
)

// logEvery is how often one message is logged at most. A disk that comes and
// goes would else write a log of its own.
const logEvery = 10 * time.Second

// logger logs changes of state from a goroutine of its own: whoever has
// something to say may hold the spill's lock, and the log may lie on the very
// disk that hangs. What does not fit between the two is left out.
type logger struct {
	to    *slog.Logger // nil logs nothing
	queue chan func()
	done  chan struct{}

	mu     sync.Mutex
	closed bool
	last   map[string]time.Time // when a message was last logged; there are a handful
}

func newLogger(to *slog.Logger) *logger {
	l := &logger{to: to, queue: make(chan func(), 16), done: make(chan struct{}), last: make(map[string]time.Time)}
	go func() {
		defer close(l.done)
		for say := range l.queue {
			say()
		}
	}()
	return l
}

// close lets the goroutine say what is left and waits for it, though not for a
// log that hangs.
func (l *logger) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.mu.Unlock()
	t := time.NewTimer(closeGrace)
	defer t.Stop()
	select {
	case <-l.done:
	case <-t.C:
	}
}

// warn says what is wrong, and hint what follows from it or what to do.
func (l *logger) warn(msg, hint string, args ...any) {
	l.say(msg, func() { l.to.Warn("ledger: "+msg, append(args, "hint", hint)...) })
}

func (l *logger) info(msg string, args ...any) {
	l.say(msg, func() { l.to.Info("ledger: "+msg, args...) })
}

func (l *logger) say(msg string, log func()) {
	if l.to == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if t, said := l.last[msg]; l.closed || said && now.Sub(t) < logEvery {
		return
	}
	select {
	case l.queue <- log:
		l.last[msg] = now
	default:
	}
}
