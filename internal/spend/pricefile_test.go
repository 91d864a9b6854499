package spend

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/watch"
)

// priceFileIn is a file for price lists, and how to write one and to say how old it is.
func priceFileIn(t *testing.T) (file string, write func(text string, age time.Duration)) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "prices.json")
	return file, func(text string, age time.Duration) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
	}
}

const otherList = `{"version":1,"currency":"EUR","prices":[]}`

func TestPriceFile(t *testing.T) {
	file, write := priceFileIn(t)
	if _, err := OpenPrices(file); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "create it, for example with {") {
		t.Errorf("missing: %v", err)
	}
	write(`{`, 0)
	if _, err := OpenPrices(file); err == nil || strings.Contains(err.Error(), "last good") {
		t.Errorf("a broken list was opened: %v", err)
	}
	write(PriceExample, 0)
	f, err := OpenPrices(file)
	if err != nil {
		t.Fatal(err)
	}
	first := f.Prices()
	reload := func(what string, wantChanged bool, want string) {
		t.Helper()
		for range 2 { // an error comes every time
			changed, err := f.Reload(time.Now())
			if changed != wantChanged || (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the last good list stays in use")) || f.Err() != err {
				t.Errorf("%s: %v, %v, want %v and %q", what, changed, err, wantChanged, want)
			}
			wantChanged = false
		}
	}
	reload("unchanged", false, "")
	write(`{"version":1}`, 0)
	reload("broken", false, "currency")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	reload("gone", false, "create it")
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	reload("a directory", false, "not a regular file")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	write(strings.Repeat(" ", maxPriceFile+1), 0)
	reload("too large", false, "larger than 4 MiB")
	if f.Prices() != first {
		t.Error("a broken file took the list away")
	}
	write(otherList, 0)
	reload("mended", true, "")
	if f.Prices().Currency() != "EUR" {
		t.Errorf("currency %s", f.Prices().Currency())
	}
	// A file changed twice within the file system's tick is read again while it is young.
	now := time.Now()
	write(strings.Replace(otherList, "EUR", "CHF", 1), 0)
	reload("young", true, "")
	if err := os.WriteFile(file, []byte(strings.Replace(otherList, "EUR", "SEK", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, now, now); err != nil {
		t.Fatal(err)
	}
	reload("young, the same time", true, "")
	if f.Prices().Currency() != "SEK" {
		t.Errorf("currency %s", f.Prices().Currency())
	}
}

// TestPriceFileOfAge: a file that has not changed for a while is not read again.
func TestPriceFileOfAge(t *testing.T) {
	file, write := priceFileIn(t)
	write(otherList, time.Hour)
	f, err := OpenPrices(file)
	if err != nil {
		t.Fatal(err)
	}
	f.content = nil // were it read, it would count as changed
	if changed, err := f.Reload(time.Now()); changed || err != nil {
		t.Errorf("read again: %v, %v", changed, err)
	}
	write(otherList, time.Minute)
	if changed, err := f.Reload(time.Now()); !changed || err != nil {
		t.Errorf("not read again: %v, %v", changed, err)
	}
}

func TestWatch(t *testing.T) {
	file, write := priceFileIn(t)
	write(otherList, time.Hour)
	f, err := OpenPrices(file)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var told []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Watch(ctx, 0, func(err error) {
				if err != nil {
					told = append(told, "broken")
				} else {
					told = append(told, f.Prices().Currency())
				}
			})
		}()
		for _, text := range []string{otherList, "{", "{", strings.Replace(otherList, "EUR", "CHF", 1), "", strings.Replace(otherList, "EUR", "CHF", 1)} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * watch.DefaultInterval)
			synctest.Wait()
		}
		cancel()
		<-done
		// An empty file is another error than a brace, and the list after it is taken up again.
		if got := strings.Join(told, " "); got != "broken CHF broken CHF" {
			t.Errorf("told %q", got)
		}
	})
}
