package estimate

// keyName is a key as far as it matters to tell media from text.
type keyName uint8

const (
	anyKey    keyName = iota
	dataKey           // holds bare base64
	sourceKey         // holds an object whose "url" is a medium's address
	urlKey            // holds an address: a medium's if the object is the value of a key that says so
	mediumKey         // holds a medium's address, or an object as sourceKey does
)

// keyText is a key as it is written, as long as it may be of interest.
type keyText struct {
	b [10]byte
	n uint8 // up to len(b), or len(b)+1: too long
}

func (k *keyText) add(p []byte) {
	if int(k.n)+len(p) > len(k.b) {
		k.n = uint8(len(k.b)) + 1
		return
	}
	k.n += uint8(copy(k.b[k.n:], p))
}

func (k *keyText) name() keyName {
	if int(k.n) > len(k.b) {
		return anyKey
	}
	switch string(k.b[:k.n]) {
	case "data", "images": // of Anthropic, Gemini and sound for OpenAI; of Ollama
		return dataKey
	case "source":
		return sourceKey
	case "url":
		return urlKey
	case "image_url", "audio_url", "video_url", "file_url", "file_uri", "fileUri", "file_data", "fileData", "image_data":
		return mediumKey
	}
	return anyKey
}

// probe watches the beginning of a string for the signs of a medium. Until it
// is settled what the string is, it counts as text, to be undone if it was none.
type probe struct {
	saved counts // before the string
	seen  int64  // bytes of the string so far
	tail  uint64 // the last 8 of them
	left  forms  // what it can still be
	begun bool
}

// forms is a set of the ways in which a medium is written.
type forms uint8

const (
	dataURL    forms = 1 << iota // data:image/png;base64,…
	bareBase64                   // base64 under a key for it
	address                      // http… under a key for it
)

const (
	// longestHeader is how many bytes of a data URL may come before its data.
	longestHeader = 128
	// surelyBase64 is how many characters of base64, and no others, begin a
	// string that is taken for bare base64.
	surelyBase64 = 64
	// endOfHeader is ";base64,".
	endOfHeader = ';'<<56 | 'b'<<48 | 'a'<<40 | 's'<<32 | 'e'<<24 | '6'<<16 | '4'<<8 | ','
)

// possible tells what the value of the key can be. Under a key that does not hold
// media, a data URL is text to an engine, and counts as such: a prompt must not
// hide behind one.
func possible(name, parent keyName) forms {
	switch {
	case name == dataKey:
		return dataURL | bareBase64
	case name == mediumKey, name == urlKey && (parent == mediumKey || parent == sourceKey):
		return dataURL | address
	case name == urlKey, name == sourceKey:
		return dataURL
	}
	return 0
}

// settle looks at the next piece of an unsettled string and returns what of it
// is to be counted as text.
func (s *Scanner) settle(p []byte) []byte {
	b := &s.probe
	if !b.begun && len(p) > 0 {
		b.begun = true
		if b.left == 0 || b.left == dataURL && p[0] != 'd' { // the common case
			s.kind = plainText
			return p
		}
		b.saved = s.counts
	}
	for i, c := range p {
		if c == '\\' { // some write every slash as \/
			continue
		}
		b.tail = b.tail<<8 | uint64(c)
		b.seen++
		if b.step(c) {
			s.counts, s.decode = b.saved, decoding{}
			s.n[media]++
			s.mediaBytes += b.seen + int64(len(p)-i-1)
			s.kind = medium
			return nil
		}
		if b.left == 0 {
			s.kind = plainText
			return p
		}
	}
	return p
}

// step takes the next byte of the string and tells whether it shows a medium.
func (b *probe) step(c byte) bool {
	if b.left&dataURL != 0 {
		switch {
		case b.seen <= int64(len("data:")) && c != "data:"[b.seen-1], b.seen > longestHeader:
			b.left &^= dataURL
		case c == ',':
			if b.tail == endOfHeader {
				return true
			}
			b.left &^= dataURL
		}
	}
	if b.left&bareBase64 != 0 {
		if !base64[c] {
			b.left &^= bareBase64
		} else if b.seen == surelyBase64 {
			return true
		}
	}
	if b.left&address != 0 {
		if c != "http"[b.seen-1] {
			b.left &^= address
		} else if b.seen == 4 {
			return true
		}
	}
	return false
}

// base64 are the characters of base64, of either alphabet.
var base64 = func() (is [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=" {
		is[c] = true
	}
	return is
}()
