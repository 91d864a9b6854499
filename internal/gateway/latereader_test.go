package gateway

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestLateReader: an attempt whose header was answered before it began to read
// gets nothing of the body once the next has begun, and the next has all of it.
func TestLateReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := letters(3000)
		a := &attemptBody{body: ahead(bytes.NewReader(content), -1, &budget{limit: 1 << 20})}
		a.begin(t.Context())
		a.answered()
		began := make(chan struct{})
		go func() { a.begin(t.Context()); close(began) }()
		synctest.Wait()
		// The first attempt reads only now, and gives up after that.
		if n, err := a.Read(make([]byte, 100)); n != 100 || err != nil {
			t.Errorf("the first attempt got %d bytes, %v", n, err)
		}
		select {
		case <-began:
			t.Error("the second attempt began before the first had ended")
		default:
		}
		a.Close()
		a.wroteAll()
		<-began
		a.answered()
		if got, err := io.ReadAll(a); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the second attempt got %d bytes of %d, %v", len(got), len(content), err)
		}
		a.Close()
		if n, err := a.Read(make([]byte, 1)); n > 0 || !errors.Is(err, errBetweenAttempts) {
			t.Errorf("after the end: %d bytes, %v", n, err)
		}
	})
}

// TestAttemptThatNeverReads: an attempt that ends without a read, whether or not
// the transport tells of it, does not hold up the next for long.
func TestAttemptThatNeverReads(t *testing.T) {
	for _, tells := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			content := letters(3000)
			a := &attemptBody{body: ahead(bytes.NewReader(content), -1, &budget{limit: 1 << 20})}
			start, want := time.Now(), maxLateRead
			a.begin(t.Context())
			a.answered()
			if tells {
				a.wroteAll()
				want = 0
			}
			a.begin(t.Context())
			if waited := time.Since(start); waited != want {
				t.Errorf("told %v: waited %v, want %v", tells, waited, want)
			}
			if got, err := io.ReadAll(a); err != nil || !bytes.Equal(got, content) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
}
