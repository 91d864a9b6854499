package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// maxGiven is how long a file of facts may be.
const maxGiven = 1 << 20

// MergeGiven adds what stands in a file to the environment, under Given: a JSON
// object of what HTTP cannot tell, such as {"cuda": "12.8", "dtype": "fp8"}. What
// the file says counts over what was given before. A name that looks like a secret's is
// refused, since results are passed around.
func (e *Environment) MergeGiven(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read the environment file: %w", err)
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, maxGiven+1))
	if err != nil {
		return fmt.Errorf("read the environment file: %w", err)
	}
	if len(body) > maxGiven {
		return fmt.Errorf("read the environment file %s: it is longer than 1 MiB; keep to versions and settings", file)
	}
	var given map[string]any
	if err := json.Unmarshal(body, &given); err != nil || given == nil {
		if err == nil {
			err = errors.New("it is null")
		}
		return fmt.Errorf(`read the environment file %s: it is not a JSON object such as {"cuda": "12.8"}: %w`, file, err)
	}
	if name := secretIn(given); name != "" {
		return fmt.Errorf("read the environment file %s: %q looks like a secret, and results are passed around; leave it out", file, name)
	}
	if e.Given == nil {
		e.Given = map[string]any{}
	}
	maps.Copy(e.Given, given)
	return nil
}

// secretIn returns a name that looks like a secret's, at any depth; "" without one.
func secretIn(v any) string {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return strings.ContainsRune("_-. ", c) })
			if len(words) > 0 && slices.Contains([]string{"key", "apikey", "secret", "password", "token", "authorization", "credential", "credentials"}, words[len(words)-1]) {
				return name
			}
			if inner := secretIn(v[name]); inner != "" {
				return inner
			}
		}
	case []any:
		for _, one := range v {
			if name := secretIn(one); name != "" {
				return name
			}
		}
	}
	return ""
}
