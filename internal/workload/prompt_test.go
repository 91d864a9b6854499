package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// beginning returns the first n words of a text.
func beginning(text string, n int) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(n, len(words))], " ")
}

func TestVocabulary(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range vocabulary {
		if len(w) < 3 || len(w) > 6 || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != "" || seen[w] {
			t.Errorf("%q is no word of three to six letters, or comes twice", w)
		}
		seen[w] = true
	}
}

// TestPromptsDiffer: among the prompts of several runs no two share their first
// eight words, and within a run not even four: whatever block of a prefix cache the first
// words of a prompt lie in, it is no other prompt's.
func TestPromptsDiffer(t *testing.T) {
	const n = 10000
	four, eight, first := map[string]string{}, map[string]string{}, map[string]int{}
	for seed := range uint64(2) {
		p := NewPrompter().With(seed, Sharing{})
		clear(four)
		for i := range n {
			text, words := p.Prompt(i, 40)
			who := fmt.Sprintf("prompt %d of seed %d", i, seed)
			if got := len(strings.Fields(text)); got != words || words != 32 {
				t.Fatalf("%s has %d words and says %d", who, got, words)
			}
			if other := four[beginning(text, 4)]; other != "" {
				t.Fatalf("%s and %s begin with the same four words", who, other)
			}
			if other := eight[beginning(text, 8)]; other != "" {
				t.Fatalf("%s and %s begin with the same eight words", who, other)
			}
			four[beginning(text, 4)], eight[beginning(text, 8)] = who, who
			first[beginning(text, 1)]++
		}
	}
	// From the first word on: each comes about as often as another.
	for w, count := range first {
		if len(first) != len(vocabulary) || count > 2*2*n/len(vocabulary) {
			t.Errorf("%d prompts of %d begin with %q, and there are %d first words", count, 2*n, w, len(first))
			break
		}
	}
}

// TestSpellingIsOneToOne over the whole range, at its ends and in between.
func TestSpellingIsOneToOne(t *testing.T) {
	p := NewPrompter().With(9, Sharing{})
	seen := map[uint64]int{}
	rng := rand.New(rand.NewPCG(2, 2))
	for range 300000 {
		i := rng.IntN(1 << 36)
		s := p.spelling(i)
		if other, ok := seen[s]; ok && other != i || s >= 1<<36 {
			t.Fatalf("%d and %d are both spelled %d", i, other, s)
		}
		seen[s] = i
	}
}

// TestSharing: prompts of a group begin alike, of different groups not, and what
// follows is nobody else's.
func TestSharing(t *testing.T) {
	const shared, groups, n = 64, 3, 3000
	p := NewPrompter().With(5, Sharing{Tokens: shared, Groups: groups})
	heads, tails := map[string]int{}, map[string]bool{}
	for i := range n {
		text, words := p.Prompt(i, 150)
		fields := strings.Fields(text)
		if words != 142 || len(fields) != words {
			t.Fatalf("%d words, says %d", len(fields), words)
		}
		head := strings.Join(fields[:shared], " ")
		if group, ok := heads[head]; ok && group != i%groups {
			t.Fatalf("groups %d and %d begin alike", group, i%groups)
		}
		heads[head] = i % groups
		tail := strings.Join(fields[shared:shared+4], " ")
		if tails[tail] {
			t.Fatalf("prompt %d goes on as another does", i)
		}
		tails[tail] = true
	}
	if len(heads) != groups {
		t.Errorf("%d beginnings for %d groups", len(heads), groups)
	}
	// A prompt that is too short has what fits of the beginning, and an end of its own.
	whole, _ := p.Prompt(0, 150)
	for tokens := range 100 {
		a, words := p.Prompt(0, tokens)
		b, _ := p.Prompt(groups, tokens)
		if common := min(shared, words-uniqueWords); common > 0 {
			if !strings.HasPrefix(whole, beginning(a, common)) || beginning(a, common) != beginning(b, common) {
				t.Errorf("%d tokens: the beginning is not the group's", tokens)
			}
		}
		if a == b {
			t.Errorf("%d tokens: two prompts are the same", tokens)
		}
	}
	// Another seed is another run, its beginnings too.
	if other, _ := NewPrompter().With(6, Sharing{Tokens: shared, Groups: groups}).Prompt(0, 150); beginning(other, 8) == beginning(whole, 8) {
		t.Error("two seeds share a beginning")
	}
	// One group is the default.
	one := NewPrompter().With(5, Sharing{Tokens: shared})
	a, _ := one.Prompt(0, 150)
	b, _ := one.Prompt(1, 150)
	if beginning(a, shared) != beginning(b, shared) || beginning(a, shared+1) == beginning(b, shared+1) {
		t.Error("without groups the beginning is not common, or more than it is")
	}
}

