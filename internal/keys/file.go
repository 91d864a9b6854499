package keys

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/quantity"
)

// Version is the version of the file's format that this package reads and writes.
const Version = 1

// File is the file of keys as people and programs edit it, a JSON document:
//
//	{
//	  "version": 1,
//	  "keys": [
//	    {
//	      "alias": "team-a",
//	      "owner": "Ada Lovelace, analytics",
//	      "hashes": [
//	        {
//	          "sha256": "8b5e0f0d1c5ee4c2f7a9a4f1f0b3d7d0a4a7c6f2b1e8d9c3a5f6e7d8c9b0a1f2",
//	          "created": "2026-11-02T09:30:00Z",
//	          "expires": "2026-11-09T09:30:00Z"
//	        }
//	      ],
//	      "limits": {
//	        "tokens_per_minute": "200k",
//	        "input_tokens_per_minute": "150k",
//	        "output_tokens_per_minute": "50k",
//	        "requests_per_minute": 600,
//	        "concurrency": 16,
//	        "tokens_in_flight": "64k"
//	      },
//	      "models": ["llama-*", "qwen3-8b"],
//	      "class": "batch",
//	      "weight": 2,
//	      "budget": {
//	        "tokens": "10M",
//	        "money": 25,
//	        "per": "month",
//	        "zone": "Europe/Berlin",
//	        "warn": 0.8
//	      },
//	      "expires": "2027-01-01",
//	      "revoked": "2026-12-24T18:00:00Z",
//	      "bench": true
//	    }
//	  ]
//	}
//
// Everything but version, alias and hashes may be left out; null is the same.
// A field that is not known, or comes twice, is an error, and so are an
// alias and a hash that come twice.
//
//   - alias: 1 to 64 of A–Z, a–z, 0–9, point, hyphen and underscore. It stands for
//     the key in logs and metrics, beside the short ids of keys that have no
//     alias; so it may not look like one (exactly 10 of a–z and 2–7), nor like a
//     key itself (a beginning of "sk-").
//   - owner: a text for people, at most 256 bytes.
//   - hashes: the key that counts, and for a while after a rotation the one
//     before it; at most 64. sha256 is the SHA-256 of the key in hex, as
//     `printf %s "$KEY" | sha256sum` prints it. created says when it was made, expires
//     when it ends; the key is a secret of at least 20 random characters.
//   - limits: whole numbers as people write them. One that is left out does not
//     apply; 0 admits nothing.
//   - models: patterns of model names in which * stands for any characters. Left
//     out or empty, all models are allowed.
//   - class: the service class, in the characters of an alias.
//   - weight: the share of a contended pool, from 0.001 to 1000; 1 when left out.
//   - budget: tokens, or money in the currency of the price table, or both, per
//     "day" or "month" (the default) of a time zone's calendar (UTC when left out).
//     From the share warn (0.8 when left out) on, a warning is due.
//   - expires: when all of the key ends. revoked: when it was revoked, and that
//     it was, whatever the time says. bench: leave the calls out of objectives.
//
// Times are as in RFC 3339, or a date alone, which is its midnight in UTC.
type File struct {
	Version int     `json:"version"`
	Keys    []Entry `json:"keys"`
}

// Entry is one key of the file; the fields are described at File.
type Entry struct {
	Alias   string       `json:"alias"`
	Owner   string       `json:"owner,omitempty"`
	Hashes  []Hash       `json:"hashes"`
	Limits  EntryLimits  `json:"limits,omitzero"`
	Models  []string     `json:"models,omitempty"`
	Class   string       `json:"class,omitempty"`
	Weight  *float64     `json:"weight,omitempty"`
	Budget  *EntryBudget `json:"budget,omitempty"`
	Expires Moment       `json:"expires,omitzero"`
	Revoked Moment       `json:"revoked,omitzero"`
	Bench   bool         `json:"bench,omitempty"`
}

// Hash is the hash of one key in the file.
type Hash struct {
	SHA256  string `json:"sha256"`
	Created Moment `json:"created,omitzero"`
	Expires Moment `json:"expires,omitzero"`
}

// EntryLimits are the limits of one key in the file; nil does not apply.
type EntryLimits struct {
	TokensPerMinute       *quantity.Count `json:"tokens_per_minute,omitempty"`
	InputTokensPerMinute  *quantity.Count `json:"input_tokens_per_minute,omitempty"`
	OutputTokensPerMinute *quantity.Count `json:"output_tokens_per_minute,omitempty"`
	RequestsPerMinute     *quantity.Count `json:"requests_per_minute,omitempty"`
	Concurrency           *quantity.Count `json:"concurrency,omitempty"`
	TokensInFlight        *quantity.Count `json:"tokens_in_flight,omitempty"`
}

// EntryBudget is the budget of one key in the file.
type EntryBudget struct {
	Tokens *quantity.Count `json:"tokens,omitempty"`
	Money  *float64        `json:"money,omitempty"`
	Per    Period          `json:"per,omitempty"`
	Zone   string          `json:"zone,omitempty"`
	Warn   *float64        `json:"warn,omitempty"`
}

// StatusAt tells how the key stands at a time: Revoked, Expired when the key
// itself or each of its hashes is, or Known.
func (e *Entry) StatusAt(now time.Time) Status {
	switch {
	case !e.Revoked.IsZero():
		return Revoked
	case e.Expires.over(now):
		return Expired
	}
	for _, h := range e.Hashes {
		if !h.Expires.over(now) {
			return Known
		}
	}
	return Expired
}

// Moment is a time in the file. It reads RFC 3339 and a date alone, and writes
// RFC 3339. The zero Moment is no time and is left out.
type Moment struct{ time.Time }

// ParseMoment reads a time as the file has it: RFC 3339 ("2027-01-01T00:00:00Z"),
// or a date alone ("2027-01-01"), which is its midnight in UTC. The result is in
// UTC, from the year 1970 to 9999.
func ParseMoment(text string) (Moment, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		t, err := time.Parse(layout, text)
		if t = t.UTC(); err == nil && t.Year() >= 1970 && t.Year() <= 9999 {
			return Moment{t}, nil
		}
	}
	return Moment{}, fmt.Errorf("%s is not a time; write it like 2027-01-01 or 2027-01-01T08:00:00Z", shown(text))
}

// over tells whether the moment, as the end of something, has come.
func (m Moment) over(now time.Time) bool { return !m.IsZero() && !now.Before(m.Time) }

// UnmarshalJSON reads a string as ParseMoment does; null leaves m as it was.
func (m *Moment) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if len(b) < 2 || b[0] != '"' {
		return errors.New("this is not a time; write it like \"2027-01-01\" or \"2027-01-01T08:00:00Z\"")
	}
	// No time has an escape in it, so there is nothing to decode.
	read, err := ParseMoment(string(b[1 : len(b)-1]))
	if err == nil {
		*m = read
	}
	return err
}

// shown quotes a text for an error, cut to 16 characters: a key that strayed
// into the wrong place does not reach a log whole.
func shown(text string) string {
	n := 0
	for i := range text {
		if n++; n > 16 {
			return fmt.Sprintf("%q…", text[:i])
		}
	}
	return fmt.Sprintf("%q", text)
}
