package alert

import (
	"context"
	"errors"
	"time"
)

// Receiver is somebody to tell.
type Receiver interface {
	// Name is what State and Report call it. It holds no secret, and it is what makes a
	// receiver the same one after a reload, for those that are not of this package.
	Name() string
	// Send tells a batch; a batch that failed is told again, as it stands by then. An error
	// made by Permanent is not tried again. It is called from one goroutine, returns
	// soon when ctx is done, and its errors hold no secret.
	Send(ctx context.Context, batch Batch) error
}

// Batch is what a receiver is told at once, the most important alert first.
type Batch struct {
	// At is when it was made.
	At     time.Time
	Alerts []Alert
}

// Permanent marks an error that another try cannot mend.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err: err, permanent: true}
}

// failure is an error with what to do next.
type failure struct {
	err       error
	permanent bool
	after     time.Duration // do not try again before; 0 is not told
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// permanent tells whether another try is useless.
func permanent(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.permanent
}

// manners are how a receiver wants to be told.
type manners struct {
	// identity is what makes a receiver the same one after a reload.
	identity string
	// again is how often a firing alert is told once more; 0 is never.
	again time.Duration
	// most is how many alerts a batch has at most.
	most int
	// close lets go of connections; it may be nil.
	close func()
}

// mannersOf asks a receiver of this package, and knows what others want.
func mannersOf(r Receiver) manners {
	if own, ok := r.(interface{ manners() manners }); ok {
		return own.manners()
	}
	return manners{identity: "name " + r.Name(), most: maxBatch}
}

// maxBatch is how many alerts are told at once: some 200 KB of JSON.
const maxBatch = 64

// Func makes a receiver of a function, which is called for one alert at a time when it
// begins and when it ends. After a reload the function of the same name takes over where
// the one before was.
func Func(name string, tell func(context.Context, Alert) error) Receiver {
	return &function{name, tell}
}

type function struct {
	name string
	tell func(context.Context, Alert) error
}

func (f *function) Name() string { return f.name }

// manners: one at a time, so that one alert that fails does not repeat another.
func (f *function) manners() manners { return manners{identity: "func " + f.name, most: 1} }

func (f *function) Send(ctx context.Context, batch Batch) error {
	for _, a := range batch.Alerts {
		if err := f.tell(ctx, a); err != nil {
			return err
		}
	}
	return nil
}
