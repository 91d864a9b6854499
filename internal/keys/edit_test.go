package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// add is an edit that adds the nth key.
func add(n int) func(*File) error {
	return func(f *File) error { return f.Add(Entry{Alias: fmt.Sprintf("k%d", n)}, key(n), noon) }
}

// entries returns the names in a directory.
func entries(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestEdit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	if err := Edit(path, noon, add(0)); err != nil {
		t.Fatal(err)
	}
	if got := mode(t, path); got != 0o600 {
		t.Errorf("a new file has the mode %o", got)
	}
	want := fmt.Sprintf(`{
  "version": 1,
  "keys": [
    {
      "alias": "k0",
      "hashes": [
        {
          "sha256": "%s",
          "created": "2026-11-02T12:00:00Z"
        }
      ]
    }
  ]
}
`, hashed(t, 0))
	if got, err := os.ReadFile(path); string(got) != want || err != nil {
		t.Errorf("written was\n%s", got)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := Edit(path, noon, add(1)); err != nil {
		t.Fatal(err)
	}
	if got := mode(t, path); got != 0o640 {
		t.Errorf("the mode became %o", got)
	}
	f, err := Read(path)
	if err != nil || len(f.Keys) != 2 {
		t.Errorf("%+v, %v", f, err)
	}
	if got := entries(t, dir); got != "keys.json" {
		t.Errorf("left are %s", got)
	}
}

// TestEditThatChangesNothing leaves the very file.
func TestEditThatChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := Edit(path, noon, add(0)); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Edit(path, noon, func(*File) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Error("there is another file")
	}
}

// TestEditRefuses: what goes wrong changes nothing and leaves nothing behind.
func TestEditRefuses(t *testing.T) {
	mine := errors.New("mine")
	good := document(t, `"alias":"a"`)
	for name, c := range map[string]struct {
		before string
		change func(*File) error
		want   string
	}{
		"an error of the change": {good, func(f *File) error { f.Keys = nil; return mine }, "mine"},
		"a wrong result":         {good, func(f *File) error { f.Keys[0].Class = "a b"; return nil }, "nothing is changed, because the result would be wrong"},
		"a wrong version":        {good, func(f *File) error { f.Version = 2; return nil }, "version is 2"},
		"what JSON cannot hold":  {good, func(f *File) error { f.Keys[0].Expires.Time = time.Date(12027, 1, 1, 0, 0, 0, 0, time.UTC); return nil }, "write JSON"},
		"a broken file":          {good[:50], add(1), "is broken and stays as it is; mend it by hand first"},
		"an empty file":          {"", add(1), "file is empty"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "keys.json")
		put(t, path, c.before)
		err := Edit(path, noon, c.change)
		wantError(t, name, err, c.want)
		if name == "an error of the change" && err != mine {
			t.Errorf("the error of the change came as %v", err)
		}
		if got, err := os.ReadFile(path); string(got) != c.before || err != nil {
			t.Errorf("%s: the file became %q", name, got)
		}
		if got := entries(t, dir); got != "keys.json" {
			t.Errorf("%s: left are %s", name, got)
		}
	}
	err := Edit(filepath.Join(t.TempDir(), "none", "keys.json"), noon, add(0))
	wantError(t, "no directory", err, "make the directory first")
	err = Edit(t.TempDir(), noon, add(0))
	wantError(t, "a directory", err, "not a file but a directory")
}

// TestEditReleasesAfterPanic: the lock does not stay.
func TestEditReleasesAfterPanic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	func() {
		defer func() { _ = recover() }()
		_ = Edit(path, noon, func(*File) error { panic("in the change") })
	}()
	if err := Edit(path, noon, add(0)); err != nil {
		t.Error(err)
	}
	if got := entries(t, dir); got != "keys.json" {
		t.Errorf("left are %s", got)
	}
}

