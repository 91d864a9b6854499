package workload

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
)

const (
	wordBits = 9 // of an index into the vocabulary
	// uniqueWords begin every prompt, or follow its common beginning, and are
	// those of no other prompt: half of them spell the index, half the seed and index.
	uniqueWords = 8
	spelled     = uniqueWords / 2
	// MaxTokens bounds what a prompt is aimed at: 10 million tokens.
	MaxTokens = 10_000_000
)

// Prompter writes prompts of common English words, aimed at a number of tokens.
// It has no tokenizer: it takes a prompt to cost overhead + slope·words tokens,
// at first 8 and 1, and corrects both from what Learn is told. It is safe for
// concurrent use. Make one with NewPrompter.
type Prompter struct {
	seed    uint64
	sharing Sharing
	shared  int // words of the common beginning
	fit     *fit
}

// NewPrompter returns a Prompter with seed 0 and no common beginning, which knows
// nothing yet.
func NewPrompter() *Prompter { return &Prompter{seed: mix(0), fit: new(fit)} }

// With returns a Prompter of another seed and sharing that learns together with p:
// what either is told serves both. The length of the common beginning in words is
// settled here, by what has been learned so far, so that it is one for all
// prompts to come. Prompts of different seeds have nothing in common.
func (p *Prompter) With(seed uint64, sharing Sharing) *Prompter {
	with := &Prompter{seed: mix(seed), sharing: sharing, fit: p.fit}
	if sharing.Tokens > 0 {
		_, slope, _ := p.fit.get()
		with.shared = max(1, int(math.Round(float64(sharing.Tokens)/slope)))
	}
	return with
}

// Learn tells that a prompt of so many words was counted as so many input
// tokens, those that came from a cache included. Only calls of this Prompter's own
// prompts may be told of. Counts that are not positive are passed over.
func (p *Prompter) Learn(words, tokens int) { p.fit.learn(words, tokens) }

// Learned returns what a prompt is taken to cost, overhead + slope·words
// tokens, and from how many calls that was learned: 0 for the initial 8 and 1.
func (p *Prompter) Learned() (overhead, slope float64, calls int) { return p.fit.get() }

// Prompt writes the prompt of the call with this index, aimed at so many tokens
// as the engine will count them, chat template included. It returns the
// number of its words too, at least 1: a prompt cannot be shorter than the overhead
// and a word.
//
// Without sharing, no two indices below 2³⁶ have their first four words in
// common, and one in 512 pairs the first: prompts share no block of a prefix cache but those
// that end with the chat template's beginning or, rarely, a word or two behind it.
// Prompts of fewer words differ as far as they go.
// With sharing, prompts begin with the words of their group, as many as make
// Sharing.Tokens tokens, and go on differently; a prompt too short for that has a shorter
// common beginning, and keeps its last eight words to itself.
func (p *Prompter) Prompt(index, tokens int) (text string, words int) {
	overhead, slope, _ := p.fit.get()
	aim := float64(min(max(tokens, 1), MaxTokens))
	words = max(1, int(math.Round(min((aim-overhead)/slope, aim/leastSlope)))) // bounded whatever was learned
	var b strings.Builder
	b.Grow(words * (averageLetters + 1))
	left := words
	if common := min(p.shared, words-uniqueWords); common > 0 {
		group := uint64(index % max(p.sharing.Groups, 1))
		write(&b, rand.NewPCG(mix(p.seed^0x67726f7570), group), common) // "group"
		left -= common
	}
	spell(&b, p.spelling(index), min(left, spelled))
	write(&b, rand.NewPCG(p.seed, mix(uint64(index))), left-spelled)
	return b.String(), words
}

// spelling is a number of 36 bits that is no other index's below 2³⁶, and looks
// as if drawn by chance: each step can be undone, so that none maps two numbers to one.
func (p *Prompter) spelling(index int) uint64 {
	const bits = spelled * wordBits
	const mask = 1<<bits - 1
	x := uint64(index) & mask
	for round := range uint64(3) {
		x = (x + mix(p.seed+round)) & mask
		x = x * 0x9e3779b97f4a7c15 & mask // odd, so it has an inverse
		x ^= x >> (bits / 2)
	}
	return x
}

// spell writes a number in words, the least digit first.
func spell(b *strings.Builder, x uint64, words int) {
	for ; words > 0; words-- {
		word(b, x)
		x >>= wordBits
	}
}

// write writes so many words, or none, as the source of chance says.
func write(b *strings.Builder, chance rand.Source, words int) {
	for words > 0 {
		x := chance.Uint64()
		for n := min(words, 64/wordBits); n > 0; n-- {
			word(b, x)
			x >>= wordBits
			words--
		}
	}
}

func word(b *strings.Builder, x uint64) {
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(vocabulary[x&(1<<wordBits-1)])
}

// averageLetters is a little more than the words of the vocabulary have.
const averageLetters = 5

// mix scrambles 64 bits so that close inputs give unrelated outputs (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fit keeps what Learn was told and the line through it.
type fit struct {
	mu     sync.Mutex // guards all below
	points [64]point  // the latest, in a ring
	told   int        // how many came in all
	known  bool
	line
}

func (f *fit) learn(words, tokens int) {
	if words < 1 || tokens < 1 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.points[f.told%len(f.points)] = point{float64(words), float64(tokens)}
	f.told++
	// Once the ring is full, one call in sixteen is reason enough to draw the line
	// again, which takes some ten or twenty microseconds.
	if f.told <= len(f.points) || f.told%16 == 0 {
		f.line, f.known = throughPoints(f.points[:min(f.told, len(f.points))]), true
	}
}

func (f *fit) get() (overhead, slope float64, told int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known {
		return initial.overhead, initial.slope, 0
	}
	return f.overhead, f.slope, f.told
}
