package alert

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
)

const (
	saltLen = 16
	tagLen  = 16
	// tagRounds makes a guess at a password in a receiver's header cost some milliseconds
	// for whoever has a file with its tag, and this process as much, once for each receiver.
	tagRounds = 50_000
)

// tagger makes tags of receivers: by them a process knows those that the one before told.
// A receiver's identity is a plain hash of its address and headers, and so would confirm a
// guess at them: it stays in the process.
type tagger struct {
	rounds int
	salt   [saltLen]byte
	tags   map[string]string // of identities
}

func newTagger() tagger {
	t := tagger{rounds: tagRounds, tags: make(map[string]string)}
	_, _ = rand.Read(t.salt[:]) // never fails; it ends the process instead
	return t
}

// receiverTag is PBKDF2 with HMAC-SHA-256 of an identity, 32 hexadecimal digits; "" where
// the process's rules on cryptography forbid it, and then nothing is kept of that receiver.
func receiverTag(identity string, salt [saltLen]byte, rounds int) string {
	tag, err := pbkdf2.Key(sha256.New, identity, salt[:], rounds, tagLen)
	if err != nil {
		return ""
	}
	return hex.EncodeToString(tag)
}

// lockTagged locks m.mu at an instant at which all receivers have tags under a salt, nil
// for the one in use, which it is from then on. The tags are made without the lock.
func (m *Manager) lockTagged(salt *[saltLen]byte) {
	m.mu.Lock()
	t := m.tagger
	if salt != nil && *salt != t.salt {
		t.salt, t.tags = *salt, nil
	}
	t.tags = maps.Clone(t.tags)
	if t.tags == nil {
		t.tags = make(map[string]string)
	}
	for {
		missing := ""
		for _, out := range m.outlets {
			if _, there := t.tags[out.manners.identity]; !there {
				missing = out.manners.identity
				break
			}
		}
		if missing == "" {
			break
		}
		m.mu.Unlock()
		t.tags[missing] = receiverTag(missing, t.salt, t.rounds)
		m.mu.Lock()
	}
	// Those of receivers that are gone are not held on to.
	maps.DeleteFunc(t.tags, func(identity, _ string) bool {
		for _, out := range m.outlets {
			if out.manners.identity == identity {
				return false
			}
		}
		return true
	})
	m.tagger = t
}
