package keys

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// look reloads and checks the outcome: whether keys changed, a part of the
// error ("" is none), and the aliases in use afterwards.
func look(t *testing.T, s *Store, at time.Time, changed bool, problem, aliases string) {
	t.Helper()
	got, err := s.Reload(at)
	if got != changed {
		t.Errorf("changed is %v", got)
	}
	if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
		t.Errorf("the error is %v, want %q", err, problem)
	}
	state := s.State()
	if (err == nil) != (state.Error == "") || err != nil && state.Error != err.Error() {
		t.Errorf("the error is %v, the state %q", err, state.Error)
	}
	var names []string
	for _, k := range s.All() {
		names = append(names, k.Alias)
	}
	if got := strings.Join(names, " "); got != aliases || state.Keys != len(names) {
		t.Errorf("%d keys %q, want %q", state.Keys, got, aliases)
	}
}

// TestBrokenFileKeepsTheLastGoodState, whatever is wrong, and the State says since when.
func TestBrokenFileKeepsTheLastGoodState(t *testing.T) {
	good := document(t, `"alias":"a"`)
	s, path := opened(t, good)
	at := noon
	look(t, s, at, false, "", "a")
	var since time.Time
	for i, c := range []struct{ text, problem string }{
		{"", "file is empty"}, // the moment at which another program writes it
		{good[:len(good)/2], "not JSON"},
		{strings.Replace(good, "alias", "name", 1), `unknown field "name"`},
		{strings.Replace(good, `"version":1`, `"version":9`, 1), "version is 9"},
	} {
		at = at.Add(time.Minute)
		put(t, path, c.text)
		look(t, s, at, false, c.problem, "a")
		if i == 0 {
			since = at
		}
		if state := s.State(); !state.ErrorSince.Equal(since) || !state.LoadedAt.Equal(noon) || !strings.Contains(state.Error, path) {
			t.Errorf("%+v; want an error since %v", state, since)
		}
		look(t, s, at, false, c.problem, "a") // it stays, and is not forgotten
		if _, status := s.Lookup(key(0), at); status != Known {
			t.Errorf("the key is %v", status)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	// To make a first key now would turn away everybody whose keys are in use.
	look(t, s, at, false, "put the file back, for a new one replaces them all", "a")
	_, err := s.Reload(at)
	if !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "weir keys add") {
		t.Errorf("%v is not fs.ErrNotExist, or tells to make a new file", err)
	}
	put(t, path, good)
	at = at.Add(time.Minute)
	look(t, s, at, false, "", "a") // what is in use, again: nothing changed
	if state := s.State(); !state.ErrorSince.IsZero() || !state.LoadedAt.Equal(noon) {
		t.Errorf("mended: %+v", state)
	}
	put(t, path, document(t, `"alias":"b"`))
	at = at.Add(time.Minute)
	look(t, s, at, true, "", "b")
	if state := s.State(); !state.LoadedAt.Equal(at) {
		t.Errorf("loaded: %+v", state)
	}
}

// TestOpenNeverFails: what is not there or not right gives no keys and a reason,
// and is taken up once it is right.
func TestOpenNeverFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	s := Open(path, noon)
	if state := s.State(); state.Keys != 0 || !state.LoadedAt.IsZero() || state.Path != path || !state.ErrorSince.Equal(noon) || !strings.Contains(state.Error, "no such file") {
		t.Errorf("%+v", state)
	}
	if k, status := s.Lookup(key(0), noon); k != nil || status != Unknown {
		t.Errorf("%v, %v", k, status)
	}
	if len(s.All()) != 0 {
		t.Error("there are keys")
	}
	put(t, path, "{")
	look(t, s, noon, false, "not JSON", "")
	put(t, path, document(t, `"alias":"a"`))
	look(t, s, noon, true, "", "a")

	if state := Open(t.TempDir(), noon).State(); !strings.Contains(state.Error, "not a file but a directory") {
		t.Errorf("%+v", state)
	}
	if state := Open(os.DevNull, noon).State(); !strings.Contains(state.Error, "not a file but a device") {
		t.Errorf("%+v", state)
	}
	if state := Open(filepath.Join(path, "below"), noon).State(); state.Error == "" {
		t.Errorf("%+v", state)
	}
	big := filepath.Join(t.TempDir(), "big")
	put(t, big, "")
	if err := os.Truncate(big, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if state := Open(big, noon).State(); !strings.Contains(state.Error, "larger than 64 MiB") {
		t.Errorf("%+v", state)
	}
}

// TestKubernetesSwap: a mounted config map is a link to a link to a directory, and
// the one in the middle is replaced.
func TestKubernetesSwap(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name, "keys.json"), text)
		// The same size and time of modification: only the inode is another.
		if err := os.Chtimes(filepath.Join(dir, name, "keys.json"), noon, noon); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		temp := filepath.Join(dir, name+"_tmp")
		if err := os.Symlink(to, temp); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	version("..2026_1", document(t, `"alias":"a"`))
	version("..2026_2", document(t, `"alias":"b"`))
	link("..2026_1", "..data")
	link(filepath.Join("..data", "keys.json"), "keys.json")
	later := noon.Add(time.Hour)
	s := Open(filepath.Join(dir, "keys.json"), later)
	look(t, s, later, false, "", "a")
	link("..2026_2", "..data")
	look(t, s, later, true, "", "b")
	if err := os.RemoveAll(filepath.Join(dir, "..2026_2")); err != nil {
		t.Fatal(err)
	}
	look(t, s, later, false, "no such file", "b")
	link("..2026_1", "..data")
	look(t, s, later, true, "", "a")
}

