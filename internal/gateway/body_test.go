package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/weirgate/weir/internal/call"
)

// ahead reads a body ahead within a budget and returns it.
func ahead(body io.Reader, length int64, b *budget) *requestBody {
	r := httptest.NewRequest("POST", "/v1/chat/completions", body)
	r.ContentLength = length
	rb := &requestBody{budget: b}
	rb.readAhead(r, func([]byte) {})
	return rb
}

// letters returns n bytes in which every place tells where it is.
func letters(n int) []byte {
	b := make([]byte, 0, n+8)
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, "%07d ", i)
	}
	return b[:n]
}

// TestReadAheadBudget: what is reserved covers what is held, and all of it is
// given back, however the body ends.
func TestReadAheadBudget(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		body   io.Reader
		length int64
		limit  int64
		held   int // bytes kept
		over   call.Degradation
		end    error
	}{
		"no body":                {http.NoBody, 0, 1 << 20, 0, "", io.EOF},
		"empty, length unknown":  {bytes.NewReader(nil), -1, 1 << 20, 0, "", io.EOF},
		"small":                  {bytes.NewReader(letters(1000)), 1000, 1 << 20, 1000, "", io.EOF},
		"length unknown":         {bytes.NewReader(letters(70000)), -1, 1 << 20, 70000, "", io.EOF},
		"announces too much":     {bytes.NewReader(letters(10)), 1 << 50, 1 << 20, 10, "", io.EOF},
		"announces too little":   {bytes.NewReader(letters(70000)), 5, 1 << 20, 70000, "", io.EOF},
		"no budget at all":       {bytes.NewReader(letters(1000)), 1000, 100, 0, call.BodyBudget, nil},
		"budget ends":            {bytes.NewReader(letters(70000)), -1, 20 << 10, 16 << 10, call.BodyBudget, nil},
		"larger than the look":   {bytes.NewReader(letters(MaxLook + 5)), MaxLook + 5, 1 << 30, MaxLook, call.BodyTooLarge, nil},
		"the client breaks off":  {io.MultiReader(bytes.NewReader(letters(100)), iotest.ErrReader(broken)), 1000, 1 << 20, 100, "", broken},
		"pieces of a byte":       {iotest.OneByteReader(bytes.NewReader(letters(9000))), -1, 1 << 20, 9000, "", io.EOF},
		"data together with EOF": {iotest.DataErrReader(bytes.NewReader(letters(9000))), -1, 1 << 20, 9000, "", io.EOF},
	} {
		b := &budget{limit: c.limit}
		rb := ahead(c.body, c.length, b)
		if len(rb.held) != c.held || rb.over != c.over || rb.rest == nil && !errors.Is(rb.end, c.end) || (rb.rest != nil) != (c.over != "") {
			t.Errorf("%s: holds %d bytes, %q, ends in %v, rest %v", name, len(rb.held), rb.over, rb.end, rb.rest != nil)
		}
		if used := b.used.Load(); used != rb.taken || used < int64(cap(rb.held)) || used > c.limit {
			t.Errorf("%s: %d bytes reserved for a buffer of %d, the limit is %d", name, used, cap(rb.held), c.limit)
		}
		rb.release()
		rb.release()
		if used := b.used.Load(); used != 0 {
			t.Errorf("%s: %d bytes are still reserved", name, used)
		}
	}
}

// attempts runs a script of operations on one attemptBody and checks after each
// that no attempt ever has anything but a beginning of the body, and that one
// that meets the end has all of it.
func attempts(t *testing.T, content []byte, kept int64, script []byte) {
	t.Helper()
	b := &budget{limit: kept}
	rb := ahead(bytes.NewReader(content), -1, b)
	a := &attemptBody{body: rb}
	gone, leave := context.WithCancel(context.Background())
	leave() // an attempt that would wait does not begin
	var got []byte
	open, began := true, false // before the first attempt a handler may read by itself
	check := func(op string) {
		if !bytes.HasPrefix(content, got) {
			t.Fatalf("%s: an attempt has %q, which the body does not begin with", op, got)
		}
	}
	for i, op := range script {
		switch op % 8 {
		case 0, 1:
			if !open || len(got) == 0 {
				got = nil
			} else if began {
				continue // the transport's attempt is still reading
			}
			a.begin(gone)
			open, began = true, true
		case 2, 3, 4:
			p := make([]byte, 1+int(op)*3)
			n, err := a.Read(p)
			if !open && began && (n > 0 || err == nil || errors.Is(err, io.EOF)) {
				t.Fatalf("op %d: a late reader got %d bytes and %v", i, n, err)
			}
			got = append(got, p[:n]...)
			check("read")
			if errors.Is(err, io.EOF) && len(got) != len(content) {
				t.Fatalf("op %d: an attempt ends after %d bytes of %d", i, len(got), len(content))
			}
		case 5:
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			open = !began
			got = nil
		case 6:
			if a.letGo(false) {
				rb.release()
			}
		case 7:
			if op < 32 {
				a.letGo(true)
				rb.release()
			}
		}
	}
	a.letGo(true)
	rb.release()
	if used := b.used.Load(); used != 0 {
		t.Fatalf("%d bytes are still reserved", used)
	}
	if n, err := a.Read(make([]byte, 10)); n != 0 || err == nil {
		t.Fatalf("after the end a reader got %d bytes and %v", n, err)
	}
}

