package estimate

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/estimate/testdata/corpus"
)

// keyed is a sample with the key that sends it, and the factor by which this
// key's prompts count more than the corpus says.
type keyed struct {
	sample
	key    string
	factor float64
}

// mixed returns the samples in random order. Six in ten come from a key that sends
// only this corpus, the others from three keys that send everything, of which
// with biased two have a factor of their own.
func mixed(of []sample, seed uint64, biased bool) []keyed {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []keyed
	for _, i := range rng.Perm(len(of)) {
		k := keyed{of[i], "app-" + of[i].Corpus, 1}
		if rng.IntN(10) >= 6 {
			n := rng.IntN(3)
			k.key = fmt.Sprint("mixed-", n)
			if biased {
				k.factor = []float64{1, 1.25, 0.8}[n]
			}
		}
		all = append(all, k)
	}
	return all
}

// offs are errors, in per cent of what was reported, without their sign.
type offs []float64

func (o *offs) add(predicted, reported float64) {
	*o = append(*o, math.Abs(predicted/reported-1)*100)
}

func (o offs) mean() float64 {
	var sum float64
	for _, x := range o {
		sum += x
	}
	return sum / float64(len(o))
}

func (o offs) p95() float64 {
	return slices.Sorted(slices.Values(o))[len(o)*95/100]
}

// outcome is how well one model was predicted, against two simpler ways.
type outcome struct {
	all, first, later offs
	quarter           offs // bytes of text / 4
	ratio             offs // bytes of text times the model's running mean of tokens per byte
	by                map[string]*offs
}

// replay predicts, then learns, the samples of one tokenizer in several orders,
// each time beginning with nothing learnt.
func replay(of []sample, tokenizer int, biased bool) *outcome {
	o := &outcome{by: map[string]*offs{}}
	for seed := range uint64(5) {
		e := New(0, 0)
		var tokens, bytes float64
		for i, s := range mixed(of, seed, biased) {
			f := &s.features
			reported := math.Round(float64(s.tokens[tokenizer]) * s.factor)
			predicted := float64(e.Predict("m", s.key, f))
			e.Learn("m", s.key, f, int64(reported))

			o.all.add(predicted, reported)
			if i < 50 {
				o.first.add(predicted, reported)
			} else {
				o.later.add(predicted, reported)
			}
			if o.by[s.Corpus] == nil {
				o.by[s.Corpus] = new(offs)
			}
			o.by[s.Corpus].add(predicted, reported)
			o.quarter.add(float64(f.Bytes())/4, reported)
			if i > 0 {
				o.ratio.add(float64(f.Bytes())*tokens/bytes, reported)
			}
			tokens, bytes = tokens+reported, bytes+float64(f.Bytes())
		}
	}
	return o
}

// TestAccuracy holds the mean error to 6 % over the whole corpus, warm-up
// included, for four tokenizers. Sentences and templates are not those that the
// prior was fitted to.
func TestAccuracy(t *testing.T) {
	of := samples(t, corpus.Test)
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-22s %6s %6s %8s %6s %8s %10s\n", "error in %", "mean", "p95", "first 50", "later", "bytes/4", "model mean")
	var outcomes []*outcome
	for k, name := range tokenizers {
		for _, biased := range []bool{false, true} {
			o := replay(of, k, biased)
			if biased {
				name += ", biased keys"
			} else {
				outcomes = append(outcomes, o)
			}
			fmt.Fprintf(&table, "%-22s %6.1f %6.1f %8.1f %6.1f %8.1f %10.1f\n", name, o.all.mean(), o.all.p95(), o.first.mean(), o.later.mean(), o.quarter.mean(), o.ratio.mean())
			if o.all.mean() > 6 {
				t.Errorf("%s: the mean error is %.2f %%, want 6 at most", name, o.all.mean())
			}
			if o.all.p95() > 16 {
				t.Errorf("%s: the 95th percentile of the error is %.2f %%, want 16 at most", name, o.all.p95())
			}
			if simpler := min(o.quarter.mean(), o.ratio.mean()); o.all.mean() > simpler/2 {
				t.Errorf("%s: the mean error is %.2f %%, and a simpler way has %.2f", name, o.all.mean(), simpler)
			}
		}
	}
	fmt.Fprintf(&table, "\n%-22s", "mean by corpus")
	for _, name := range tokenizers {
		fmt.Fprintf(&table, " %8s", name)
	}
	for _, c := range slices.Sorted(maps.Keys(outcomes[0].by)) {
		fmt.Fprintf(&table, "\n%-22s", c)
		for k, o := range outcomes {
			mean := o.by[c].mean()
			fmt.Fprintf(&table, " %8.1f", mean)
			if mean > 12 {
				t.Errorf("%s, %s: the mean error is %.2f %%, want 12 at most", tokenizers[k], c, mean)
			}
		}
	}
	t.Log(table.String())
}

// TestUnknownTokenizer leaves the tokenizer that is tested out of the prior, as
// it is for models that were never seen.
func TestUnknownTokenizer(t *testing.T) {
	kept := prior
	defer func() { prior = kept }()
	for k, name := range tokenizers {
		var others []int
		for other := range tokenizers {
			if other != k {
				others = append(others, other)
			}
		}
		prior = fitPrior(samples(t, corpus.Fit), others)
		o := replay(samples(t, corpus.Test), k, false)
		t.Logf("%s: mean %.1f %%, first 50 %.1f, later %.1f", name, o.all.mean(), o.first.mean(), o.later.mean())
		if o.all.mean() > 6 {
			t.Errorf("%s: the mean error is %.2f %%, want 6 at most", name, o.all.mean())
		}
	}
}

// TestCorpus: what the accuracy is measured on is as varied as it should be.
func TestCorpus(t *testing.T) {
	for half := range 2 {
		number := map[string]int{}
		within := map[string]int{}
		for _, s := range samples(t, half) {
			number[s.Corpus]++
			if s.tokens[0] >= 50 && s.tokens[0] <= 2000 {
				within[s.Corpus]++
			}
		}
		if len(number) != len(corpus.Languages)+len(corpus.Others) || len(corpus.Languages) < 9 {
			t.Errorf("half %d has %d corpora", half, len(number))
		}
		for c, n := range number {
			if n < 40 || within[c] < 40 {
				t.Errorf("half %d: %s has %d samples, %d of them of 50 to 2,000 tokens, want 40", half, c, n, within[c])
			}
		}
	}
}
