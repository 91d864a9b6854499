package slo

import (
	"fmt"
	"strings"
)

// Number is a figure of a call that an objective can be about.
type Number uint8

// The numbers, as the README defines them. Success and Goodput have no threshold.
const (
	TTFT         Number = iota // received to first token; streamed calls
	TTFTUpstream               // sent to first token; streamed calls
	TTFTVisible                // received to first token that is not reasoning
	TPOT                       // time per output token
	ICLMax                     // longest gap between two events with output
	E2E                        // received to ended
	Queue                      // gateway's queue and engine's queue together
	Prefill                    // the engine's prefill
	Network                    // round trip between client and gateway
	Success                    // whether the service kept its promise to answer
	Goodput                    // whether all other objectives of the class hold

	numNumbers
)

// Numbers is how many there are; arrays indexed by Number have this length.
const Numbers = int(numNumbers)

var numberNames = [Numbers]string{"ttft", "ttft_upstream", "ttft_visible", "tpot", "icl_max", "e2e", "queue", "prefill", "network", "success", "goodput"}

// String returns the name as configurations have it.
func (n Number) String() string {
	if int(n) >= Numbers {
		return fmt.Sprintf("number %d", uint8(n))
	}
	return numberNames[n]
}

// Timed tells whether the number is a time, which an objective sets a threshold for.
func (n Number) Timed() bool { return n < Success }

// ParseNumber reads a name.
func ParseNumber(name string) (Number, error) {
	for i, s := range numberNames {
		if s == name {
			return Number(i), nil
		}
	}
	return 0, fmt.Errorf("unknown number %.20q; use one of %s", name, strings.Join(numberNames[:], ", "))
}

// MarshalText writes the name.
func (n Number) MarshalText() ([]byte, error) {
	if int(n) >= Numbers {
		return nil, fmt.Errorf("write number: there is no number %d", uint8(n))
	}
	return []byte(numberNames[n]), nil
}

// UnmarshalText reads what MarshalText writes.
func (n *Number) UnmarshalText(b []byte) (err error) {
	*n, err = ParseNumber(string(b))
	return err
}
