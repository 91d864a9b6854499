package keys

import (
	"strings"
	"sync"
	"testing"
)

// The expected ids were computed with Python's hmac, hashlib and base64:
//
//	base64.b32encode(hmac.new(secret, key, hashlib.sha256).digest())[:10].lower()
var vectors = []struct{ secret, key, id string }{
	{"secret", "sk-test", "zrtiftszyf"},
	{"\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f",
		"sk-proj-abcdefghijklmnopqrstuvwxyz0123456789", "pucktrkgm3"},
	{"", "k", "id6cihzd5t"},
	{strings.Repeat("\x0b", 20), "Hi There", "wa2eyyoy3m"}, // RFC 4231, case 1: b0344c61d8db38…
	{"secret", "schlüssel", "n2obhpii77"},
	{strings.Repeat("s", 100), strings.Repeat("x", 5000), "3um6s2u74n"},
	{"secret", "", ""},
}

func TestID(t *testing.T) {
	for _, v := range vectors {
		n := NewNamer([]byte(v.secret))
		for range 3 { // the second use of pooled space must give the same
			if got := n.ID(v.key); got != v.id {
				t.Errorf("ID(%.20q) under %.20q: got %q, want %q", v.key, v.secret, got, v.id)
			}
		}
	}
}

func TestSecretIsCopied(t *testing.T) {
	secret := []byte("secret")
	n := NewNamer(secret)
	clear(secret)
	if got := n.ID("sk-test"); got != "zrtiftszyf" {
		t.Errorf("the id follows the caller's slice: %q", got)
	}
}

func TestIDTellsNothing(t *testing.T) {
	n, other := NewNamer([]byte("secret")), NewNamer([]byte("secret2"))
	seen := make(map[string]string)
	for _, key := range []string{"a", "b", "aa", "sk-test", "sk-tesu", "zrtiftszyf", " sk-test", "SK-TEST", "sk-test\x00"} {
		id := n.ID(key)
		if len(id) != idLength || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" {
			t.Errorf("%q has the id %q", key, id)
		}
		if strings.Contains(id, key) && len(key) > 2 || id == other.ID(key) {
			t.Errorf("%q shows in its id %q, or the secret does not matter", key, id)
		}
		if before, ok := seen[id]; ok {
			t.Errorf("%q and %q share the id %q", before, key, id)
		}
		seen[id] = key
	}
}

func TestKeysAreWiped(t *testing.T) {
	m := NewNamer([]byte("secret")).macs.New().(*mac)
	m.id("sk-test")
	if kept := string(m.key[:cap(m.key)]); strings.Trim(kept, "\x00") != "" {
		t.Errorf("scratch space still holds %q", kept)
	}
	m.id(strings.Repeat("k", 100_000))
	if cap(m.key) > maxKept {
		t.Errorf("%d bytes are kept after a long key", cap(m.key))
	}
}

func TestConcurrentIDs(t *testing.T) {
	n := NewNamer([]byte("secret"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if got := n.ID("sk-test"); got != "zrtiftszyf" {
					t.Errorf("got %q", got)
					return
				}
				n.ID("another")
			}
		})
	}
	wg.Wait()
}

// The pool itself is left out: the race detector makes it drop what it is given.
func TestIDAllocations(t *testing.T) {
	m := NewNamer([]byte("secret")).macs.New().(*mac)
	if n := testing.AllocsPerRun(1000, func() { m.id("sk-proj-abcdefghijklmnopqrstuvwxyz0123456789") }); n > 1 {
		t.Errorf("%v allocations for an id, want 1: the id itself", n)
	}
}

func BenchmarkID(b *testing.B) {
	n := NewNamer([]byte("a secret of 32 bytes, or so it is"))
	b.ReportAllocs()
	for b.Loop() {
		n.ID("sk-proj-abcdefghijklmnopqrstuvwxyz0123456789")
	}
}
