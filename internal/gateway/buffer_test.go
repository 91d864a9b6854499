package gateway

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// TestBodiesApart: calls that run side by side, and one after the other, each
// send their own body upstream, all of it and nothing else, though they use the
// same memory; and a reader that outlives its call gets nothing of the next.
func TestBodiesApart(t *testing.T) {
	g := New(ignored{})
	options, around := new(Options), new(Surroundings)
	var late, calls sync.WaitGroup
	for worker := range 8 {
		calls.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 1))
			goOn := make(chan struct{}) // for the reader that stayed behind, once a later call holds its own body
			for range 150 {
				mark := byte('a' + r.IntN(26))
				body := bytes.Repeat([]byte{mark}, r.IntN([]int{900, 5000, 20_000, 90_000}[r.IntN(4)]))
				stays, read := r.IntN(3) == 0, r.IntN(2) == 0
				next := func(w http.ResponseWriter, req *http.Request) error {
					close(goOn)
					goOn = make(chan struct{})
					if stays {
						begun, goOn := make(chan struct{}), goOn
						late.Go(func() {
							piece := make([]byte, 1+len(body)/3)
							n, err := req.Body.Read(piece)
							close(begun)
							<-goOn
							for ; ; n, err = req.Body.Read(piece) {
								if other := bytes.Trim(piece[:n], string(mark)); len(other) > 0 {
									t.Errorf("a reader of %c got %q of another call", mark, other[:1])
								}
								if err != nil {
									return
								}
							}
						})
						<-begun
					} else if read {
						if got, err := io.ReadAll(req.Body); err != nil || !bytes.Equal(got, body) {
							t.Errorf("the upstream got %d bytes of %d, %v", len(got), len(body), err)
						}
					}
					_, err := w.Write([]byte("{}"))
					return err
				}
				req := httptest.NewRequest("POST", "/v1/chat/completions", bytes.NewReader(body))
				if r.IntN(2) == 0 {
					req.ContentLength = -1
				}
				if err := g.Begin(req, options, around).Serve(nowhere{http.Header{}}, NextFunc(next)); err != nil {
					t.Error(err)
				}
			}
			close(goOn)
		})
	}
	calls.Wait()
	late.Wait()
}
