package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	keyPrefix = "sk-weir-" // tells people and secret scanners what a key is for
	keyRandom = 32         // base62 characters after the prefix: 190 bits

	minKey = 20  // characters of a key made elsewhere
	maxKey = 512 // bytes of any key; a longer one is unknown without being hashed
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// New makes a key: "sk-weir-" and 32 characters of 0–9, A–Z and a–z, each of them
// equally likely and from crypto/rand, so 190 bits that nobody can guess.
func New() string {
	key := make([]byte, 0, len(keyPrefix)+keyRandom)
	key = append(key, keyPrefix...)
	var random [2 * keyRandom]byte
	for {
		rand.Read(random[:]) // never fails
		for _, b := range random {
			if len(key) == cap(key) {
				return string(key)
			}
			if c, ok := base62Of(b); ok {
				key = append(key, c)
			}
		}
	}
}

// base62Of turns a random byte into a character. The 8 highest values are
// refused: with them the first characters of the alphabet would come more often.
func base62Of(b byte) (c byte, ok bool) {
	const even = 256 / len(base62) * len(base62)
	return base62[int(b)%len(base62)], int(b) < even
}

// Digest returns the SHA-256 of a key in lower-case hex, as the file of keys has
// it. It refuses a key that is shorter than 20 characters, longer than 512
// bytes, or not made of visible ASCII characters alone, since no header brings
// such a key as it was meant. The error does not show the key.
//
// A plain SHA-256 is enough here, and a slow password hash with a salt would be
// wrong. Passwords need those because people choose them, so that whoever steals
// the file can try the likely ones. A key is chosen by a random generator:
// against 128 bits of entropy or more, trying 10¹² keys a second finds one in about
// 10¹⁹ years, and a factor of a million by a slow hash is of no interest. But the
// slow hash would cost every call a tenth of a second and many megabytes, which is an
// attack of its own. A key made elsewhere can have less entropy than its length
// suggests, and nothing here can see that; 20 random characters of base62 have
// 119 bits, which is why shorter ones are refused.
func Digest(key string) (string, error) {
	if len(key) < minKey {
		return "", fmt.Errorf("the key has %d characters and could be guessed: a key needs at least %d random ones; let one be made for you", len(key), minKey)
	}
	if len(key) > maxKey {
		return "", fmt.Errorf("the key has %d bytes; at most %d are possible", len(key), maxKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", errors.New("the key has a blank, a line break or a character beyond ASCII in it, which headers do not carry; was it cut out with something beside it?")
		}
	}
	sum := digest(key)
	return hex.EncodeToString(sum[:]), nil
}

// digest is the SHA-256 of a key of at most maxKey bytes. The copy is on the
// stack, since a conversion of the string would be on the heap, and is wiped.
func digest(key string) [sha256.Size]byte {
	var scratch [maxKey]byte
	n := copy(scratch[:], key)
	sum := sha256.Sum256(scratch[:n])
	clear(scratch[:n])
	return sum
}
