package ledger

import (
	"encoding/json"
	"math"

	"github.com/weirgate/weir/internal/call"
)

// appendSurroundings appends what engine and GPUs were doing: as one JSON text,
// since most of it is only ever looked at, and the energy by itself, since that
// is summed up.
func appendSurroundings(b []byte, rec *call.Record) []byte {
	s := &rec.Surroundings
	if s.AtDispatch.IsZero() && s.AtFirstToken.IsZero() && s.GPU.IsZero() && !s.QueueBound.IsKnown() {
		return b
	}
	text, err := json.Marshal(s)
	if err != nil || len(text) > maxSurroundings {
		return b // numbers and short words always marshal, and are short
	}
	b = appendText(b, colSurroundings, string(text))
	if joules, known := s.GPU.Joules.Get(); known && joules >= 0 && joules < math.MaxInt64/1e6 {
		b = appendWhole(b, colJoules, int64(math.Round(joules*1e6)))
	}
	return b
}

// maxSurroundings is the most bytes kept of that text: it takes some 600.
const maxSurroundings = 4096

// surroundingsOf reads what appendSurroundings wrote; nothing from what is not.
func surroundingsOf(text []byte) (s call.Surroundings) {
	if json.Unmarshal(text, &s) != nil {
		return call.Surroundings{}
	}
	return s
}
