package queue

// account counts the service of a class or a key, in cost divided by weight.
// served holds the calls that ended, pending the reservations of those in
// flight. Guarded by the queue's lock.
type account struct {
	served, pending float64
	inFlight        int
}

// counter is what the order goes by: the least is served next.
func (a *account) counter() float64 { return a.served + a.pending }

// lift raises who comes back from idling to the level of those being served.
func (a *account) lift(floor float64) { a.served = max(a.served, floor) }

func (a *account) begin(charge float64) {
	a.inFlight++
	a.pending += charge
}

func (a *account) end(charge float64) {
	a.inFlight--
	a.served += charge
	a.pending -= charge
	if a.inFlight == 0 {
		a.pending = 0 // without the dust of rounding
	}
}

// class is one class of calls and the keys that it knows. Guarded by the queue's lock.
type class struct {
	account
	name   string
	weight float64
	// retired is a class that the configuration has dropped; it goes with its last call.
	retired bool
	waiting int

	// floor is the level to which keys are lifted: the most that a key had been
	// served, calls in flight left out, when its turn came. It only rises, so
	// a key at rest at or below it is as good as one never seen.
	floor float64
	keys  map[string]*key
	// active holds the keys with waiting calls, the next in front; idle those
	// with none waiting or in flight, the least served in front.
	active, idle heap[*key]
	spare        []*key // to be used again

	size  mean
	tally tally
}

// key is one caller within one class. Guarded by the queue's lock.
type key struct {
	account
	name  string
	calls heap[*Slot] // waiting, the next in front
	at    int
}

const (
	// keptIdle idle keys are kept though they no longer matter: forgetting and
	// finding them again would cost more.
	keptIdle = 64
	// maxIdle is where idle keys are forgotten though they still matter, those
	// least ahead of others first. It takes that many keys of one class that were
	// served ahead of others and then went away, such as made-up ones.
	maxIdle = 4096
	// maxSpare and maxSpareCalls bound the memory kept to be used again.
	maxSpare      = 64
	maxSpareCalls = 64
)

func (k *key) place() *int { return &k.at }

func (k *key) before(other *key) bool {
	if a, b := k.counter(), other.counter(); a != b {
		return a < b
	}
	if k.calls.len() > 0 && other.calls.len() > 0 {
		return k.calls.first().before(other.calls.first())
	}
	return false
}

// key returns the caller of that name, awake: out of the idle ones, and lifted
// if none of its calls waits.
func (c *class) key(name string) *key {
	k := c.keys[name]
	switch {
	case k == nil:
		if n := len(c.spare); n > 0 {
			k, c.spare = c.spare[n-1], c.spare[:n-1]
		} else {
			k = new(key)
		}
		k.name = name
		c.keys[name] = k
	case k.idle():
		c.idle.remove(k)
	}
	if k.calls.len() == 0 {
		k.lift(c.floor)
	}
	return k
}

func (k *key) idle() bool { return k.inFlight == 0 && k.calls.len() == 0 }

// rest lays a key down whose last call is over, and forgets those at rest that
// do not matter any more.
func (c *class) rest(k *key) {
	c.idle.push(k)
	for n := c.idle.len(); n > keptIdle; n-- {
		least := c.idle.first()
		if least.served > c.floor && n <= maxIdle {
			return
		}
		c.idle.remove(least)
		delete(c.keys, least.name)
		if len(c.spare) < maxSpare {
			calls := least.calls
			if cap(calls.items) > maxSpareCalls {
				calls.items = nil
			}
			*least = key{calls: calls}
			c.spare = append(c.spare, least)
		}
	}
}

// ahead returns how many waiting calls of the class go before the next call of
// a key (nil for one that has none waiting): its own, and of every other key as
// many and one more.
func (c *class) ahead(k *key) (calls int) {
	own := 0
	if k != nil {
		own = k.calls.len()
	}
	for _, other := range c.active.items {
		if other != k {
			calls += min(other.calls.len(), own+1)
		}
	}
	return calls + own
}
