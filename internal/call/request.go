package call

import "hash/maphash"

// Request is what a bounded look at the request told. Text fields are empty
// and counts unknown when the request did not say, or when the look did not
// reach that far; Degraded on the Record tells which.
type Request struct {
	// Model as the client named it, at most MaxName bytes.
	Model string
	// Stream is whether the client asked for a streamed answer; for APIs that
	// stream unless told otherwise (Ollama) an absent field means true.
	Stream bool
	// MaxTokens is the client's cap on output tokens.
	MaxTokens Count
	// N is the number of choices asked for.
	N Count
	// BestOf is the number of choices that are written, of which N are returned.
	BestOf Count
	// Echo asks a completion to repeat the prompt in its first event.
	Echo bool
	// Prompt is the beginning of the prompt that would be repeated; zero when
	// it is not text, or not told.
	Prompt Digest
	// IncludeUsage is the client's own word on stream_options.include_usage.
	IncludeUsage Choice
	// Multipart is whether the body is a form rather than JSON.
	Multipart bool
}

// Choice is a client's explicit yes or no, or silence.
type Choice uint8

const (
	Unsaid Choice = iota
	Yes
	No
)

// Digest stands for the beginning of a text: enough to tell whether another
// text begins alike, and nothing to read it back from. The zero value stands
// for any text.
type Digest struct {
	n   int
	sum uint64
}

// digestBytes is how much of a text a Digest stands for.
const digestBytes = 64

var digestSeed = maphash.MakeSeed()

// DigestOf returns the Digest of a text.
func DigestOf(text []byte) Digest {
	if len(text) == 0 {
		return Digest{}
	}
	text = text[:min(len(text), digestBytes)]
	return Digest{n: len(text), sum: maphash.Bytes(digestSeed, text)}
}

// Begins tells whether text begins as the Digest's own text does.
func (d Digest) Begins(text []byte) bool {
	return len(text) >= d.n && (d.n == 0 || maphash.Bytes(digestSeed, text[:d.n]) == d.sum)
}

// MaxName is the number of bytes kept of any name that comes from outside
// (model, response id, finish reason, error code). What is longer is cut at a
// rune boundary.
const MaxName = 128

// Name copies at most MaxName bytes of b, cut at a rune boundary, without
// control characters.
func Name(b []byte) string {
	if len(b) > MaxName {
		cut := MaxName
		for cut > MaxName-4 && b[cut]&0xC0 == 0x80 {
			cut--
		}
		b = b[:cut]
	}
	for i, c := range b {
		if c < ' ' || c == 0x7f {
			clean := append([]byte(nil), b[:i]...)
			for _, c := range b[i:] {
				if c >= ' ' && c != 0x7f {
					clean = append(clean, c)
				}
			}
			return string(clean)
		}
	}
	return string(b)
}

// NameOf is Name for a string; one that needs no change is returned as it is.
func NameOf(s string) string {
	if len(s) > MaxName {
		return Name([]byte(s))
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return Name([]byte(s))
		}
	}
	return s
}
