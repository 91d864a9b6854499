package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// house is the plan of the repository: what each package says of itself, which
// of our packages it may import, and which modules beside the standard library.
// A change of plan is made here first.
var house = map[string]struct {
	says    string
	ours    []string
	modules []string
}{
	"sse":               {"parses event streams byte by byte", nil, nil},
	"slo":               {"keeps objectives, error budgets and burn rates", nil, nil},
	"internal/call":     {"holds the facts of one call: request, usage, instants, phases, outcome and the Record made of them", nil, nil},
	"internal/jsonscan": {"reads JSON piece by piece and reports only the values asked for", nil, nil},
	"internal/dialect":  {"reads one API's requests and response events", []string{"sse", "internal/call", "internal/jsonscan"}, nil},
	"internal/inflate": {"unpacks a copy of a compressed body, bounded", nil,
		[]string{"github.com/klauspost/compress", "github.com/andybalholm/brotli"}},
	"internal/meter": {"turns bytes and times into a Record",
		[]string{"sse", "internal/call", "internal/dialect", "internal/inflate"}, nil},
	"internal/quantity": {"reads counts, sizes and durations as people write them", nil, nil},
	"internal/watch":    {"notices that a file which people edit while it is used has changed", nil, nil},
	"internal/keys":     {"knows callers: ids, aliases, limits, expiry", []string{"internal/call", "internal/quantity", "internal/watch"}, nil},
	"internal/estimate": {"predicts the tokens of a call and learns from what was reported", []string{"internal/call"}, nil},
	"internal/limit":    {"admits or refuses calls by rates and caps, and settles them", []string{"internal/call"}, []string{"golang.org/x/time"}},
	"internal/queue":    {"orders the calls that wait for a slot", []string{"internal/call"}, nil},
	"internal/ledger":   {"keeps usage per key, durably", []string{"internal/call"}, []string{"github.com/ncruces/go-sqlite3"}},
	"internal/spend":    {"prices usage and keeps budgets", []string{"internal/call", "internal/keys", "internal/ledger", "internal/quantity", "internal/watch"}, nil},
	"internal/rtt":      {"asks the kernel for the round trip of a connection", nil, []string{"golang.org/x/sys"}},
	"internal/exposition": {"reads Prometheus' text format as strangers write it", nil,
		[]string{"github.com/prometheus/common", "github.com/prometheus/client_model"}},
	"internal/engine": {"reads engines' /metrics", []string{"internal/call", "internal/exposition"}, []string{"github.com/prometheus/client_model"}},
	"internal/gpu": {"samples GPUs", []string{"internal/call", "internal/exposition"},
		[]string{"github.com/NVIDIA/go-nvml", "github.com/prometheus/client_model"}},
	"internal/otlpin": {"takes engines' spans and joins them to calls", []string{"internal/call"},
		[]string{"go.opentelemetry.io/proto/otlp", "google.golang.org/grpc", "google.golang.org/protobuf"}},
	"internal/diagnose": {"names the layer at fault, with evidence; pure functions", []string{"internal/call"}, nil},
	"internal/signals": {"remembers what engines and GPUs did beside the calls",
		[]string{"internal/call", "internal/diagnose", "internal/engine", "internal/gpu"}, nil},
	"internal/telemetry": {"exports records as spans and metrics; all names in names.go", []string{"slo", "internal/call"},
		[]string{"github.com/prometheus/client_golang", "github.com/prometheus/client_model", "go.opentelemetry.io/otel",
			"go.opentelemetry.io/contrib/bridges/prometheus", "go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"}},
	"internal/slofile":  {"keeps the counts of objectives on disk", []string{"slo"}, nil},
	"internal/alert":    {"tells people, once and reliably", []string{"slo", "internal/call"}, nil},
	"internal/capacity": {"says how much more fits; pure functions", []string{"internal/call", "internal/stats"}, nil},
	"internal/rules":    {"writes Prometheus rules, Alertmanager routes and a Grafana dashboard from the configured objectives", []string{"slo"}, nil},
	"internal/gateway": {"walks one call through the rooms, and runs what runs in the background",
		[]string{"sse", "internal/call", "internal/dialect", "internal/inflate", "internal/meter", "internal/keys", "internal/telemetry",
			"internal/limit", "internal/queue", "internal/estimate", "internal/ledger", "internal/spend",
			"internal/rtt", "internal/engine", "internal/gpu", "internal/otlpin", "slo"},
		[]string{"go.opentelemetry.io/otel"}},
	"internal/sim":        {"imitates an engine with continuous batching, deterministically from a seed", []string{"sse"}, nil},
	"internal/stats":      {"describes samples and says how sure that is", nil, nil},
	"internal/endpoint":   {"speaks to an inference endpoint as a client does", []string{"sse", "internal/call", "internal/dialect", "internal/meter"}, nil},
	"internal/probe":      {"makes a synthetic call of fixed shape again and again", []string{"internal/call", "internal/endpoint"}, nil},
	"internal/workload":   {"plans what a load test sends, and when", nil, nil},
	"internal/saturation": {"finds the load at which a service stops keeping up", nil, nil},
	"internal/bench": {"loads an endpoint and measures it from the client's side",
		[]string{"internal/call", "internal/endpoint", "internal/workload", "internal/stats", "internal/saturation", "internal/engine"}, nil},
	"internal/report": {"shows the results of load tests to people and programs",
		[]string{"internal/call", "internal/bench", "internal/endpoint", "internal/saturation", "internal/stats", "internal/workload"}, nil},
	"internal/doctor": {"checks an endpoint as an expert would",
		[]string{"sse", "internal/call", "internal/dialect", "internal/endpoint", "internal/engine"}, nil},
	"internal/command": {"holds the subcommands, one file each",
		[]string{"sse", "internal/call", "internal/dialect", "internal/gateway", "internal/sim", "internal/telemetry",
			"internal/keys", "internal/quantity", "internal/ledger", "internal/spend", "internal/engine",
			"internal/endpoint", "internal/workload", "internal/bench", "internal/saturation", "internal/report", "internal/doctor", "slo", "internal/rules", "internal/capacity"},
		[]string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/caddyserver/caddy", "github.com/BurntSushi/toml", "golang.org/x/term"}},
	"caddymodule": {"adapts the gateway to Caddy: app, handler, Caddyfile, admin API and command registration",
		[]string{"internal/call", "internal/dialect", "internal/gateway", "internal/telemetry", "internal/command", "internal/quantity",
			"internal/keys", "internal/limit", "internal/queue", "internal/estimate", "internal/ledger", "internal/spend",
			"internal/engine", "internal/gpu", "internal/otlpin", "internal/diagnose",
			"slo", "internal/slofile", "internal/alert", "internal/capacity", "internal/probe", "internal/signals"},
		[]string{"github.com/caddyserver/caddy", "github.com/caddyserver/certmagic", "github.com/spf13/cobra", "go.uber.org/zap"}},
	"cmd/weir": {"is Caddy with the Weir gateway built in", []string{"caddymodule"}, []string{"github.com/caddyserver/caddy"}},
}

const (
	root   = "../.."
	module = "github.com/weirgate/weir/"
)

// TestHouse holds every package to the plan.
func TestHouse(t *testing.T) {
	found := map[string]bool{}
	walk(t, func(dir, file string) {
		found[dir] = true
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		plan, known := house[dir]
		if !known {
			return // reported below
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, file), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if ours, yes := strings.CutPrefix(path, module); yes {
				if !slices.Contains(plan.ours, ours) {
					t.Errorf("%s/%s imports %s, which the plan does not allow", dir, file, ours)
				}
			} else if strings.Contains(strings.Split(path, "/")[0], ".") && !slices.ContainsFunc(plan.modules, func(m string) bool {
				return path == m || strings.HasPrefix(path, m+"/")
			}) {
				t.Errorf("%s/%s imports %s, which the plan does not allow", dir, file, path)
			}
		}
	})
	for dir := range found {
		if _, known := house[dir]; !known {
			t.Errorf("package %s is not in the plan", dir)
		}
	}
	for dir := range house {
		if !found[dir] {
			t.Errorf("package %s of the plan does not exist", dir)
		}
	}
}

