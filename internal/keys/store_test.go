package keys

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLookup(t *testing.T) {
	s, _ := opened(t, document(t,
		`"alias":"plain"`,
		`"alias":"expired","expires":"2026-11-02T12:00:00Z"`,
		`"alias":"expires","expires":"2026-11-02T12:00:01Z"`,
		`"alias":"revoked","revoked":"2026-01-01"`,
		`"alias":"revoked-later","revoked":"2030-01-01","expires":"2026-01-01"`,
		fmt.Sprintf(`"alias":"rotated","hashes":[{"sha256":"#","expires":"2026-11-02"},{"sha256":"%s","expires":"2026-11-03"},{"sha256":"%s"}]`, hashed(t, 100), hashed(t, 101)),
		`"alias":"hash-later","expires":"2026-11-02","hashes":[{"sha256":"#","expires":"2030-01-01"}]`,
	))
	if state := s.State(); state.Error != "" || state.Keys != 7 || !state.LoadedAt.Equal(noon) || !state.ErrorSince.IsZero() {
		t.Fatalf("%+v", state)
	}
	for _, c := range []struct {
		key   string
		alias string
		want  Status
	}{
		{"", "", Missing},
		{key(0), "plain", Known},
		{key(0) + " ", "", Unknown},
		{strings.ToUpper(key(0)), "", Unknown},
		{"plain", "", Unknown},
		{hashed(t, 0), "", Unknown}, // whoever reads the file cannot call with it
		{strings.Repeat("k", maxKey), "", Unknown},
		{strings.Repeat("k", 1<<20), "", Unknown},
		{key(1), "expired", Expired},
		{key(2), "expires", Known},
		{key(3), "revoked", Revoked},
		{key(4), "revoked-later", Revoked},
		{key(5), "rotated", Expired},
		{key(100), "rotated", Known},
		{key(101), "rotated", Known},
		{key(6), "hash-later", Expired},
		{key(7), "", Unknown},
	} {
		k, status := s.Lookup(c.key, noon)
		alias := ""
		if k != nil {
			alias = k.Alias
		}
		if status != c.want || alias != c.alias {
			t.Errorf("%.40q: %v of %q, want %v of %q", c.key, status, alias, c.want, c.alias)
		}
	}
	for at, want := range map[time.Duration]Status{0: Known, 12*time.Hour - 1: Known, 12 * time.Hour: Expired} {
		if _, status := s.Lookup(key(100), noon.Add(at)); status != want {
			t.Errorf("the old key after %v: %v", at, status)
		}
	}
	all := s.All()
	if len(all) != 7 || all[0].Alias != "plain" || all[6].Alias != "hash-later" {
		t.Errorf("all are %v", all)
	}
	all[0] = nil
	if s.All()[0] == nil {
		t.Error("the list is the store's own")
	}
}

// TestDigestsThatBeginAlike: the map has the first 8 bytes only.
func TestDigestsThatBeginAlike(t *testing.T) {
	sum := hashed(t, 0)
	var entries []string
	for i := range 20 {
		entries = append(entries, fmt.Sprintf(`"alias":"k%d","hashes":[{"sha256":"%s%048x"}]`, i, sum[:16], i))
	}
	entries = append(entries, fmt.Sprintf(`"alias":"real","hashes":[{"sha256":"%s"}]`, sum))
	_, table, err := parse([]byte(document(t, entries...)))
	if err != nil {
		t.Fatal(err)
	}
	if len(table.first) != 1 {
		t.Errorf("%d beginnings", len(table.first))
	}
	for i := range 20 {
		var digest [32]byte
		if _, err := hex.Decode(digest[:], fmt.Appendf(nil, "%s%048x", sum[:16], i)); err != nil {
			t.Fatal(err)
		}
		if e := table.find(&digest); e == nil || e.key.Alias != fmt.Sprintf("k%d", i) {
			t.Errorf("digest %d finds %v", i, e)
		}
		digest[31] ^= 0x80
		if e := table.find(&digest); e != nil {
			t.Errorf("a digest of nobody finds %v", e.key.Alias)
		}
	}
	real := digest(key(0))
	if e := table.find(&real); e == nil || e.key.Alias != "real" {
		t.Errorf("the key finds %v", e)
	}
}

// TestNothingOfAKeyShows: neither keys nor hashes are in what a Store hands out.
func TestNothingOfAKeyShows(t *testing.T) {
	s, _ := opened(t, document(t, `"alias":"a"`, `"alias":"b","expires":"2027-01-01"`))
	b, err := json.Marshal(map[string]any{"state": s.State(), "all": s.All()})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range s.All() {
		b = fmt.Appendf(b, "%+v", *k)
	}
	for n := range 2 {
		if strings.Contains(string(b), key(n)) || strings.Contains(string(b), hashed(t, n)) {
			t.Errorf("key %d or its hash is in %s", n, b)
		}
	}
}

// TestConcurrentLookups: readers beside reloads see the old keys or the new ones
// and nothing else.
func TestConcurrentLookups(t *testing.T) {
	old, new := document(t, `"alias":"a","class":"old"`), document(t, `"alias":"a","class":"new"`, `"alias":"b"`)
	s, path := opened(t, old)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				k, status := s.Lookup(key(0), noon)
				if status != Known || (k.Class != "old" && k.Class != "new") {
					t.Errorf("%v, %+v", status, k)
					return
				}
				if n := s.State().Keys; n != len(s.All()) && n != 1 && n != 2 {
					t.Errorf("%d keys", n)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range 100 {
		for _, text := range []string{new, "broken", old} {
			put(t, path, text)
			_, err := s.Reload(noon)
			if (err != nil) != (text == "broken") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	close(done)
	wg.Wait()
}

func BenchmarkLookup10k(b *testing.B) {
	s, _ := opened(b, many(b, 10_000))
	long := strings.Repeat("k", maxKey)
	for name, key := range map[string]string{"known": key(9_999), "unknown": key(10_000), "long": long} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Lookup(key, noon)
			}
		})
	}
}

func BenchmarkAllows(b *testing.B) {
	k := &Key{Models: []string{"qwen3-*", "llama-3.*-instruct"}}
	b.ReportAllocs()
	for b.Loop() {
		k.Allows("llama-3.1-8b-instruct")
	}
}
