package estimate

// packed are eight counters of 8 bits each, kept in one register while text is
// read.
type packed struct {
	sum   uint64
	steps uint8 // since the last flush
}

// packedAs are the features that are counted so, the lowest byte first.
var packedAs = [8]uint8{words, joins, capitals, digits, figures, newlines, signs, others}

// step is what a character of one script counts for after one of another.
var step = func() (of [32][8]uint64) {
	count := func(at *uint64, feature uint8) {
		for place, f := range packedAs {
			if f == feature {
				*at += 1 << (8 * place)
			}
		}
	}
	for was := range script(len(of)) {
		latin := was == smallRun || was == capitalRun
		at := &of[was]
		if !latin {
			count(&at[smallRun], words)
		}
		if was == digitRun {
			count(&at[smallRun], joins)
			count(&at[capitalRun], joins)
		}
		if was == capitalRun {
			count(&at[capitalRun], capitals)
		} else {
			count(&at[capitalRun], words)
		}
		if was == smallRun {
			count(&at[capitalRun], joins)
		}
		count(&at[digitRun], digits)
		if was != digitRun {
			count(&at[digitRun], figures)
		}
		if latin {
			count(&at[digitRun], joins)
		}
		if was != breakRun {
			count(&at[breakRun], newlines)
		}
		if was != signRun {
			count(&at[signRun], signs)
		}
		count(&at[oddRun], others)
	}
	return of
}()

// add counts a character of script of after one of script was.
func (k *packed) add(s *Scanner, was, of script) {
	k.sum += step[was&31][of&7]
	if k.steps++; k.steps == 255 {
		k.flush(s)
	}
}

// flush moves the counts to the Scanner.
func (k *packed) flush(s *Scanner) {
	for i, f := range packedAs {
		s.n[f] += int64(k.sum >> (8 * i) & 0xff)
	}
	*k = packed{}
}
