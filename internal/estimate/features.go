package estimate

// The features of a prompt: what of its text a tokenizer is likely to charge
// for. All are counts, so the prediction for two texts in one body is the sum
// of the predictions, but for the intercept.
const (
	one        = iota // always 1: the template around the messages, and what an upstream adds of its own
	words             // runs of Latin letters; a capital after a small letter begins another
	longer            // letters of such a run beyond the fourth
	joins             // changes between small and capital letter, or letter and digit, with nothing between
	capitals          // capital letters that follow a capital letter
	digits            // digits
	figures           // runs of digits
	spaces            // runs of two or more spaces, and tabs
	newlines          // runs of line breaks
	signs             // runs of ASCII punctuation
	accented          // Latin letters beyond ASCII
	cyrillic          // Cyrillic letters
	greek             // Greek letters
	hebrew            // Hebrew letters
	arabic            // Arabic letters
	devanagari        // letters and marks of Hindi and Marathi
	indic             // letters and marks of India's other scripts
	thai              // letters and marks of the scripts of South East Asia
	hangul            // Korean syllables
	kana              // Japanese hiragana and katakana
	han               // Chinese characters
	apart             // runs of one of the scripts above that put words apart: Cyrillic to Indic, Hangul
	others            // everything else: punctuation beyond ASCII, emoji, rare scripts, broken bytes
	values            // strings that are not object keys
	keys              // object keys within messages and tools
	numbers           // numbers outside strings, such as an input that is tokens already
	media             // images, sound and files
	numFeatures
)

// Features are what a [Scanner] saw of one request body. The zero value is a
// body of which nothing is known. It may be copied.
type Features struct {
	x [numFeatures]float64
	// bytes is the size of the text in UTF-8, what stands for media left out.
	bytes int64
	// blank is how much of it are spaces in a row after the second.
	blank      int64
	mediaBytes int64
	known      bool
}

// Known tells whether the body was JSON and could be looked into. Of a
// multipart form, a compressed or an empty body nothing is known.
func (f *Features) Known() bool { return f.known }

// Bytes returns the bytes of the prompt's text: strings as the model reads
// them, in UTF-8, without media.
func (f *Features) Bytes() int64 { return f.bytes }

// Media returns how many images, sounds and files were left out of the text,
// and the bytes that stood for them. A medium named by its URL has none.
func (f *Features) Media() (count, bytes int64) { return int64(f.x[media]), f.mediaBytes }

// How far a prediction may go, whatever an upstream reports.
const (
	// No tokenizer in use makes fewer tokens than one for 16 bytes of text,
	// rows of spaces aside.
	fewest = 16
	// overhead is what template, hidden instructions and tool preambles may add.
	overhead = 4096
	// perMedium and perPart bound what one medium costs, and the structure
	// around one string, key or number.
	perMedium = 16384
	perPart   = 16
	// mostTokens is far above any prompt, and far below where a conversion
	// from floating point would fail.
	mostTokens = 1 << 40
)

// bounds returns the smallest and the largest number of tokens that are
// believed of the body: one for 16 bytes, and one for each byte plus overhead.
func (f *Features) bounds() (low, high float64) {
	low = min(max(1, float64(f.bytes-f.blank)/fewest), mostTokens)
	high = float64(f.bytes) + overhead + perMedium*f.x[media] + perPart*(f.x[values]+f.x[keys]+f.x[numbers])
	return low, max(low, min(high, mostTokens))
}
