package estimate

// script is what kind of character one is.
type script uint8

const (
	blankRun   script = iota // spaces and tabs; what comes before a string counts as one
	smallRun                 // Latin letters, but for ASCII capitals
	capitalRun               // ASCII capitals
	digitRun
	breakRun // line breaks
	signRun  // ASCII punctuation
	oddRun   // other control characters
	byteRuns // the backslash and every byte from 0x80 on: no script, but bytes that are more than one character, or less
	cyrillicRun
	greekRun
	hebrewRun
	arabicRun
	devanagariRun
	indicRun
	hangulRun
	thaiRun
	kanaRun
	hanRun
	otherRun
	numScripts

	// Those whose words stand apart.
	firstSpaced = cyrillicRun
	lastSpaced  = hangulRun
)

// countedAs is the feature of each script beyond ASCII.
var countedAs = [numScripts]uint8{cyrillicRun: cyrillic, greekRun: greek, hebrewRun: hebrew, arabicRun: arabic,
	devanagariRun: devanagari, indicRun: indic, hangulRun: hangul, thaiRun: thai, kanaRun: kana, hanRun: han, otherRun: others}

// scripts are the scripts of the single bytes.
var scripts = func() (of [256]script) {
	for c := range of {
		switch {
		case c >= 0x80 || c == '\\':
			of[c] = byteRuns
		case c == ' ' || c == '\t':
			of[c] = blankRun
		case c == '\n' || c == '\r':
			of[c] = breakRun
		case 'a' <= c && c <= 'z':
			of[c] = smallRun
		case 'A' <= c && c <= 'Z':
			of[c] = capitalRun
		case '0' <= c && c <= '9':
			of[c] = digitRun
		case c < ' ' || c == 0x7f:
			of[c] = oddRun
		default:
			of[c] = signRun
		}
	}
	return of
}()

// scriptOf returns the script of a character beyond ASCII.
func scriptOf(r uint32) script {
	if r < 0x10000 {
		return blocks[r>>6]
	}
	if r>>17 == 1 || r>>16 == 3 { // the supplementary ideographic planes
		return hanRun
	}
	return otherRun
}

// blocks are the scripts of the first plane of Unicode, in steps of 64
// characters: where a block ends within a step the larger part decides.
var blocks = func() (of [0x10000 >> 6]script) {
	for _, b := range []struct {
		from, to rune // the latter is the first that is not of it
		script   script
	}{
		{0x0000, 0x10000, otherRun},
		{0x00c0, 0x0380, smallRun}, // Latin, phonetic letters, combining accents
		{0x0380, 0x0400, greekRun},
		{0x0400, 0x0540, cyrillicRun},
		{0x0580, 0x0600, hebrewRun},
		{0x0600, 0x0900, arabicRun}, // and its kin: Syriac, Thaana, N'Ko
		{0x0900, 0x0980, devanagariRun},
		{0x0980, 0x0e00, indicRun},  // Bengali to Sinhala
		{0x0e00, 0x10c0, thaiRun},   // Thai, Lao, Tibetan, Burmese
		{0x1100, 0x1200, hangulRun}, // letters
		{0x1780, 0x1800, thaiRun},   // Khmer
		{0x1e00, 0x1f00, smallRun},  // Vietnamese
		{0x1f00, 0x2000, greekRun},  // Greek with accents
		{0x2e80, 0x3000, hanRun},    // radicals
		{0x3040, 0x3100, kanaRun},   // hiragana, katakana
		{0x3100, 0x31c0, hangulRun}, // letters; bopomofo, too rare to matter
		{0x3400, 0xa000, hanRun},    // ideographs
		{0xac00, 0xd7c0, hangulRun}, // syllables
		{0xf900, 0xfb00, hanRun},    // compatibility
		{0xfb00, 0xfe00, arabicRun}, // presentation forms
		{0xfe40, 0xff00, arabicRun}, // presentation forms
		{0xff80, 0xffc0, kanaRun},   // half width
	} {
		for r := b.from; r < b.to; r += 64 {
			of[r>>6] = b.script
		}
	}
	return of
}()
