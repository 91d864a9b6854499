package workload

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestReadTrace(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		text string
		want []Row
	}{
		"raw data": {`{"run":"r","repeat":1,"index":0,"warmup":true,"start":"2026-01-02T15:04:00Z","at_ms":0,"input_tokens":5,"output_tokens":5}
{"run":"r","repeat":1,"index":1,"start":"2026-01-02T15:04:05.25Z","at_ms":9,"in_flight":1,"outcome":"completed","input_tokens":900,"cached_tokens":3,"output_tokens":120,"gaps_ms":[1.5,2]}
{"run":"r","repeat":2,"index":0,"start":"2026-01-02T15:05:05.25Z","at_ms":0,"outcome":"timeout"}
`, []Row{{0, 900, 120}, {60 * second, 0, 0}}},
		"offsets, not in order, no newline at the end": {`{"at_ms":1500.5,"input_tokens":2,"output_tokens":2}

{"at_ms":500.25,"input_tokens":1}`, []Row{{0, 1, 0}, {1000250 * time.Microsecond, 2, 2}}},
		"records": {`{"id":"a","time":"2026-01-02T15:04:05+01:00","input_tokens":7,"output_tokens":0}
{"id":"b","time":"2026-01-02T14:04:06Z","input_tokens":8,"output_tokens":9}`, []Row{{0, 7, 0}, {second, 8, 9}}},
		"access log": {`{"level":"info","ts":1767366246.7,"logger":"http.log.access","msg":"handled request","request":{"method":"POST","uri":"/v1/chat/completions","headers":{"X":["y"]}},"duration":1.5,"status":200,"weir":{"id":"x","time":"2026-01-02T15:04:05.1Z","model":"m","stream":true,"input_tokens":900,"output_tokens":120,"ttft_ms":85.2,"phases":{"prefill":80}}}
{"level":"info","ts":1767366246.7,"logger":"http.log.access","msg":"handled request","request":{"method":"GET","uri":"/"},"status":200}
{"level":"warn","ts":"2026/01/02","logger":"admin","msg":"x"}
{"level":"info","ts":1767366246.7,"request":{"method":"POST"},"weir":{"time":"2026-01-02T15:04:06.1Z","outcome":"refused"}}
`, []Row{{0, 900, 120}, {second, 0, 0}}},
		"Mooncake": {`{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46]}`, []Row{{0, 6955, 52}, {3053 * time.Millisecond, 6472, 26}}},
		"since 1970": {`{"timestamp": 1767366245125.5, "input_length": 1, "output_length": 2}
{"timestamp": 1767366245126, "input_length": 3, "output_length": 4}`, []Row{{0, 1, 2}, {500 * time.Microsecond, 3, 4}}},
		"one bad line of ten": {strings.Repeat(`{"at_ms":5}`+"\n", 9) + "not JSON", make([]Row, 9)},
	} {
		got, err := ReadTrace(strings.NewReader(c.text))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, %v\nwant %v", name, got, err, c.want)
		}
		if again, err := ReadTrace(iotest.OneByteReader(strings.NewReader(strings.ReplaceAll(c.text, "\n", "\r\n")))); err != nil || !reflect.DeepEqual(again, c.want) {
			t.Errorf("%s, byte by byte with returns: got %v, %v", name, again, err)
		}
		if len(got) > 0 {
			p := Plan{Arrivals: Arrivals{Shape: Replay}, Input: fixed, Trace: got}
			if err := p.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestReadTraceRefuses(t *testing.T) {
	long := `{"at_ms":1,"x":"` + strings.Repeat("secret", maxLine/6) + `"}`
	for name, c := range map[string]struct{ text, says string }{
		"empty":              {"", "it is empty"},
		"blank":              {"\n \n", "it is empty"},
		"text":               {"secret words\nsecret words", "2 of 2 lines are bad, the first is line 1: not a JSON object"},
		"an array":           {"\n[1]", "1 of 2 lines are bad, the first is line 2: not a JSON object"},
		"wrong type":         {`{"at_ms":"secret"}`, "not a JSON object of a known form"},
		"no time":            {`{"input_tokens":5}`, "no time of arrival"},
		"time far off":       {`{"at_ms":1e10}` + "\n" + `{"at_ms":1e300}`, "line 2: more than fifty years"},
		"date far off":       {`{"time":"2026-01-02T15:04:05Z"}` + "\n" + `{"time":"0001-01-02T15:04:05Z"}`, "line 2: more than fifty years"},
		"no date":            {`{"start":"secret"}`, "not a JSON object of a known form"},
		"mixed":              {`{"at_ms":1}` + "\n" + `{"start":"2026-01-02T15:04:05Z"}`, "line 2: its time is a date where others are offsets"},
		"mixed the other":    {`{"start":"2026-01-02T15:04:05Z"}` + "\n" + `{"timestamp":1}`, "line 2: its time is a date where others are offsets"},
		"negative":           {`{"at_ms":1,"input_tokens":-5}`, "no whole numbers"},
		"half a token":       {`{"at_ms":1,"output_tokens":1.5}`, "no whole numbers"},
		"too many tokens":    {`{"at_ms":1,"output_tokens":1e12}`, "no whole numbers"},
		"too long":           {long, "longer than 1048576 bytes"},
		"other logs":         {`{"level":"info","request":{}}` + "\n" + `{"logger":"admin"}`, "2 log lines, none with the object weir"},
		"weir without time":  {`{"request":{},"weir":{"id":"x"}}`, "no time of arrival"},
		"two bad in fifteen": {"x\nx\n" + strings.Repeat(`{"at_ms":5}`+"\n", 13), "too many bad lines: 2 of 15 lines are bad, the first is line 1"},
	} {
		rows, err := ReadTrace(strings.NewReader(c.text))
		if err == nil || rows != nil {
			t.Errorf("%s: read as %v", name, rows)
			continue
		}
		if !strings.HasPrefix(err.Error(), "read trace: ") || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	broken := errors.New("disk gone")
	if _, err := ReadTrace(io.MultiReader(strings.NewReader(`{"at_ms":1}`+"\n"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("a broken file: %v", err)
	}
	// The line after a long one is read as what it is.
	if rows, err := ReadTrace(strings.NewReader(long + "\n" + strings.Repeat(`{"at_ms":5}`+"\n", 9))); err != nil || len(rows) != 9 {
		t.Errorf("after a long line: %d rows, %v", len(rows), err)
	}
}

// endless repeats a line for ever.
type endless string

func (e endless) Read(p []byte) (int, error) { return copy(p, e), nil }

// TestReadTraceBound: a trace without end does not fill the memory.
func TestReadTraceBound(t *testing.T) {
	rows, err := readTrace(endless("{\"at_ms\":5}\n"), 10000)
	if err == nil || !strings.Contains(err.Error(), "more than 10000 calls") || rows != nil {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if rows, err := readTrace(strings.NewReader(strings.Repeat("{\"at_ms\":5}\n", 10)), 10); err != nil || len(rows) != 10 {
		t.Errorf("%d rows of 10, %v", len(rows), err)
	}
}

// FuzzReadTrace: whatever is read, rows are sorted from 0 on and can be replayed.
func FuzzReadTrace(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	for range 5 {
		fmt.Fprintf(&b, "{\"at_ms\":%v,\"input_tokens\":%d,\"output_tokens\":%d}\n", 1e4*rng.Float64(), rng.IntN(1000), rng.IntN(1000))
	}
	f.Add(b.String())
	f.Add(`{"start":"2026-01-02T15:04:05.25Z","input_tokens":1}` + "\n" + `{"time":"0001-01-02T15:04:05.25Z"}` + "\n" + `{"time":"9999-01-02T15:04:05.25Z"}`)
	f.Add(`{"ts":1,"request":{},"weir":{"time":"2026-01-02T15:04:05.1Z","input_tokens":900}}`)
	f.Add(`{"timestamp": 27482, "input_length": 6955, "output_length": 52}`)
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := ReadTrace(strings.NewReader(text))
		if (err == nil) != (len(rows) > 0) {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if err != nil {
			return
		}
		if rows[0].At != 0 {
			t.Errorf("the first row is at %v", rows[0].At)
		}
		p := Plan{Arrivals: Arrivals{Shape: Replay}, Input: fixed, Output: Length{Kind: KindTrace}, Trace: rows}
		s, err := New(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for item, ok := s.Next(); ok; item, ok = s.Next() {
			if item.Due < 0 || item.Output < 0 {
				t.Errorf("%+v", item)
			}
			n++
		}
		if n != len(rows) {
			t.Errorf("%d calls from %d rows", n, len(rows))
		}
	})
}