// TestEditFollowsLinks: relative, absolute, through a linked directory, and to a
// file that is not there yet; the links stay.
func TestEditFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"real", "etc"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	for name, to := range map[string]string{
		in("keys.json"):         in("etc", "keys.json"),
		in("etc", "keys.json"):  filepath.Join("..", "real", "the.json"),
		in("linked"):            in("etc"),
		in("real", "loop.json"): "loop.json",
	} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for i, path := range []string{in("keys.json"), in("etc", "keys.json"), in("linked", "keys.json"), in("real", "the.json")} {
		if err := Edit(path, noon, add(i)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		f, err := Read(in("real", "the.json"))
		if err != nil || len(f.Keys) != i+1 {
			t.Fatalf("%s: %+v, %v", path, f, err)
		}
	}
	for _, link := range []string{in("keys.json"), in("etc", "keys.json")} {
		if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is a link no more", link)
		}
	}
	err := Edit(in("real", "loop.json"), noon, add(9))
	wantError(t, "a link to itself", err, "too many symbolic links")
	if got := entries(t, in("real")); got != "loop.json the.json" {
		t.Errorf("left are %s", got)
	}
}

// TestConcurrentEdits: goroutines that edit at once lose nothing, with either
// kind of lock, and a Store beside them never sees a broken file.
func TestConcurrentEdits(t *testing.T) {
	for name, lock := range map[string]locker{"flock": acquire, "exclusive": acquireExclusive} {
		t.Run(name, func(t *testing.T) {
			const editors, edits = 8, 6
			path := filepath.Join(t.TempDir(), "keys.json")
			if err := Edit(path, noon, add(999)); err != nil {
				t.Fatal(err)
			}
			s := Open(path, noon)
			done := make(chan struct{})
			var reader, writers sync.WaitGroup
			reader.Go(func() {
				for before := 1; ; {
					if _, err := s.Reload(noon); err != nil {
						t.Errorf("the store sees %v", err)
						return
					}
					if n := s.State().Keys; n < before {
						t.Errorf("%d keys, before %d", n, before)
					} else {
						before = n
					}
					select {
					case <-done:
						return
					default:
					}
				}
			})
			for i := range editors {
				writers.Go(func() {
					for j := range edits {
						if err := edit(path, time.Now(), add(i*edits+j), lock); err != nil {
							t.Error(err)
						}
					}
				})
			}
			writers.Wait()
			close(done)
			reader.Wait()
			f, err := Read(path)
			if err != nil || len(f.Keys) != editors*edits+1 {
				t.Fatalf("%d keys of %d, %v", len(f.Keys), editors*edits+1, err)
			}
			if got := entries(t, filepath.Dir(path)); got != "keys.json" {
				t.Errorf("left are %s", got)
			}
		})
	}
}

const editorEnv = "WEIR_TEST_EDITOR" // "path first count": add these keys and end

// TestMain is the other process of TestConcurrentProcesses, too.
func TestMain(m *testing.M) {
	if job := os.Getenv(editorEnv); job != "" {
		os.Exit(editor(job))
	}
	os.Exit(m.Run())
}

func editor(job string) int {
	fields := strings.Split(job, "\n")
	first, err1 := strconv.Atoi(fields[1])
	count, err2 := strconv.Atoi(fields[2])
	if err := errors.Join(err1, err2); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	for n := range count {
		if err := Edit(fields[0], time.Now(), add(first+n)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// TestConcurrentProcesses: several programs that edit at once lose nothing.
func TestConcurrentProcesses(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const processes, edits = 4, 8
	path := filepath.Join(t.TempDir(), "keys.json")
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s\n%d\n%d", editorEnv, path, i*edits, edits))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	f, err := Read(path)
	if err != nil || len(f.Keys) != processes*edits {
		t.Fatalf("%+v, %v", f, err)
	}
	if got := entries(t, filepath.Dir(path)); got != "keys.json" {
		t.Errorf("left are %s", got)
	}
}
