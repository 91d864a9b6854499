package keys

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/quantity"
)

// Bounds of the file, far above what people need, so that a mistake in whatever
// generates it cannot fill the memory.
const (
	maxFile   = 64 << 20 // bytes: about 200,000 keys
	maxAlias  = 64       // bytes of an alias or class
	maxOwner  = 256      // bytes
	maxHashes = 64       // of one key
	maxModels = 256      // patterns of one key
	maxModel  = 256      // bytes of a pattern

	minWeight, maxWeight = 0.001, 1000
	defaultWarn          = 0.8
)

// table is the compiled file: what Lookup reads. It does not change.
type table struct {
	keys    []*Key // in the order of the file
	entries []entry
	// first has, for the first 8 bytes of a digest, the place in entries of the
	// first entry with them; the others follow by next.
	first map[uint64]int32
}

// entry is one hash of one key.
type entry struct {
	digest [sha256.Size]byte
	key    *Key
	until  time.Time // when the hash or the key ends, whichever is earlier; zero is never
	next   int32     // place of the next entry whose digest begins alike; -1 is none
}

// Compiled checks the file and returns its keys, in its order, as a Store has
// them.
func (f *File) Compiled() ([]*Key, error) {
	t, err := compile(f)
	if err != nil {
		return nil, err
	}
	return t.keys, nil
}

// compile checks the file and makes its table.
func compile(f *File) (*table, error) {
	switch {
	case f.Version == 0:
		return nil, fmt.Errorf("version is missing; write \"version\": %d", Version)
	case f.Version != Version:
		return nil, fmt.Errorf("version is %d, and this program reads version %d; is the file of a newer one?", f.Version, Version)
	}
	t := &table{first: make(map[uint64]int32, len(f.Keys)), keys: make([]*Key, 0, len(f.Keys))}
	aliases := make(map[string]bool, len(f.Keys))
	locations := map[string]*time.Location{"": time.UTC}
	for i := range f.Keys {
		e := &f.Keys[i]
		if err := checkAlias(e.Alias); err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		if aliases[e.Alias] {
			return nil, fmt.Errorf("key %q comes twice; give one of them another alias", e.Alias)
		}
		aliases[e.Alias] = true
		key, err := e.key(locations)
		if err == nil {
			err = t.add(key, e.Hashes)
		}
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", e.Alias, err)
		}
	}
	return t, nil
}

// add takes a key and its hashes into the table.
func (t *table) add(key *Key, hashes []Hash) error {
	if len(hashes) == 0 {
		return errors.New("hashes is missing or empty, so that no key can match; remove the entry, or make its key with weir keys add")
	}
	if len(hashes) > maxHashes {
		return fmt.Errorf("%d hashes are more than %d; remove those that expired", len(hashes), maxHashes)
	}
	for i, h := range hashes {
		e := entry{key: key, until: key.Expires, next: -1}
		if n, err := hex.Decode(e.digest[:], []byte(cut(h.SHA256, 2*sha256.Size))); err != nil || n != sha256.Size || len(h.SHA256) != 2*sha256.Size {
			return fmt.Errorf("hashes[%d].sha256 is not a SHA-256, which has %d hexadecimal digits; it must never be the key itself", i, 2*sha256.Size)
		}
		if !h.Expires.IsZero() && (e.until.IsZero() || h.Expires.Before(e.until)) {
			e.until = h.Expires.Time
		}
		prefix := binary.NativeEndian.Uint64(e.digest[:8])
		if at, taken := t.first[prefix]; taken {
			for other := at; other >= 0; other = t.entries[other].next {
				if t.entries[other].digest == e.digest {
					return fmt.Errorf("hashes[%d] comes twice, before that in key %q; one key cannot be two callers", i, t.entries[other].key.Alias)
				}
			}
			e.next = at
		}
		t.first[prefix] = int32(len(t.entries))
		t.entries = append(t.entries, e)
	}
	t.keys = append(t.keys, key)
	return nil
}

func cut(s string, n int) string { return s[:min(n, len(s))] }

