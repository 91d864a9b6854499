package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSeen: what tells that a file is another, and when its age forbids to tell.
func TestSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write := func(text string, at time.Time) os.FileInfo {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	old := write("one", now.Add(-time.Hour))
	var s Seen
	if s.Unchanged(old) {
		t.Error("a file never seen is unchanged")
	}
	if s.Note(old, now); !s.Unchanged(old) {
		t.Error("the file seen has changed")
	}
	for name, info := range map[string]os.FileInfo{"another size": write("longer", now.Add(-time.Hour)), "another time": write("two", now.Add(-time.Minute))} {
		if s.Unchanged(info) {
			t.Errorf("%s: unchanged", name)
		}
	}
	young := write("new", now.Add(-Settled))
	if s.Note(young, now); s.Unchanged(young) {
		t.Error("a file that is too young is trusted")
	}
}

// TestChanges: each thing that happens is told once.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, worse := errors.New("broken"), errors.New("worse")
		script := []struct {
			changed bool
			err     error
		}{{false, broken}, {false, nil}, {true, nil}, {false, nil}, {false, broken}, {false, broken}, {false, worse}, {false, nil}}
		ctx, stop := context.WithCancel(t.Context())
		var told []string
		start, i := time.Now(), 0
		Changes(ctx, 0, broken, func(time.Time) (bool, error) {
			step := script[i]
			if i++; i == len(script) {
				stop()
			}
			return step.changed, step.err
		}, func(err error) { told = append(told, fmt.Sprint(err)) })
		if want := []string{"<nil>", "<nil>", "broken", "worse", "<nil>"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if took := time.Since(start); took < time.Duration(len(script))*DefaultInterval {
			t.Errorf("%d looks in %v", i, took)
		}
	})
}
