package keys

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAdd(t *testing.T) {
	f := &File{Version: 1}
	if err := f.Add(Entry{Alias: "a", Hashes: []Hash{{SHA256: "of another"}}, Bench: true}, key(0), noon.Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	want := Hash{SHA256: hashed(t, 0), Created: Moment{noon}}
	if e := f.Keys[0]; len(e.Hashes) != 1 || e.Hashes[0] != want || !e.Bench {
		t.Errorf("added was %+v", e)
	}
	for name, c := range map[string]struct {
		alias, key string
		want       []string
	}{
		"alias there":  {"a", key(1), []string{`a key named "a" already`, "weir keys rotate a"}},
		"key there":    {"b", key(0), []string{`this key is that of "a"`}},
		"alias wrong":  {"a b", key(1), []string{"1 to 64"}},
		"alias an id":  {"zrtiftszyf", key(1), []string{"short id"}},
		"a key for it": {"sk-weir-0123", key(1), []string{"begins like a key"}},
		"key short":    {"b", "0123456789", []string{"10 characters", "at least 20"}},
	} {
		err := f.Add(Entry{Alias: c.alias}, c.key, noon)
		wantError(t, name, err, c.want...)
		if err != nil && strings.Contains(err.Error(), c.key) || len(f.Keys) != 1 {
			t.Errorf("%s: %v; %d keys", name, err, len(f.Keys))
		}
	}
}

func TestFind(t *testing.T) {
	f := new(File)
	_, err := f.Find("x")
	wantError(t, "empty", err, `no key named "x"; there is none yet; make one with: weir keys add ALIAS`)
	for n := range 12 {
		f.Keys = append(f.Keys, Entry{Alias: fmt.Sprintf("k%d", n)})
		if n == 2 {
			_, err = f.Find("x")
			wantError(t, "a few", err, `no key named "x"; known are: k0, k1, k2`)
		}
	}
	_, err = f.Find("x")
	wantError(t, "many", err, "k9 and 2 more, which weir keys list shows")
	_, err = f.Find("sk-weir-0123456789")
	wantError(t, "a key", err, "begins like a key")
	if strings.Contains(err.Error(), "0123") {
		t.Errorf("the error shows it: %v", err)
	}
	if e, err := f.Find("k11"); err != nil || e != &f.Keys[11] {
		t.Errorf("%v, %v", e, err)
	}
}

// TestRotate: the new key is good at once, the old one until the grace is over, and
// one that had to end earlier does.
func TestRotate(t *testing.T) {
	f := &File{Version: 1}
	if err := f.Add(Entry{Alias: "a"}, key(0), noon); err != nil {
		t.Fatal(err)
	}
	day := 24 * time.Hour
	rotate := func(n int, at time.Time, grace time.Duration) {
		t.Helper()
		if err := f.Rotate("a", key(n), at, grace); err != nil {
			t.Fatal(err)
		}
	}
	check := func(at time.Time, want ...Status) {
		t.Helper()
		_, path := opened(t, marshal(t, f))
		s := Open(path, at)
		for n, status := range want {
			if _, got := s.Lookup(key(n), at); got != status {
				t.Errorf("key %d is %v, want %v", n, got, status)
			}
		}
	}
	rotate(1, noon, DefaultGrace)
	check(noon, Known, Known)
	check(noon.Add(day-time.Second), Known, Known)
	check(noon.Add(day), Expired, Known)
	rotate(2, noon.Add(time.Hour), 2*day)
	check(noon.Add(day-time.Second), Known, Known, Known)
	check(noon.Add(day), Expired, Known, Known)
	check(noon.Add(2*day+time.Hour), Expired, Expired, Known)
	rotate(3, noon.Add(3*day), 0)
	check(noon.Add(3*day), Expired, Expired, Expired, Known)
	rotate(4, noon.Add(31*day), 0)
	check(noon.Add(31*day), Unknown, Expired, Expired, Expired, Known) // the first ended 30 days ago
	if n := len(f.Keys[0].Hashes); n != 4 {
		t.Errorf("%d hashes", n)
	}

	err := f.Rotate("b", key(5), noon, 0)
	wantError(t, "unknown", err, `no key named "b"; known are: a`)
	err = f.Rotate("a", key(5), noon, -1)
	wantError(t, "negative grace", err, "negative")
	err = f.Rotate("a", "short", noon, 0)
	wantError(t, "short key", err, "at least 20")
	f.Keys[0].Expires = moment(noon)
	err = f.Rotate("a", key(5), noon, 0)
	wantError(t, "expired", err, "expired on 2026-11-02", "change its expires")
	f.Keys[0].Revoked = moment(noon)
	err = f.Rotate("a", key(5), noon, 0)
	wantError(t, "revoked", err, "revoked on 2026-11-02", "weir keys add")
	if n := len(f.Keys[0].Hashes); n != 4 {
		t.Errorf("refused, and yet %d hashes", n)
	}
}

func TestRevoke(t *testing.T) {
	f := &File{Version: 1}
	if err := f.Add(Entry{Alias: "a"}, key(0), noon); err != nil {
		t.Fatal(err)
	}
	for i := range 2 { // the second time changes nothing
		if err := f.Revoke("a", noon.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		s, _ := opened(t, marshal(t, f))
		if k, status := s.Lookup(key(0), noon); status != Revoked || !k.Revoked.Equal(noon) {
			t.Errorf("%v, %+v", status, k)
		}
	}
	err := f.Revoke("b", noon)
	wantError(t, "unknown", err, `no key named "b"; known are: a`)
}