// TestYoungFilesAreReadAgain: two changes within one step of the file system's clock,
// with the same size, are both taken up; a file that has settled is not read.
func TestYoungFilesAreReadAgain(t *testing.T) {
	a, b := document(t, `"alias":"a"`), document(t, `"alias":"b"`)
	path := filepath.Join(t.TempDir(), "keys.json")
	write := func(text string) {
		t.Helper()
		put(t, path, text)
		if err := os.Chtimes(path, noon, noon); err != nil {
			t.Fatal(err)
		}
	}
	write(a)
	s := Open(path, noon.Add(time.Second))
	write(b)
	look(t, s, noon.Add(2*time.Second), true, "", "b")
	look(t, s, noon.Add(3*time.Second), false, "", "b") // has settled now
	write(a)
	look(t, s, noon.Add(time.Hour), false, "", "b") // as nobody could see: stat says nothing of it
	if err := os.Chtimes(path, noon, noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	look(t, s, noon.Add(time.Hour), true, "", "a")
	// A broken one is not read again and again either, but its error stands.
	put(t, path, "{}")
	if err := os.Chtimes(path, noon, noon); err != nil {
		t.Fatal(err)
	}
	look(t, s, noon.Add(time.Hour), false, "version is missing", "a")
	if info, err := os.Stat(path); err != nil || !s.seen.file.Unchanged(info) {
		t.Error("the broken file would be read again")
	}
	look(t, s, noon.Add(time.Hour), false, "version is missing", "a")
}

// TestWatch: a change, a mistake and its mending are each told once.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := document(t, `"alias":"a"`)
		s, path := opened(t, good)
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan string, 100)
		var wg sync.WaitGroup
		wg.Go(func() {
			s.Watch(ctx, 0, func(err error) {
				text := "fine"
				if err != nil {
					text = err.Error()
				}
				told <- text
			})
		})
		expect := func(what string, want ...string) {
			t.Helper()
			time.Sleep(10 * DefaultInterval)
			synctest.Wait()
			if len(told) != len(want) {
				t.Errorf("%s: told %d times, want %d", what, len(told), len(want))
			}
			for range len(told) {
				if text := <-told; len(want) == 0 || !strings.Contains(text, want[0]) {
					t.Errorf("%s: told %q, want %q", what, text, want)
				}
			}
		}
		expect("nothing happens")
		put(t, path, document(t, `"alias":"b"`))
		expect("a change", "fine")
		put(t, path, "")
		expect("a mistake", "file is empty")
		put(t, path, "{")
		expect("another mistake", "not JSON")
		put(t, path, document(t, `"alias":"b"`))
		expect("mended as before", "fine")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		expect("removed", "no such file")
		put(t, path, good)
		expect("there again", "fine")
		if s.All()[0].Alias != "a" {
			t.Errorf("in use is %v", s.All()[0])
		}
		cancel()
		wg.Wait()
	})
}

// TestWatchWithoutCallback only reloads, at the interval given.
func TestWatchWithoutCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, path := opened(t, document(t, `"alias":"a"`))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.Watch(ctx, time.Minute, nil) })
		put(t, path, document(t, `"alias":"b"`))
		for _, c := range []struct {
			pause time.Duration
			alias string
		}{{59 * time.Second, "a"}, {time.Second, "b"}} {
			time.Sleep(c.pause)
			synctest.Wait()
			if got := s.All()[0].Alias; got != c.alias {
				t.Errorf("in use is %q, want %q", got, c.alias)
			}
		}
		cancel()
		wg.Wait()
	})
}

func TestRead(t *testing.T) {
	_, path := opened(t, document(t, `"alias":"a"`))
	f, err := Read(path)
	if err != nil || f.Keys[0].Alias != "a" {
		t.Errorf("%+v, %v", f, err)
	}
	put(t, path, "{")
	_, err = Read(path)
	wantError(t, "broken", err, "read keys: "+path+": line 1")
	_, err = Read(path + "x")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}
