package estimate

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirgate/weir/internal/estimate/testdata/corpus"
)

// countsFile holds the tokens of every sample by real tokenizers; .ci/tokenizer makes it.
//
//go:embed testdata/counts.tsv
var countsFile string

// tokenizers are the columns of countsFile.
var tokenizers = []string{"o200k", "cl100k", "llama3", "mistral"}

// sample is one request, seen and counted.
type sample struct {
	corpus.Sample
	features Features
	tokens   []int64 // by tokenizer
}

var halves = sync.OnceValues(func() (all [2][]sample, err error) {
	lines := strings.Split(strings.TrimSpace(countsFile), "\n")[1:]
	for half := range all {
		for _, s := range corpus.Make(half) {
			var line string
			if len(lines) > 0 {
				line, lines = lines[0], lines[1:]
			}
			fields := strings.Split(line, "\t")
			sum := sha256.Sum256(s.Body)
			if len(fields) != 3+len(tokenizers) || fields[1] != s.Name || fields[2] != fmt.Sprintf("%x", sum[:8]) {
				return all, errStale(s.Name)
			}
			var scanner Scanner
			scanner.Write(s.Body)
			seen := sample{Sample: s, features: scanner.Features()}
			for _, f := range fields[3:] {
				n, err := strconv.ParseInt(f, 10, 64)
				if err != nil {
					return all, err
				}
				seen.tokens = append(seen.tokens, n)
			}
			all[half] = append(all[half], seen)
		}
	}
	if len(lines) > 0 {
		return all, errStale(lines[0])
	}
	return all, nil
})

type errStale string

func (e errStale) Error() string {
	return "testdata/counts.tsv does not belong to the corpus (at " + string(e) + "): run .ci/tokenizer/count.mjs again"
}

// samples returns the samples of a half of the corpus.
func samples(t testing.TB, half int) []sample {
	t.Helper()
	all, err := halves()
	if err != nil {
		t.Fatal(err)
	}
	return all[half]
}