// counter stands for an engine's tokenizer and chat template: a word costs a
// token, and one more if it is longer than split letters.
type counter struct{ overhead, split int }

func (c counter) count(text string) int {
	n := c.overhead
	for _, w := range strings.Fields(text) {
		if n++; len(w) > c.split {
			n++
		}
	}
	return n
}

// TestLearn: after a warm-up of 16 calls prompts hit the tokens aimed at, whatever the
// tokenizer, with lengths that vary and lengths that do not, and with some counts
// that are nonsense.
func TestLearn(t *testing.T) {
	for name, c := range map[string]struct {
		counter
		input   Length
		garbage int // every so many-th count is off; 0 none
	}{
		"one token a word":         {counter{8, 9}, Length{Kind: KindFixed, Mean: 300}, 0},
		"long template":            {counter{45, 9}, Length{Kind: KindFixed, Mean: 300}, 0},
		"costly words":             {counter{12, 4}, Length{Kind: KindFixed, Mean: 2000}, 0},
		"very long prompts":        {counter{30, 3}, Length{Kind: KindFixed, Mean: 60000}, 0},
		"short prompts":            {counter{20, 5}, Length{Kind: KindFixed, Mean: 40}, 0},
		"varying":                  {counter{33, 4}, Length{Kind: KindUniform, Min: 100, Max: 1000}, 0},
		"varying widely":           {counter{17, 3}, Length{Kind: KindLognormal, Mean: 500, Deviation: 400, Min: 60}, 0},
		"varying, garbage":         {counter{33, 4}, Length{Kind: KindUniform, Min: 100, Max: 1000}, 6},
		"same length, and garbage": {counter{33, 4}, Length{Kind: KindFixed, Mean: 500}, 4},
	} {
		p := NewPrompter()
		plan := Plan{Arrivals: Arrivals{Shape: Closed, Concurrency: 1}, Input: c.input, Seed: 1, Calls: 216}
		off := 0.0
		for i, item := range all2(t, plan, p) {
			tokens := c.count(item.Prompt)
			if i >= 16 {
				off += math.Abs(float64(tokens-item.Input)) / float64(item.Input) / 200
				continue
			}
			if c.garbage > 0 && i%c.garbage == 1 {
				tokens = 3 + i
			}
			p.Learn(item.Words, tokens)
		}
		overhead, slope, calls := p.Learned()
		t.Logf("%s: %.2f %% off; %.1f + %.3f·words", name, 100*off, overhead, slope)
		if calls != 16 || off > 0.04 {
			t.Errorf("%s: prompts are %.1f %% off on average after %d calls", name, 100*off, calls)
		}
	}
}

// all2 yields items one by one, so that what is learned counts at once.
func all2(t *testing.T, plan Plan, p *Prompter) func(func(int, Item) bool) {
	s, err := New(plan, p)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(int, Item) bool) {
		for item, ok := s.Next(); ok && yield(item.Index, item); item, ok = s.Next() {
		}
	}
}

