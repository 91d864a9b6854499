// Command dump prints the corpus for the script that counts its tokens: a JSON
// object a line with half, name, corpus, sha256 (of the body) and body.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/weirgate/weir/internal/estimate/testdata/corpus"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	for half, name := range []string{"fit", "test"} {
		for _, s := range corpus.Make(half) {
			sum := sha256.Sum256(s.Body)
			if err := lines.Encode(map[string]string{"half": name, "name": s.Name, "corpus": s.Corpus,
				"sha256": hex.EncodeToString(sum[:8]), "body": string(s.Body)}); err != nil {
				fmt.Fprintln(os.Stderr, "dump:", err)
				os.Exit(1)
			}
		}
	}
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "dump:", err)
		os.Exit(1)
	}
}