// TestPackageSentences: each package says what it is, in one place.
func TestPackageSentences(t *testing.T) {
	said := map[string]int{}
	walk(t, func(dir, file string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, file), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc == nil {
			return
		}
		said[dir]++
		kind := "Package "
		if f.Name.Name == "main" {
			kind = "Command "
		}
		want := kind + filepath.Base(dir) + " " + house[dir].says + "."
		if got := strings.ReplaceAll(f.Doc.Text(), "\n", " "); !strings.HasPrefix(got, want) {
			t.Errorf("%s says %q, the plan %q", dir, got, want)
		}
	})
	for dir := range house {
		if said[dir] != 1 {
			t.Errorf("package %s has its sentence in %d files, want 1", dir, said[dir])
		}
	}
}

// TestTopLevel: whoever opens the repository sees these and nothing else, but for
// what the README has people make there, which git ignores.
func TestTopLevel(t *testing.T) {
	allowed := []string{"caddymodule", "sse", "slo", "cmd", "internal", "Caddyfile.example", "README.md", "go.mod", "go.sum", "LICENSE", "CHANGELOG.md"}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name[0] != '.' && !slices.Contains(allowed, name) && !ignored(t, name) {
			t.Errorf("%s does not belong to the top level", name)
		}
	}
}

// ignored tells whether .gitignore names a file of the top level.
func ignored(t *testing.T, name string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		pattern, top := strings.CutPrefix(strings.TrimSpace(line), "/")
		if ok, err := filepath.Match(pattern, name); top && ok && err == nil {
			return true
		}
	}
	return false
}

// walk calls visit for every Go file that belongs to the module.
func walk(t *testing.T, visit func(dir, file string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (name[0] == '.' || name == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			visit(filepath.ToSlash(dir), name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
