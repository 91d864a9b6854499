package corpus

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed text/*.txt
var files embed.FS

// language is one file of text: sentences with gaps, and lists of what fills them.
type language struct {
	sentences []string
	lists     map[string][]string
	words     []string
}

// read reads a language and keeps every second sentence, by half.
func read(name string, half int) language {
	b, err := files.ReadFile("text/" + name + ".txt")
	if err != nil {
		panic(err) // embedded
	}
	l := language{lists: map[string][]string{}}
	n := 0
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case line[0] == '@':
			list, rest, _ := strings.Cut(line[1:], " ")
			if list == "words" {
				l.words = strings.Fields(rest)
			} else {
				l.lists[list] = strings.Split(rest, " | ")
			}
		default:
			if n%2 == half {
				l.sentences = append(l.sentences, line)
			}
			n++
		}
	}
	return l
}

// sentence returns one sentence with its gaps filled.
func (l *language) sentence(r *random) string {
	s := pick(r, l.sentences)
	for {
		from := strings.IndexByte(s, '{')
		if from < 0 {
			return s
		}
		to := from + strings.IndexByte(s[from:], '}')
		fill := ""
		switch gap := s[from+1 : to]; gap {
		case "n":
			fill = fmt.Sprint(r.spread(2, 20000))
		case "year":
			fill = fmt.Sprint(r.between(1880, 2035))
		default:
			fill = pick(r, l.lists[gap])
		}
		s = s[:from] + fill + s[to+1:]
	}
}

// text returns about size bytes: mostly prose, now and then a list, a heading or a line of figures.
func (l *language) text(r *random, size int) string {
	var b strings.Builder
	for b.Len() < size {
		if b.Len() > 0 {
			b.WriteString(pick(r, []string{"\n\n", "\n", " "}))
		}
		switch k := r.below(20); {
		case k < 2:
			for i := range r.between(3, 6) {
				if r.chance(50) {
					fmt.Fprintf(&b, "- %s %s: %d\n", pick(r, l.words), pick(r, l.words), r.spread(1, 5000))
				} else {
					fmt.Fprintf(&b, "%d. %s %s\n", i+1, pick(r, l.words), pick(r, l.words))
				}
			}
		case k < 3:
			fmt.Fprintf(&b, "## %s %s\n", pick(r, l.words), pick(r, l.words))
		case k < 4:
			for range r.between(4, 15) {
				b.WriteString(pick(r, l.words) + pick(r, []string{" ", " ", " ", ", "}))
			}
		case k < 5:
			fmt.Fprintf(&b, "**%s** — %s (%d.%d %%)", pick(r, l.words), pick(r, l.words), r.below(100), r.below(10))
		default:
			for i := range r.between(1, 5) {
				if i > 0 {
					b.WriteString(" ")
				}
				b.WriteString(l.sentence(r))
			}
		}
	}
	return b.String()
}
