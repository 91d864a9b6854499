package ledger

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/weirgate/weir/internal/call"
)

// The columns of usage_hours and usage_days that add up, in their order.
const (
	sumCalls = iota
	sumCompleted
	sumRefused
	sumInput
	sumOutput
	sumCached
	sumCacheWrite
	sumReasoning
	sumEstimatedInput
	sumEstimatedOutput
	numSums
)

var sums = [numSums]struct{ name string }{{"calls"}, {"completed"}, {"refused"}, {"input_tokens"}, {"output_tokens"}, {"cached_tokens"},
	{"cache_write_tokens"}, {"reasoning_tokens"}, {"estimated_input_tokens"}, {"estimated_output_tokens"}}

// sumGroups are the columns by which they are grouped, within the time.
var sumGroups = [...]string{"key", "model", "class", "upstream", "provenance"}

// rollUp adds up the new rows of a transaction by hour and sumGroups, and then
// adds what came of it to usage_hours and usage_days. A row's tokens are bounded
// by maxTokens, so that nothing overflows.
type rollUp struct {
	known   map[string]*hourSum // by id; kept for the next transactions
	touched []*hourSum          // those that have rows of this one
	id      []byte

	hours, days, newHours, newDays parameters
}

// hourSum is the sums of one group in one hour.
type hourSum struct {
	hour    int64 // seconds since 1970
	groups  [len(sumGroups)][]byte
	touched bool
	sums    [numSums]int64
}

// maxKnown is the most groups that are kept between transactions.
const maxKnown = 10_000

// reset forgets what has been added up.
func (u *rollUp) reset() {
	for _, s := range u.touched {
		s.sums, s.touched = [numSums]int64{}, false
	}
	u.touched = u.touched[:0]
	if u.known == nil || len(u.known) > maxKnown {
		u.known = make(map[string]*hourSum)
	}
}

// add takes a row that in has just added to calls.
func (u *rollUp) add(in *inserter, row int) {
	provenance := provenanceOf(in, row)
	s := u.group(in, row, provenance)
	if !s.touched {
		s.touched = true
		u.touched = append(u.touched, s)
	}
	s.sums[sumCalls]++
	switch call.Outcome(in.of(row, colOutcome).words()) {
	case call.Completed:
		s.sums[sumCompleted]++
	case call.Refused:
		s.sums[sumRefused]++
	}
	s.sums[sumInput] += in.of(row, colInput).or(0)
	s.sums[sumOutput] += in.of(row, colOutput).or(0)
	s.sums[sumCached] += in.of(row, colCached).or(0)
	s.sums[sumCacheWrite] += in.of(row, colCacheWrite).or(0)
	s.sums[sumReasoning] += in.of(row, colReasoning).or(0)
	if string(provenance) == string(provenanceEstimated) {
		s.sums[sumEstimatedInput] += in.of(row, colEstimatedInput).or(0)
		s.sums[sumEstimatedOutput] += in.of(row, colEstimatedOutput).or(0)
	}
}

// group returns the sums to which a row belongs.
func (u *rollUp) group(in *inserter, row int, provenance []byte) *hourSum {
	const nanos = int64(1e9)
	h := in.of(row, colTime).n / (hour * nanos) * hour
	texts := [len(sumGroups)][]byte{in.of(row, colKey).words(), in.of(row, colModel).words(), in.of(row, colClass).words(),
		in.of(row, colUpstream).words(), provenance}
	u.id = binary.BigEndian.AppendUint64(u.id[:0], uint64(h))
	for _, t := range texts {
		u.id = binary.AppendUvarint(u.id, uint64(len(t)))
		u.id = append(u.id, t...)
	}
	s := u.known[string(u.id)]
	if s == nil {
		s = &hourSum{hour: h}
		for i, t := range texts {
			s.groups[i] = append([]byte(nil), t...)
		}
		u.known[string(u.id)] = s
	}
	return s
}

// write adds what has been added up to the tables.
func (u *rollUp) write() error {
	for _, s := range u.touched {
		if err := s.write(&u.hours, &u.newHours, s.hour); err != nil {
			return err
		}
	}
	for _, s := range u.touched {
		if err := s.write(&u.days, &u.newDays, s.hour/day*day); err != nil {
			return err
		}
	}
	return nil
}

// write adds s to the row of its group and time, which may be the first to have it.
func (s *hourSum) write(update, insert *parameters, time int64) error {
	for _, p := range []*parameters{update, insert} {
		if err := s.bind(p, time); err != nil {
			return err
		}
		if err := p.stmt.Exec(); err != nil {
			return err
		}
		if p.stmt.Conn().Changes() > 0 {
			break
		}
	}
	return nil
}

func (s *hourSum) bind(p *parameters, time int64) error {
	if err := p.whole(1, time); err != nil {
		return err
	}
	for i, t := range s.groups {
		if err := p.text(2+i, t); err != nil {
			return err
		}
	}
	for i, n := range s.sums {
		if err := p.whole(2+len(s.groups)+i, n); err != nil {
			return err
		}
	}
	return nil
}

var (
	provenanceUnused    = []byte("unused")
	provenanceNone      = []byte("none")
	provenanceEstimated = []byte("estimated")
)

// provenanceOf is the column provenance of calls, as schema.sql defines it.
func provenanceOf(in *inserter, row int) []byte {
	source, outcome := in.of(row, colUsageSource).words(), call.Outcome(in.of(row, colOutcome).words())
	if call.UsageSource(source) != call.UsageNone {
		return source
	}
	status, attempts := in.of(row, colStatus), in.of(row, colAttempts)
	switch {
	case outcome == call.Refused,
		outcome == call.UpstreamError && status.or(0) >= 400,
		attempts.or(1) == 0 && status.or(400) >= 400:
		return provenanceUnused
	case in.of(row, colEstimatedInput).is == isNull && in.of(row, colEstimatedOutput).is == isNull:
		return provenanceNone
	}
	return provenanceEstimated
}

// addSumsSQL returns the UPDATE of a table's row, and newSumsSQL the INSERT of
// one. Their parameters are alike.
func addSumsSQL(table, time string) string {
	where, sets := []string{time + " = ?1"}, []string(nil)
	for i, g := range sumGroups {
		where = append(where, fmt.Sprintf("%s = ?%d", g, 2+i))
	}
	for i, s := range sums {
		sets = append(sets, fmt.Sprintf("%s = %s + ?%d", s.name, s.name, 2+len(sumGroups)+i))
	}
	return "UPDATE " + table + " SET " + strings.Join(sets, ", ") + " WHERE " + strings.Join(where, " AND ")
}

func newSumsSQL(table, time string) string {
	names, params := []string{time}, []string{"?1"}
	names = append(names, sumGroups[:]...)
	for _, s := range sums {
		names = append(names, s.name)
	}
	for i := range names[1:] {
		params = append(params, fmt.Sprint("?", 2+i))
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(params, ", ") + ")"
}