// TestLearnExactly: a line without noise is found, by two lengths as well as by many, and
// the line through equal lengths goes through them.
func TestLearnExactly(t *testing.T) {
	p := NewPrompter()
	if overhead, slope, calls := p.Learned(); overhead != 8 || slope != 1 || calls != 0 {
		t.Errorf("before anything: %v + %v·words of %d", overhead, slope, calls)
	}
	p.Learn(0, 5)
	p.Learn(5, 0)
	p.Learn(-5, -5)
	if _, _, calls := p.Learned(); calls != 0 {
		t.Error("something was learned from nothing")
	}
	p.Learn(100, 150)
	if overhead, slope, _ := p.Learned(); math.Abs(overhead+100*slope-150) > 1e-9 {
		t.Errorf("the line %v + %v·words misses its only point", overhead, slope)
	}
	p.Learn(200, 270)
	if overhead, slope, _ := p.Learned(); math.Abs(overhead-30) > 1e-9 || math.Abs(slope-1.2) > 1e-9 {
		t.Errorf("two points: %v + %v·words, want 30 + 1.2", overhead, slope)
	}
	// A tokenizer that changes is followed, since only the latest calls count.
	for i := range 200 {
		p.Learn(50+10*i, 10+2*(50+10*i))
	}
	if overhead, slope, calls := p.Learned(); math.Abs(overhead-10) > 1e-9 || math.Abs(slope-2) > 1e-9 || calls != 202 {
		t.Errorf("%v + %v·words of %d, want 10 + 2", overhead, slope, calls)
	}
	// The beginning keeps its length within a run, in tokens as then known.
	q := p.With(1, Sharing{Tokens: 100})
	before, _ := q.Prompt(0, 400)
	for range 64 {
		q.Learn(100, 108)
	}
	after, _ := q.Prompt(1, 400)
	if beginning(before, 50) != beginning(after, 50) || beginning(before, 51) == beginning(after, 51) {
		t.Error("the common beginning is not the 50 words that made 100 tokens")
	}
	// The least prompt is a word, the longest is bounded.
	if text, words := NewPrompter().Prompt(3, -5); words != 1 || text == "" {
		t.Errorf("%q has %d words", text, words)
	}
	if _, words := NewPrompter().Prompt(3, math.MaxInt); words > MaxTokens { // less the overhead
		t.Errorf("%d words", words)
	}
}

// FuzzLearn: whatever is told, prompts can be written and the line is a number.
func FuzzLearn(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 200, 100, 0, 0})
	f.Fuzz(func(t *testing.T, told []byte) {
		p := NewPrompter()
		for len(told) >= 4 {
			p.Learn(int(told[0])<<(told[1]%24), int(told[2])<<(told[3]%24))
			told = told[4:]
		}
		overhead, slope, _ := p.Learned()
		if math.IsNaN(overhead) || math.IsInf(overhead, 0) || !(slope >= leastSlope && slope <= mostSlope) {
			t.Fatalf("%v + %v·words", overhead, slope)
		}
		if text, words := p.With(1, Sharing{Tokens: 5}).Prompt(1, 100); words < 1 || words > 500 || strings.Count(text, " ") != words-1 {
			t.Fatalf("%d words", words)
		}
	})
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	p := NewPrompter()
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			q := p.With(uint64(n), Sharing{Tokens: 10})
			for i := range 100 {
				_, words := q.Prompt(i, 50)
				q.Learn(words, words+20)
				p.Learned()
			}
		})
	}
	wg.Wait()
	if _, _, calls := p.Learned(); calls != 400 {
		t.Errorf("learned from %d calls of 400", calls)
	}
}

func BenchmarkPrompt(b *testing.B) {
	p := NewPrompter()
	for i := 0; b.Loop(); i++ {
		p.Prompt(i, 1000)
	}
}

func BenchmarkLearn(b *testing.B) {
	p := NewPrompter()
	for i := range 64 {
		p.Learn(100*(1+i%10), 120*(1+i%10))
	}
	for b.Loop() {
		throughPoints(p.fit.points[:])
	}
}