func TestAttempts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 3000 {
		content := letters(rng.IntN(600))
		if rng.IntN(4) == 0 {
			content = letters(firstRead + rng.IntN(6000))
		}
		script := make([]byte, rng.IntN(60))
		for i := range script {
			script[i] = byte(rng.IntN(256))
		}
		attempts(t, content, []int64{1 << 20, firstRead}[rng.IntN(2)], script)
	}
}

func FuzzAttempts(f *testing.F) {
	f.Add(uint16(100), []byte{0, 2, 5, 0, 2, 2, 2, 2, 6})
	f.Add(uint16(9000), []byte{0, 250, 250, 250, 250, 250, 250, 250, 250, 5, 0, 2})
	f.Add(uint16(9000), []byte{2, 0, 250, 5, 0, 2})
	f.Fuzz(func(t *testing.T, size uint16, script []byte) {
		attempts(t, letters(int(size)), 1<<20, script)
		attempts(t, letters(int(size)), firstRead, script)
	})
}

// TestAttemptWaits: an attempt does not begin while the one before still reads,
// even if that takes its time to let go; each has the whole body.
func TestAttemptWaits(t *testing.T) {
	content := letters(5000)
	b := &budget{limit: 1 << 20}
	rb := ahead(bytes.NewReader(content), -1, b)
	a := &attemptBody{body: rb}
	var readers sync.WaitGroup
	for i := range 50 {
		a.begin(t.Context())
		started := make(chan struct{})
		readers.Go(func() { // as the transport's write loop: it reads and closes by itself
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			var got []byte
			for stop := rng.IntN(2 * len(content)); ; {
				p := make([]byte, 1+rng.IntN(900))
				n, err := a.Read(p)
				if got == nil {
					close(started)
				}
				got = append(got, p[:n]...)
				if errors.Is(err, io.EOF) && !bytes.Equal(got, content) || !bytes.HasPrefix(content, got) || err != nil && !errors.Is(err, io.EOF) {
					t.Errorf("attempt %d: %d bytes, %v", i, len(got), err)
				}
				if err != nil || len(got) > stop {
					break
				}
			}
			a.Close()
		})
		<-started
	}
	readers.Wait()
	a.letGo(true)
	rb.release()
	if used := b.used.Load(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

// TestAttemptGivesUp: an attempt that waits for one that never lets go ends
// with the call.
func TestAttemptGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &attemptBody{body: ahead(bytes.NewReader(letters(100)), -1, &budget{limit: 1 << 20})}
		a.begin(t.Context())
		_, _ = a.Read(make([]byte, 10))
		gone, leave := context.WithCancel(t.Context())
		began := make(chan struct{})
		go func() { a.begin(gone); close(began) }()
		synctest.Wait()
		select {
		case <-began:
			t.Fatal("an attempt began while another was reading")
		default:
		}
		leave()
		<-began
	})
}

// TestBufferedBeforeTheAttempt: a handler that has read the beginning before
// the transport connects (request_buffers) neither hangs nor is given it twice.
func TestBufferedBeforeTheAttempt(t *testing.T) {
	content := letters(300)
	a := &attemptBody{body: ahead(bytes.NewReader(content), -1, &budget{limit: 1 << 20})}
	head := make([]byte, 100)
	if _, err := io.ReadFull(a, head); err != nil {
		t.Fatal(err)
	}
	a.begin(t.Context()) // would wait for ever
	tail, err := io.ReadAll(a)
	if err != nil || !bytes.Equal(append(head, tail...), content) {
		t.Errorf("%d bytes, %v", len(head)+len(tail), err)
	}
	a.Close()
	a.begin(t.Context())
	if n, err := a.Read(head); n > 0 || !errors.Is(err, errBodySpent) {
		t.Errorf("the second attempt got %d bytes and %v", n, err)
	}
}

// TestLateReadOfTheRest: bytes that a given-up attempt takes from the client
// after its end are missing to the next, which must not go on without them.
func TestLateReadOfTheRest(t *testing.T) {
	content := letters(firstRead + 100)
	client, sends := io.Pipe()
	go func() {
		_, _ = sends.Write(content[:firstRead])
		_, _ = sends.Write(content[firstRead:])
		_ = sends.Close()
	}()
	a := &attemptBody{body: ahead(client, -1, &budget{limit: firstRead})}
	a.begin(t.Context())
	if _, err := io.CopyN(io.Discard, a, firstRead); err != nil {
		t.Fatal(err)
	}
	a.body.rest = closesInRead{client, a}
	if n, _ := a.Read(make([]byte, 50)); n == 0 {
		t.Fatal("nothing was read of the rest")
	}
	a.begin(t.Context())
	if n, err := a.Read(make([]byte, 50)); n > 0 || !errors.Is(err, errBodySpent) {
		t.Errorf("the next attempt got %d bytes and %v", n, err)
	}
}

// closesInRead is a client body during whose read the attempt is closed.
type closesInRead struct {
	io.ReadCloser
	attempt *attemptBody
}

func (c closesInRead) Read(p []byte) (int, error) {
	_ = c.attempt.Close()
	return c.ReadCloser.Read(p)
}
