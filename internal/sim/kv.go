package sim

import "container/list"

// kvCache counts the blocks of the KV cache and remembers which prompt
// prefixes they hold. Blocks of a prefix that no running sequence uses stay,
// least recently used first out, until their room is needed.
type kvCache struct {
	blockTokens int
	total       int
	free        int               // blocks that hold nothing
	prefixes    map[uint64]*block // nil when prefixes are not cached
	idle        *list.List        // of *block: prefixes nobody uses, oldest first
}

// block is a block whose content is named and may be shared.
type block struct {
	hash uint64
	uses int
	idle *list.Element // its place among the idle; nil while in use
}

func newKVCache(blocks, blockTokens int, prefixes bool) *kvCache {
	k := &kvCache{blockTokens: blockTokens, total: blocks, free: blocks, idle: list.New()}
	if prefixes {
		k.prefixes = make(map[uint64]*block)
	}
	return k
}

// used is the number of blocks that running sequences hold.
func (k *kvCache) used() int { return k.total - k.free - k.idle.Len() }

func (k *kvCache) blocksFor(tokens int) int { return (tokens + k.blockTokens - 1) / k.blockTokens }

// cachedPrefix returns how many leading blocks of a prompt are cached. At least
// one of the sequence's tokens is left to compute: the next token comes of it.
func (k *kvCache) cachedPrefix(hashes []uint64, tokens int) int {
	n := 0
	for n < min(len(hashes), (tokens-1)/k.blockTokens) && k.prefixes[hashes[n]] != nil {
		n++
	}
	return n
}

// admit gives a waiting sequence the first hits blocks of its prompt from the
// cache and room for tokens in all; false, and nothing changed, when there is none.
func (k *kvCache) admit(s *sequence, hits, tokens int) bool {
	available := k.free + k.idle.Len()
	for _, h := range s.hashes[:hits] {
		if k.prefixes[h].idle != nil {
			available--
		}
	}
	if k.blocksFor(tokens)-hits > available {
		return false
	}
	for _, h := range s.hashes[:hits] {
		b := k.prefixes[h]
		if b.idle != nil {
			k.idle.Remove(b.idle)
			b.idle = nil
		}
		b.uses++
		s.shared = append(s.shared, b)
	}
	return k.grow(s, tokens)
}

// grow makes room for tokens in all; false, and nothing changed, when there is none.
func (k *kvCache) grow(s *sequence, tokens int) bool {
	need := k.blocksFor(tokens) - len(s.shared) - s.private
	if need > k.free+k.idle.Len() {
		return false
	}
	for ; need > 0; need-- {
		if k.free > 0 {
			k.free--
		} else {
			oldest := k.idle.Remove(k.idle.Front()).(*block)
			k.forget(oldest)
		}
		s.private++
	}
	return true
}

// publish names the full blocks of the prompt that have been computed, so that
// later sequences may use them. Where another sequence was first, its block
// stands and the rest of this one's stay private.
func (k *kvCache) publish(s *sequence) {
	if k.prefixes == nil {
		return
	}
	full := min(s.computed/k.blockTokens, len(s.hashes))
	for i := len(s.shared); i < full; i++ {
		h := s.hashes[i]
		if k.prefixes[h] != nil {
			return
		}
		b := &block{hash: h, uses: 1}
		k.prefixes[h] = b
		s.shared = append(s.shared, b)
		s.private--
	}
}

// release takes all blocks back. The end of the prompt is forgotten before its
// beginning, which more prompts share.
func (k *kvCache) release(s *sequence) {
	k.free += s.private
	s.private = 0
	for i := len(s.shared) - 1; i >= 0; i-- {
		b := s.shared[i]
		if b.uses--; b.uses == 0 {
			b.idle = k.idle.PushBack(b)
		}
	}
	s.shared = nil
}

// forget makes a block's content unknown, unless another block has that name by now.
func (k *kvCache) forget(b *block) {
	if k.prefixes[b.hash] == b {
		delete(k.prefixes, b.hash)
	}
}

// resize makes the cache of another size. What is idle goes first; where sequences
// hold more than there is, free is below 0 until enough of them gave theirs up.
func (k *kvCache) resize(blocks int) {
	k.free += blocks - k.total
	k.total = blocks
	for k.free < 0 && k.idle.Len() > 0 {
		k.forget(k.idle.Remove(k.idle.Front()).(*block))
		k.free++
	}
}

// remember says whether prefixes are cached from now on. What was cached is forgotten
// when they are not.
func (k *kvCache) remember(prefixes bool) {
	switch {
	case prefixes == (k.prefixes != nil):
	case prefixes:
		k.prefixes = make(map[uint64]*block)
	default:
		k.free += k.idle.Len()
		k.idle.Init()
		k.prefixes = nil
	}
}
