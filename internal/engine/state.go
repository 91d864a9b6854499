package engine

import (
	"math"
	"time"
)

// State is how a Sampler is doing, for people.
type State struct {
	Address    string  `json:"address"` // of the metrics, without what may be secret in it
	Configured Kind    `json:"configured"`
	Kind       Kind    `json:"engine,omitempty"` // as last read
	EveryMS    float64 `json:"every_ms"`
	// Working tells whether the last try succeeded; false before the first.
	Working     bool      `json:"working"`
	Failures    int64     `json:"failures_in_a_row"`
	LastSuccess time.Time `json:"last_success,omitzero"`
	LastFailure time.Time `json:"last_failure,omitzero"`
	// LastError is what failed at LastFailure, also when it works again.
	LastError string `json:"last_error,omitempty"`
	// TookMS is how long the last reading took.
	TookMS float64 `json:"took_ms,omitempty"`
	// Readings is how many readings are kept, since when Oldest says.
	Readings int       `json:"readings"`
	Oldest   time.Time `json:"oldest_reading,omitzero"`
	// Latest is the newest reading kept, also when it is no longer true: see
	// its time and Working.
	Latest *Gauges `json:"latest,omitempty"`
}

// State returns how the Sampler is doing.
func (s *Sampler) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	st.Working = st.Failures == 0 && !st.LastSuccess.IsZero()
	if st.Readings = len(s.readings); st.Readings > 0 {
		st.Oldest = s.readings[0].Time.UTC()
		g := *s.readings[st.Readings-1].Gauges
		st.Latest = &g
	}
	return st
}

// milliseconds are whole microseconds, which is all that a person reads.
func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Microsecond)) / 1000
}
