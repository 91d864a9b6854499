package keys

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"hash"
	"sync"
)

const (
	idLength = 10 // characters of an id: 50 bits
	idBytes  = 7  // bytes of the code that they need
)

// maxKept is the largest key, in bytes, for which the scratch space is kept.
const maxKept = 1 << 10

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Namer gives keys their ids: the first 10 characters, in lower case, of the
// base32 form (RFC 4648) of HMAC-SHA-256(secret, key).
//
// A keyed hash and not a plain one, because API keys are often short, or of a
// known form, or leaked elsewhere: whoever sees an id in a log could try such
// keys against a plain hash at leisure. Without the secret there is nothing to try them
// against. Base32 because an id is read aloud, typed, and used as a file name
// and as a metric label: it has one case, no signs, and no 0, 1 or 8 to mistake.
//
// What an id does not do: it does not prove that a caller has the key, so it
// must not admit anyone. It does not hide which calls belong together; that is its
// use. It does not protect a key from whoever has the secret and can guess the
// key, nor does it stay the same under another secret. With 50 bits, two of
// n keys share an id with a probability of about n²/2⁵¹: one in two
// billion for a thousand keys, one in 2,000 for a million.
//
// Ids are computed afresh for each call. A cache would be quicker by little and
// would need the keys, or something that finds them again, in memory.
//
// A Namer may be used by many goroutines at once.
type Namer struct {
	macs sync.Pool // of *mac
}

// mac is the space in which one id is computed.
type mac struct {
	hash hash.Hash
	key  []byte // a copy of the key, wiped after use
	sum  [sha256.Size]byte
	text [12]byte // idBytes in base32
}

// NewNamer returns a Namer under the given secret, which is copied. It should be 32
// random bytes that outlive the process. The same secret gives the same ids.
func NewNamer(secret []byte) *Namer {
	secret = append([]byte(nil), secret...)
	n := new(Namer)
	n.macs.New = func() any { return &mac{hash: hmac.New(sha256.New, secret)} }
	return n
}

// ID returns the id of a key: 10 characters of a–z and 2–7. The id of "" is "".
func (n *Namer) ID(key string) string {
	if key == "" {
		return ""
	}
	m := n.macs.Get().(*mac)
	defer n.macs.Put(m)
	return m.id(key)
}

func (m *mac) id(key string) string {
	m.hash.Reset()
	m.key = append(m.key[:0], key...)
	m.hash.Write(m.key) // a hash never fails
	clear(m.key)
	if cap(m.key) > maxKept {
		m.key = nil
	}
	m.hash.Sum(m.sum[:0])
	idEncoding.Encode(m.text[:], m.sum[:idBytes])
	return string(m.text[:idLength])
}
