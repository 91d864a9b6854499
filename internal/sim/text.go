package sim

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mix scrambles 64 bits so that close inputs give unrelated outputs.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hashText folds text into a running hash (FNV-1a, then mixed).
func hashText(h uint64, text string) uint64 {
	h ^= 14695981039346656037
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return mix(h)
}

// token is one token of a prompt: all the engine needs is to tell two apart.
type token uint32

// longestToken is the number of bytes after which a word is split.
const longestToken = 6

// appendTokens cuts text roughly as byte-pair tokenizers do: words with the
// space before them, long words in pieces, digits by three, other characters
// alone. It stops as soon as there are more than limit tokens.
func appendTokens(to []token, text string, limit int) []token {
	for len(text) > 0 && len(to) <= limit {
		n := tokenLength(text)
		to = append(to, token(hashText(0, text[:n])))
		text = text[n:]
	}
	return to
}

func tokenLength(text string) int {
	i := 0
	if text[0] == ' ' {
		i = 1
	}
	kind, most := 0, longestToken
	for start := i; i < len(text) && i-start < most; {
		r, size := utf8.DecodeRuneInString(text[i:])
		k := 0
		switch {
		case unicode.IsLetter(r):
			k = 1
		case unicode.IsDigit(r):
			k = 2
		}
		if i == start {
			kind = k
			if kind == 2 {
				most = 3
			}
		} else if k != kind {
			break
		}
		i += size
		if kind == 0 {
			break
		}
	}
	return i
}

// blockHashes names each full block of a prompt by everything up to its end,
// so that two prompts share a block only when they agree from the start.
func blockHashes(salt string, prompt []token, blockTokens int) []uint64 {
	hashes := make([]uint64, 0, len(prompt)/blockTokens)
	h := hashText(0, salt)
	for len(prompt) >= blockTokens {
		for _, t := range prompt[:blockTokens] {
			h = mix(h ^ uint64(t))
		}
		hashes = append(hashes, h)
		prompt = prompt[blockTokens:]
	}
	return hashes
}

// Syllables of the engine's language. Some take more than one byte a letter,
// so that its readers meet runes that reads may split.
var syllables = [...]string{"ba", "ko", "ri", "ne", "tu", "sal", "mor", "vi", "den", "lo",
	"pra", "ki", "su", "fen", "ga", "hul", "jo", "wen", "ter", "as", "mi", "ol", "ñu", "né", "jä"}

// word returns token i of a text: words with the space before them, a full
// stop now and then, a capital after it.
func word(seed uint64, i int) string {
	if isStop(seed, i) {
		return "."
	}
	h := mix(seed ^ mix(uint64(i)))
	var b strings.Builder
	if i > 0 {
		b.WriteByte(' ')
	}
	for n := h>>8%3 + 1; n > 0; n-- {
		h = mix(h)
		s := syllables[h%uint64(len(syllables))]
		if (i == 0 || isStop(seed, i-1)) && b.Len() <= 1 {
			r, size := utf8.DecodeRuneInString(s)
			b.WriteRune(unicode.ToUpper(r))
			s = s[size:]
		}
		b.WriteString(s)
	}
	return b.String()
}

func isStop(seed uint64, i int) bool {
	ends := func(i int) bool { return mix(seed^mix(uint64(i)))%9 == 0 }
	return i > 1 && ends(i) && !ends(i-1)
}
