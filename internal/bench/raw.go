package bench

import (
	"encoding/json"
	"math"
	"strconv"
)

// RawCalls is how many calls of one load the Raw of its repeats hold together,
// some 800 KiB of JSON. Of more calls it is a uniform sample.
const RawCalls = 20_000

// Raw is what of the calls of one repeat is kept in the result itself, so that
// a later run can be held against it with nothing but that file. It holds
// measured calls that succeeded, in the order of their ends.
type Raw struct {
	// Of is how many such calls there were; the series hold all of them or,
	// when there were too many, a uniform sample.
	Of int `json:"of"`
	// Seconds are those of the repeat's Figures.
	Seconds float64 `json:"seconds"`
	// At is when each call was sent, since the first one, E2E how long it took.
	At   Series `json:"at_ms"`
	TTFT Series `json:"ttft_ms"`
	TPOT Series `json:"tpot_ms"`
	E2E  Series `json:"e2e_ms"`
	// Tokens are input and output tokens together, Output the output tokens.
	Tokens Series `json:"tokens"`
	Output Series `json:"output_tokens"`
}

// Series is a row of figures, one a call. NaN stands for one that is not known,
// and is null in JSON.
type Series []float32

// MarshalJSON writes an array of numbers and nulls.
func (s Series) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 8*len(s)+2)
	b = append(b, '[')
	for i, v := range s {
		if i > 0 {
			b = append(b, ',')
		}
		switch f := float64(v); {
		case math.IsNaN(f) || math.IsInf(f, 0):
			b = append(b, "null"...)
		default:
			b = strconv.AppendFloat(b, f, 'f', -1, 32)
		}
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads an array of numbers and nulls.
func (s *Series) UnmarshalJSON(b []byte) error {
	var all []*float32
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if all == nil {
		*s = nil
		return nil
	}
	*s = make(Series, len(all))
	for i, v := range all {
		if v == nil {
			(*s)[i] = float32(math.NaN())
		} else {
			(*s)[i] = *v
		}
	}
	return nil
}
