package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The classes that every queue has. A Config may give them other weights.
const (
	Interactive = "interactive" // somebody reads along
	Completion  = "completion"  // code completion and the like: short and frequent
	Batch       = "batch"       // nobody waits for it
)

// DefaultClass is where calls go that name no class, or one that is unknown.
const DefaultClass = Interactive

// NoWaiting as Config.MaxWaiting refuses at once whatever does not fit.
const NoWaiting = -1

// The values that a zero field of Config stands for.
const (
	DefaultMaxWaiting = 1000
	DefaultMaxBytes   = 64 << 20
	DefaultMaxWait    = 30 * time.Second
)

const (
	maxClasses = 64      // they are labels of metrics, and every pick looks at each
	maxWeight  = 1 << 20 // keeps a class's share countable
	maxWaiting = 1 << 20
	maxMaxWait = 24 * time.Hour
)

// BuiltIn are the weights of the classes that every queue has. It is never changed.
var BuiltIn = map[string]int{Interactive: 16, Completion: 4, Batch: 1}

// Config says how much fits upstream and who may wait for it. The zero value
// caps nothing, so nobody ever waits.
type Config struct {
	// Calls caps the calls in flight upstream; 0 is no cap.
	Calls int64
	// Tokens caps the reserved tokens in flight, input and output together and
	// unweighted; 0 is no cap. A call that is larger than the cap runs alone.
	Tokens int64
	// MaxWaiting bounds the calls that wait. Default: 1000, which at 30 s of
	// waiting is already more than most pools can serve; NoWaiting refuses
	// whatever does not fit.
	MaxWaiting int
	// MaxPerClass bounds the waiting calls of one class. Default: three quarters
	// of MaxWaiting, so that a flood of batch calls cannot leave interactive
	// ones without a place to wait in, and a pool with one class loses little.
	MaxPerClass int
	// MaxPerKey bounds the waiting calls of one key, over all classes. Default:
	// a quarter of MaxWaiting, at least 1, so that it takes four greedy keys to
	// fill the queue, and a pool with one key still has a long one.
	MaxPerKey int
	// MaxBytes bounds the request bodies held by waiting calls. Default: 64 MiB.
	MaxBytes int64
	// MaxWait bounds the time that a call waits. It is the queue's own clock and
	// ends with admission: how long a call then runs is not the queue's concern.
	// Default: 30 s, at most 24 h.
	MaxWait time.Duration
	// Classes adds classes, and gives the three built-in ones other weights.
	Classes map[string]Class
	// Shed refuses calls that have lost their deadline or will: at the door when
	// the wait is predicted to outlast what the deadline leaves, and when their
	// turn comes too late. Default: off, nobody is refused for a deadline.
	Shed bool
}

// Class is one class of calls.
type Class struct {
	// Weight is the class's share of the service, in weighted tokens, against
	// other classes that wait: 1 … 1,048,576. 0 stands for the weight of a built-in
	// class (16, 4 and 1); other classes must state one.
	Weight int
}

// Validate returns an error that names the first field out of its range.
func (c Config) Validate() error {
	switch {
	case c.Calls < 0:
		return fmt.Errorf("queue: calls in flight %d: want 0 (no cap) or more", c.Calls)
	case c.Tokens < 0:
		return fmt.Errorf("queue: tokens in flight %d: want 0 (no cap) or more", c.Tokens)
	case c.MaxWaiting < NoWaiting || c.MaxWaiting > maxWaiting:
		return fmt.Errorf("queue: waiting calls %d: want 1 to %d, 0 for %d, or %d for no waiting", c.MaxWaiting, maxWaiting, DefaultMaxWaiting, NoWaiting)
	case c.MaxPerClass < 0:
		return fmt.Errorf("queue: waiting calls per class %d: want 1 or more, or 0 for three quarters of all", c.MaxPerClass)
	case c.MaxPerKey < 0:
		return fmt.Errorf("queue: waiting calls per key %d: want 1 or more, or 0 for a quarter of all", c.MaxPerKey)
	case c.MaxBytes < 0:
		return fmt.Errorf("queue: held bytes %d: want 1 or more, or 0 for %d", c.MaxBytes, DefaultMaxBytes)
	case c.MaxWait < 0 || c.MaxWait > maxMaxWait:
		return fmt.Errorf("queue: longest wait %v: want up to %v, or 0 for %v", c.MaxWait, maxMaxWait, DefaultMaxWait)
	}
	own := 0
	for _, name := range slices.Sorted(maps.Keys(c.Classes)) {
		weight, known := c.Classes[name].Weight, BuiltIn[name] != 0
		switch {
		case name == "":
			return fmt.Errorf("queue: a class has no name: give it one")
		case weight < 0 || weight > maxWeight:
			return fmt.Errorf("queue: class %q has weight %d: want 1 to %d", name, weight, maxWeight)
		case weight == 0 && !known:
			return fmt.Errorf("queue: class %q has no weight: state one (interactive has 16, completion 4, batch 1)", name)
		}
		if !known {
			own++
		}
	}
	if own > maxClasses-len(BuiltIn) {
		return fmt.Errorf("queue: %d classes: want at most %d, %d of them built in", own+len(BuiltIn), maxClasses, len(BuiltIn))
	}
	return nil
}

// filled returns c with its defaults and all its classes in place.
func (c Config) filled() Config {
	c.MaxWaiting = cmp.Or(c.MaxWaiting, DefaultMaxWaiting)
	c.MaxPerClass = cmp.Or(c.MaxPerClass, max(1, c.MaxWaiting-c.MaxWaiting/4))
	c.MaxPerKey = cmp.Or(c.MaxPerKey, max(1, c.MaxWaiting/4))
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	c.MaxWait = cmp.Or(c.MaxWait, DefaultMaxWait)
	classes := make(map[string]Class, len(BuiltIn)+len(c.Classes))
	for name, weight := range BuiltIn {
		classes[name] = Class{Weight: weight}
	}
	for name, class := range c.Classes {
		class.Weight = cmp.Or(class.Weight, BuiltIn[name])
		classes[name] = class
	}
	c.Classes = classes
	return c
}
