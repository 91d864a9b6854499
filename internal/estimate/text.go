package estimate

// run is the run of characters of one script that the text is in. The zero
// value is the beginning of a string.
type run struct {
	script script
	length int // of a Latin word since its last joint, or of a row of spaces
}

// shortWord is the length up to which a Latin word costs no more for its length.
const shortWord = 4

// text counts the features of the next bytes of a string's inside. Nearly all
// of the work is done here: the run and the counters are kept in registers,
// and words and foreign letters are read in loops of their own.
func (s *Scanner) text(p []byte) {
	was, length := s.run.script, s.run.length
	var steps packed
	s.bytes += int64(len(p))
	for i := 0; i < len(p); {
		c := p[i]
		of := scripts[c]
		if s.decode.kind != between || of == byteRuns {
			if s.decode.kind == between && c == '\\' && i+1 < len(p) && escapedScripts[p[i+1]] < byteRuns {
				// An escape of one character, as for a line break or a quote.
				of = escapedScripts[p[i+1]]
				c = unescaped[p[i+1]]
				s.bytes--
				i++
			} else {
				s.run = run{was, length}
				i = s.slowly(p, i)
				was, length = s.run.script, s.run.length
				continue
			}
		}
		if of == smallRun {
			from := i
			for i++; i < len(p) && scripts[p[i]] == smallRun; i++ {
			}
			steps.add(s, was, smallRun)
			if was != smallRun && was != capitalRun {
				length = 0
			}
			was = smallRun
			before := length
			if length += i - from; length > shortWord {
				s.n[longer] += int64(length - max(before, shortWord))
			}
			continue
		}
		i++
		if of == blankRun {
			if was != blankRun {
				was, length = blankRun, 0
			}
			if length++; length > 1 || c == '\t' {
				length = s.blanks(length)
			}
			continue
		}
		steps.add(s, was, of)
		was, length = of, 1
	}
	steps.flush(s)
	s.run = run{was, length}
}

// blanks counts a space that is the given one of its row, or a tab, and
// returns the length of the row from which the next is to be counted.
func (s *Scanner) blanks(length int) int {
	if length <= 2 {
		s.n[spaces]++
		return 2
	}
	s.blank++
	return 3
}

// slowly reads what text does not: the rest of what decode has begun, or one
// character or more that begin at p[i], all of them or only the beginning, with
// the rest left to decode. It returns where it stopped.
func (s *Scanner) slowly(p []byte, i int) int {
	if s.decode.kind != between {
		if s.decode.next(s, p[i]) {
			i++
		}
		return i
	}
	if c := p[i]; c != '\\' {
		return s.foreign(p, i)
	}
	for i+5 < len(p) && p[i] == '\\' && p[i+1] == 'u' {
		a, b, c, d := hex[p[i+2]], hex[p[i+3]], hex[p[i+4]], hex[p[i+5]]
		r := uint32(a)<<12 | uint32(b)<<8 | uint32(c)<<4 | uint32(d)
		if a|b|c|d > 15 || r&0xf800 == 0xd800 {
			break
		}
		s.bytes += size(r) - 6
		s.rune(r)
		if i += 6; i == len(p) || p[i] != '\\' {
			return i
		}
	}
	if i+1 < len(p) && escapedScripts[p[i+1]] < byteRuns {
		return i // text does that itself
	}
	s.decode.begin(s, '\\')
	return i + 1
}

// foreign reads characters beyond ASCII from p[i] on.
func (s *Scanner) foreign(p []byte, i int) int {
	was := s.run.script
	var same int64 // characters of the script since it began, not counted yet
	for i < len(p) {
		var r uint32
		var n int
		switch c := p[i]; {
		case c&0xf0 == 0xe0 && i+2 < len(p) && p[i+1]&0xc0 == 0x80 && p[i+2]&0xc0 == 0x80:
			r, n = uint32(c&0x0f)<<12|uint32(p[i+1]&0x3f)<<6|uint32(p[i+2]&0x3f), 3
		case c&0xe0 == 0xc0 && i+1 < len(p) && p[i+1]&0xc0 == 0x80:
			r, n = uint32(c&0x1f)<<6|uint32(p[i+1]&0x3f), 2
		}
		of := blocks[r>>6&(1<<10-1)]
		if of != was || of == smallRun || r < 0x80 {
			s.n[countedAs[was]] += same
			if r < 0x80 || of == smallRun { // not of these, or the end
				if same > 0 {
					s.run = run{was, 1}
				}
				switch {
				case n > 0:
					s.rune(r)
					return i + n
				case p[i] >= 0x80:
					s.decode.begin(s, p[i])
					return i + 1
				}
				return i
			}
			if of >= firstSpaced && of <= lastSpaced {
				s.n[apart]++
			}
			was, same = of, 0
		}
		same++
		i += n
	}
	if same > 0 {
		s.n[countedAs[was]] += same
		s.run = run{was, 1}
	}
	return i
}

// char counts one character of ASCII.
func (s *Scanner) char(c byte) {
	of := scripts[c]
	switch of {
	case blankRun:
		if s.run.script != blankRun {
			s.run = run{}
		}
		if s.run.length++; s.run.length > 1 || c == '\t' {
			s.run.length = s.blanks(s.run.length)
		}
		return
	case smallRun:
		s.letter()
		return
	case byteRuns: // the backslash
		of = signRun
	}
	var k packed
	k.add(s, s.run.script, of)
	k.flush(s)
	s.run = run{of, 1}
}

// letter counts one Latin letter that is no ASCII capital.
func (s *Scanner) letter() {
	if s.run.script != smallRun && s.run.script != capitalRun {
		if s.run.script == digitRun {
			s.n[joins]++
		}
		s.n[words]++
		s.run.length = 0
	}
	s.run.script = smallRun
	if s.run.length++; s.run.length > shortWord {
		s.n[longer]++
	}
}

// rune counts one character, however it was written.
func (s *Scanner) rune(r uint32) {
	if r < 0x80 {
		s.char(byte(r))
		return
	}
	of := scriptOf(r)
	if of == smallRun {
		s.n[accented]++
		s.letter()
		return
	}
	s.n[countedAs[of]]++
	if of != s.run.script && of >= firstSpaced && of <= lastSpaced {
		s.n[apart]++
	}
	s.run = run{of, 1}
}

// broken counts bytes that are no character, which a server replaces by a sign.
func (s *Scanner) broken() {
	s.n[others]++
	s.run = run{otherRun, 1}
}