// key makes the Key of an entry; locations has the time zones loaded so far.
func (e *Entry) key(locations map[string]*time.Location) (*Key, error) {
	k := &Key{
		Alias: e.Alias, Owner: e.Owner, Class: e.Class, Weight: 1,
		Models: append([]string(nil), e.Models...), Expires: e.Expires.Time, Revoked: e.Revoked.Time, Bench: e.Bench,
		Limits: call.Limits{
			TokensPerMinute:       count(e.Limits.TokensPerMinute),
			InputTokensPerMinute:  count(e.Limits.InputTokensPerMinute),
			OutputTokensPerMinute: count(e.Limits.OutputTokensPerMinute),
			RequestsPerMinute:     count(e.Limits.RequestsPerMinute),
			Concurrency:           count(e.Limits.Concurrency),
			TokensInFlight:        count(e.Limits.TokensInFlight),
		},
	}
	if len(e.Owner) > maxOwner || !printable(e.Owner) {
		return nil, fmt.Errorf("owner is longer than %d bytes or has characters that cannot be printed", maxOwner)
	}
	if e.Class != "" && !isName(e.Class) {
		return nil, fmt.Errorf("class %s is not a name of 1 to %d of A–Z, a–z, 0–9, point, hyphen and underscore", shown(e.Class), maxAlias)
	}
	if len(e.Models) > maxModels {
		return nil, fmt.Errorf("%d models are more than %d; use patterns, like \"llama-*\"", len(e.Models), maxModels)
	}
	for i, pattern := range e.Models {
		if pattern == "" || len(pattern) > maxModel || !printable(pattern) {
			return nil, fmt.Errorf("models[%d] is empty, longer than %d bytes, or has characters that cannot be printed; write a name or a pattern, like \"llama-*\"", i, maxModel)
		}
	}
	if e.Weight != nil {
		if k.Weight = *e.Weight; !(k.Weight >= minWeight && k.Weight <= maxWeight) { // NaN is neither
			return nil, fmt.Errorf("weight %v is not from %v to %v; a key of weight 2 gets twice the share of one of weight 1", k.Weight, minWeight, maxWeight)
		}
	}
	if e.Budget != nil {
		var err error
		if k.Budget, err = e.Budget.budget(locations); err != nil {
			return nil, fmt.Errorf("budget: %w", err)
		}
	}
	return k, nil
}

func count(c *quantity.Count) call.Count {
	if c == nil {
		return call.Count{}
	}
	return call.Known(int64(*c))
}

func (e *EntryBudget) budget(locations map[string]*time.Location) (*Budget, error) {
	b := &Budget{Tokens: count(e.Tokens), Per: e.Per, Warn: defaultWarn}
	if b.Per == "" {
		b.Per = Monthly
	}
	if b.Per != Daily && b.Per != Monthly {
		return nil, fmt.Errorf("per is %s; possible are \"day\" and \"month\"", shown(string(b.Per)))
	}
	if e.Tokens == nil && e.Money == nil {
		return nil, errors.New("it has neither tokens nor money; write one of them, like \"tokens\": \"10M\"")
	}
	if e.Money != nil {
		if b.Money = *e.Money; !(b.Money > 0 && b.Money <= 1e15) {
			return nil, fmt.Errorf("money is %v and must be above 0 and at most 10¹⁵; leave it out for none", b.Money)
		}
	}
	if e.Warn != nil {
		if b.Warn = *e.Warn; !(b.Warn > 0 && b.Warn <= 1) {
			return nil, fmt.Errorf("warn is %v and must be above 0 and at most 1, the whole budget; leave it out for %v", b.Warn, defaultWarn)
		}
	}
	zone, loaded := locations[e.Zone]
	if !loaded {
		var err error
		// "Local" would be another zone on another machine.
		if zone, err = time.LoadLocation(e.Zone); err != nil || e.Zone == "Local" {
			return nil, fmt.Errorf("zone %s is not a time zone known here; write it like \"Europe/Berlin\"", shown(e.Zone))
		}
		locations[e.Zone] = zone
	}
	b.Zone = zone
	return b, nil
}

// printable tells whether s can be shown in a terminal as it is.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// isName tells whether s has the characters and the length of an alias.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_') {
			return false
		}
	}
	return s != "" && len(s) <= maxAlias
}

// checkAlias says what is wrong with an alias. An alias and the short id of a
// key without one share one namespace: the label of metrics, the column of the
// ledger, the field of logs. If an alias could look like an id, whoever edits the
// file could give one caller's past to another. And a key that was taken for an
// alias would be shown everywhere, so what begins like one is refused, and not
// repeated.
func checkAlias(alias string) error {
	switch {
	case alias == "":
		return errors.New("alias is missing; give the key a name, like \"team-a\"")
	case strings.HasPrefix(strings.ToLower(alias), "sk-"):
		return errors.New("this alias begins like a key (\"sk-\") and is not repeated here; give the key a name, like \"team-a\"")
	case !isName(alias):
		return fmt.Errorf("alias %s is not 1 to %d of A–Z, a–z, 0–9, point, hyphen and underscore; write it like \"team-a\"", shown(alias), maxAlias)
	case len(alias) == idLength && strings.Trim(alias, "abcdefghijklmnopqrstuvwxyz234567") == "":
		return fmt.Errorf("alias %q looks like the short id of a key without alias (10 of a–z and 2–7), and both stand in the same place in logs; choose another, like %q", alias, alias+"-1")
	}
	return nil
}
