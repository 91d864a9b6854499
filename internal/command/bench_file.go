package command

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/endpoint"
)

// loadGroup is one [[load]] of a file: every combination of what it lists is a load.
type loadGroup struct {
	Concurrency oneOrMore[int64] `toml:"concurrency"`
	Rate        oneOrMore[any]   `toml:"rate"` // "4/s", 4, or in the words of --load
	Input       oneOrMore[any]   `toml:"input"`
	Output      oneOrMore[any]   `toml:"output"`
	Calls       int              `toml:"calls"` // number of prompts
	Duration    string           `toml:"duration"`
	Shared      int              `toml:"shared-prefix"`
	Groups      int              `toml:"prefix-groups"`
}

// oneOrMore is a value that may stand alone where a list may stand.
type oneOrMore[T any] []T

// UnmarshalTOML implements toml.Unmarshaler.
func (o *oneOrMore[T]) UnmarshalTOML(v any) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) == 0 {
		return errors.New("a list is empty: leave it out, or name a value")
	}
	for _, item := range list {
		t, ok := item.(T)
		if !ok {
			return fmt.Errorf("%v is %s, where a whole number is wanted", item, kindOf(item))
		}
		*o = append(*o, t)
	}
	return nil
}

// kindOf says in words what a value of a file is.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "a text"
	case int64, float64:
		return "a number"
	case bool:
		return "true or false"
	case time.Time:
		return "a time"
	case []any:
		return "a list"
	}
	return "a table"
}

// readFile takes what the configuration file says for flags that were not given,
// and its groups of loads.
func (b *benchmark) readFile(flags *pflag.FlagSet) error {
	if b.config != "" && b.matrix != "" {
		return errors.New("--config and --matrix exclude each other: a configuration file may have [[load]] groups too")
	}
	file := b.config + b.matrix
	if file == "" {
		return nil
	}
	if b.matrix != "" {
		// The file may say otherwise, and so may the command line.
		for name, value := range map[string]string{
			"warmup": strconv.Itoa(bench.MatrixWarmup), "discard": fmt.Sprint(bench.MatrixDiscard),
		} {
			if f := flags.Lookup(name); !f.Changed {
				if err := f.Value.Set(value); err != nil {
					return fmt.Errorf("--%s: %w", name, err)
				}
			}
		}
	}
	if err := b.takeFile(file, flags); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if b.matrix != "" && len(b.groupsOfLoads) == 0 {
		return fmt.Errorf("read %s: it has no loads: begin a group with [[load]] and give it concurrency, input, output and calls", file)
	}
	return nil
}

func (b *benchmark) takeFile(file string, flags *pflag.FlagSet) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		return err
	}
	superseded := map[string]bool{}
	if b.matrix == "" { // a matrix is a choice of the command line itself
		superseded = supersededBy(flags, all)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		if _, text := value.(string); name == "load" && !text {
			continue // groups
		}
		if err := setFlag(flags, name, value, superseded[name]); err != nil {
			return err
		}
	}
	return b.takeGroups(string(text), flags, superseded["load"])
}

// waysToLoad are the flags that say how to load the endpoint. --concurrency is one
// when it stands alone, and otherwise bounds the calls in flight.
var waysToLoad = []string{"load", "rate", "ladder", "ladder-rate", "staircase", "replay", "replay-ledger"}

// supersededBy tells which of the file's ways to load the endpoint those on the
// command line take the place of.
func supersededBy(flags *pflag.FlagSet, file map[string]any) map[string]bool {
	gone := map[string]bool{}
	_, words := file["load"].(string) // and not groups
	for _, given := range waysToLoad {
		_, both := file[given]
		if given == "load" {
			both = words
		}
		if flags.Changed(given) && !both {
			for _, name := range append(waysToLoad, "concurrency") {
				gone[name] = true
			}
		}
	}
	if flags.Changed("concurrency") { // of these it cannot be the bound
		gone["ladder"], gone["load"] = true, gone["load"] || !words
	}
	return gone
}

// takeGroups reads the groups of loads. What they say themselves counts over the
// flags in the file, but not over those of the command line.
func (b *benchmark) takeGroups(text string, flags *pflag.FlagSet, superseded bool) error {
	var file struct {
		Load toml.Primitive `toml:"load"`
	}
	meta, err := toml.Decode(text, &file)
	if err != nil || !meta.IsDefined("load") || meta.Type("load") == "String" {
		return err
	}
	if kind := meta.Type("load"); kind != "ArrayHash" && kind != "Array" {
		return errors.New("load is neither a text nor a group: begin each group with [[load]], in two brackets")
	}
	var groups []loadGroup
	if err := meta.PrimitiveDecode(file.Load, &groups); err != nil {
		return fmt.Errorf("[[load]]: %w", err)
	}
	for _, key := range meta.Undecoded() {
		if len(key) > 1 && key[0] == "load" {
			return fmt.Errorf("[[load]] has no %s; it has concurrency, rate, input, output, calls, duration, shared-prefix and prefix-groups", shown(key[1]))
		}
	}
	if superseded {
		return nil
	}
	for i := range groups {
		g := &groups[i]
		if flags.Changed("calls") || flags.Changed("duration") {
			g.Calls, g.Duration = 0, ""
		}
		if flags.Changed("input") {
			g.Input = nil
		}
		if flags.Changed("output") {
			g.Output = nil
		}
		if flags.Changed("shared-prefix") || flags.Changed("prefix-groups") {
			g.Shared, g.Groups = 0, 0
		}
	}
	b.groupsOfLoads = groups
	return nil
}

// setFlag gives a flag what the file says, unless the command line has something
// in its place.
func setFlag(flags *pflag.FlagSet, name string, value any, superseded bool) error {
	f := flags.Lookup(name)
	if f == nil || name == "config" || name == "matrix" || name == "help" {
		return unknownName(flags, name)
	}
	text := ""
	switch v := value.(type) {
	case []any: // a ladder may be written as a list
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = fmt.Sprint(item)
		}
		text = strings.Join(parts, ",")
	case time.Time:
		text = v.Format(time.RFC3339Nano)
	case map[string]any, []map[string]any:
		return fmt.Errorf("%s is a table, and must be a text, a number, true or false, or a list", name)
	default:
		text = fmt.Sprint(v)
	}
	if f.Changed || superseded {
		return nil
	}
	if err := f.Value.Set(text); err != nil {
		wanted := map[string]string{
			"int": "a whole number", "uint64": "a whole number from 0 on", "float64": "a number", "bool": "true or false", "duration": `a time like "5m"`,
		}[f.Value.Type()]
		return fmt.Errorf("%s must be %s, and %s is not", name, wanted, strconv.Quote(text))
	}
	return nil
}

func unknownName(flags *pflag.FlagSet, name string) error {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "matrix" && f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	hint := ""
	if near := endpoint.Nearest(name, names, 2); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("there is no %s%s; what may stand here are the flags of weir bench by their names, but for config and matrix, and groups that begin with [[load]]", strconv.Quote(name), hint)
}
