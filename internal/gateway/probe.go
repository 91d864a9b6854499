package gateway

import (
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/limit"
)

// probeHeader carries a word that only this process knows. It does not go
// upstream.
const probeHeader = "X-Weir-Probe"

// probeMarks are the words of the gateway's own calls that are on their way. Each is
// good for one call, since a header ends up in access logs.
type probeMarks struct {
	mu    sync.Mutex
	words map[string]struct{}
}

// ProbeHeader returns a header that marks one call as the gateway's own: a
// synthetic one, which passes without a key, waits in the queue like all others, and
// counts for no limit, no budget, no objective and no bill. DropProbe must follow when
// the call is over, so that a word which never came back is good for nobody.
func (g *Gateway) ProbeHeader() (name, value string) {
	word := rand.Text()
	g.probing.mu.Lock()
	defer g.probing.mu.Unlock()
	if g.probing.words == nil {
		g.probing.words = make(map[string]struct{})
	}
	g.probing.words[word] = struct{}{}
	return probeHeader, word
}

// DropProbe forgets what ProbeHeader returned.
func (g *Gateway) DropProbe(value string) { g.probing.take(value) }

// take forgets a word, and tells whether it was good.
func (m *probeMarks) take(word string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, good := m.words[word]
	delete(m.words, word)
	return good
}

// isProbe tells whether a call is the gateway's own, and takes the mark off.
func (g *Gateway) isProbe(h http.Header) bool {
	said := first(h, probeHeader)
	if said == "" || !g.probing.take(said) {
		return false // what somebody else put there is theirs, and passes
	}
	delete(h, probeHeader)
	return true
}

// admitProbe lets the gateway's own call wait for its turn, so that it meets what
// others meet, and asks nothing else.
func (c *Call) admitProbe(mode limit.Mode, now time.Time) *refusal {
	c.expect()
	if c.options.Admission.Queue != nil && mode == limit.Enforce {
		return c.wait(now)
	}
	return nil
}
