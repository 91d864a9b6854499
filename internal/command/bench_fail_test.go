package command

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/sim"
)

// TestBenchFails: what is wrong is said before any load, and what to do next.
func TestBenchFails(t *testing.T) {
	s := serve(t, fastEngine(t, sim.Config{}), nil)
	const gone = "http://127.0.0.1:1"
	dir := t.TempDir()
	t.Setenv("BENCH_EMPTY_KEY", " \n")
	secretEnv := writeText(t, "env.json", `{"api_key": "x"}`)
	noJSON := writeText(t, "env.txt", `cuda 12.8`)
	for name, tt := range map[string]struct {
		url  string
		args []string
		want string
	}{
		"nobody there":      {gone, nil, "check host and port of the base URL"},
		"TLS where is none": {strings.Replace(s.url, "http:", "https:", 1), nil, "check http:// or https://"},
		"no URL":            {"ftp://x", nil, "--url: read the base URL: its scheme is neither http nor https"},
		"a key in the URL":  {"http://me:sekret@h", nil, "--url: read the base URL: it has a user name or password"},
		"no variable":       {s.url, []string{"--key-env", "BENCH_EMPTY_KEY"}, "environment variable BENCH_EMPTY_KEY is empty: put the key into it"},
		"a key as variable": {s.url, []string{"--key-env", "sk-abcdefgh"}, "--key-env names no variable that is set"},
		"no place":          {s.url, []string{"--save", filepath.Join(dir, "no", "where.json")}, "--save: open "},
		"a directory":       {s.url, []string{"--html", dir}, "is a directory; name a file that can be written"},
		"raw on stdout":     {s.url, []string{"--raw", "-"}, "--raw needs a file"},
		"one file twice":    {s.url, []string{"--save", filepath.Join(dir, "x"), "--json=" + dir + "/../" + filepath.Base(dir) + "/x"}, "--json would write over the file of --save"},
		"over the baseline": {s.url, []string{"--save", secretEnv, "--baseline", secretEnv}, "--save would write over the file of --baseline"},
		"a secret":          {s.url, []string{"--env", secretEnv}, `--env: read the environment file`},
		"no JSON":           {s.url, []string{"--env", noJSON}, "it is not a JSON object"},
		"no environment":    {s.url, []string{"--env", filepath.Join(dir, "none")}, "--env: read the environment file: open"},
		"no baseline":       {s.url, []string{"--baseline", filepath.Join(dir, "none")}, "make one with --save"},
		"another baseline":  {s.url, []string{"--baseline", noJSON}, "is not a result of weir bench --save"},
		"no gateway":        {s.url, []string{"--compare", "--admin", s.url}, "--admin: no gateway that takes calls answers"},
		"no admin":          {s.url, []string{"--compare", "--admin", gone}, "--admin: no gateway that takes calls answers"},
		"no admin URL":      {s.url, []string{"--compare", "--admin", "::"}, "--admin: no gateway that takes calls answers"},
	} {
		r := runBench(t, t.Context(), tt.url, append(tt.args, "--concurrency", "1")...)
		if r.status() != 1 || !strings.Contains(r.err.Error(), tt.want) || strings.Contains(r.all(t, dir), "sekret") || strings.Contains(r.all(t, dir), "sk-abcdefgh") || r.out != "" {
			t.Errorf("%s: error %v does not say %q\n%s", name, r.err, tt.want, r.out)
		}
	}
	if n := s.calls.Load(); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestBenchAnswers: what an endpoint answers to the first calls is said, once for
// all of them, and what to do next.
func TestBenchAnswers(t *testing.T) {
	list := func(models ...string) string {
		var data []string
		for _, m := range models {
			data = append(data, fmt.Sprintf(`{"id": %q}`, m))
		}
		return `{"object": "list", "data": [` + strings.Join(data, ",") + `]}`
	}
	long := strings.Repeat("long", 40)
	for name, tt := range map[string]struct {
		models string
		status int
		args   []string
		want   string
		calls  int64
	}{
		"near":             {list("qwen3-8b", "qwen3-32b", "llama-4"), 404, []string{"--model", "qwen3-8"}, "the endpoint does not list the model qwen3-8: did you mean qwen3-8b, qwen3-32b?", 1},
		"far":              {list("a", "b"), 400, []string{"--model", "gpt-5-turbo"}, "the endpoint does not list the model gpt-5-turbo: it serves a, b", 1},
		"listed":           {list("a", "b"), 404, []string{"--model", "b"}, "not_found: POST ", 1},
		"not allowed":      {list("a", "b"), 403, []string{"--model", "c"}, "it serves a, b", 1},
		"no list":          {`{"error": {"message": "none"}}`, 404, []string{"--model", "c"}, "check base URL and model name", 1},
		"a long name":      {list("a", "b"), 404, []string{"--model", strings.Repeat("x", 1<<16)}, "xxx: it serves a, b", 1},
		"escapes":          {list("a\u009b31m", "b"), 404, []string{"--model", "z\x1b[31m"}, `did you mean "a\u009b31m"?`, 1},
		"several":          {list("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), 0, nil, "--model is missing: the endpoint serves a, b, c, d, e, f, g, h and 2 more", 0},
		"none":             {list(), 0, nil, "the endpoint lists none", 0},
		"one, cut off":     {list(long), 0, nil, "has a name too long to be taken from there", 0},
		"failing all over": {list("a"), 500, []string{"--calls", "3", "--repeat", "1"}, "no call succeeded", 5 + 3},
		"no warm-up":       {list("a"), 404, []string{"--calls", "3", "--repeat", "1", "--warmup", "0"}, "no call succeeded", 3},
	} {
		s := serve(t, http.NotFoundHandler(), func(w http.ResponseWriter, r *http.Request, n int64) bool {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.Method == http.MethodPost && r.ContentLength > 10:
				w.WriteHeader(tt.status)
				fmt.Fprint(w, `{"error": {"message": "no", "code": "some_code"}}`)
			case r.Method == http.MethodPost: // is the API there?
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"error": {"message": "an empty request"}}`)
			case strings.HasSuffix(r.URL.Path, "/models"):
				if strings.Contains(tt.models, "error") {
					w.WriteHeader(http.StatusNotFound)
				}
				fmt.Fprint(w, tt.models)
			default:
				return false
			}
			return true
		})
		want := tt.calls
		if strings.Contains(tt.models, "error") {
			want++
		}
		if tt.calls == 1 {
			want += 4 // of the warm-up, which is sent whole
		}
		r := runBench(t, t.Context(), s.url, append([]string{"--concurrency", "1", "--quiet"}, tt.args...)...)
		if r.status() != 1 || !strings.Contains(r.err.Error(), tt.want) || len(r.err.Error()) > 1000 || strings.ContainsAny(r.err.Error(), "\x1b\u009b") {
			t.Errorf("%s: error %.2000v does not say %q", name, r.err, tt.want)
		}
		if n := s.calls.Load(); n != want {
			t.Errorf("%s: %d calls, want %d", name, n, want)
		}
		if shows := tt.want == "no call succeeded"; shows != strings.Contains(r.out, "NO CALL SUCCEEDED") {
			t.Errorf("%s: the table:\n%s", name, r.out)
		}
	}
}

// TestBenchRefused: a key that is missing or wrong is told apart.
func TestBenchRefused(t *testing.T) {
	s := serve(t, fastEngine(t, sim.Config{}), func(w http.ResponseWriter, r *http.Request, _ int64) bool {
		if r.Header.Get("Authorization") == "Bearer sk-right" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error": {"message": "who?"}}`)
		return true
	})
	t.Setenv("BENCH_KEY", "sk-wrong")
	r := runBench(t, t.Context(), s.url, "--concurrency", "1")
	if r.status() != 1 || !strings.Contains(r.err.Error(), "--key-env OPENAI_API_KEY") {
		t.Errorf("without a key: %v", r.err)
	}
	r = runBench(t, t.Context(), s.url, "--concurrency", "1", "--key-env", "BENCH_KEY")
	if r.status() != 1 || !strings.Contains(r.err.Error(), "check that the key is of this endpoint") || strings.Contains(r.err.Error(), "sk-wrong") {
		t.Errorf("with a wrong one: %v", r.err)
	}
	t.Setenv("BENCH_KEY", " sk-right\n")
	if r = runBench(t, t.Context(), s.url, "--concurrency", "1", "--calls", "2", "--repeat", "1", "--key-env", "BENCH_KEY"); r.err != nil {
		t.Errorf("with the right one: %v", r.err)
	}
}

// TestBenchWritesWhole: what cannot be written is an error of its own, and leaves
// what was there.
func TestBenchWritesWhole(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "r")
	for _, text := range []string{"one", "two"} {
		if err := writeFile(name, func(w io.Writer) error { _, err := w.Write([]byte(text)); return err }); err != nil {
			t.Fatal(err)
		}
	}
	err := writeFile(name, func(w io.Writer) error { _, _ = w.Write([]byte("half")); return errNothing })
	if got := files(t, dir); err == nil || len(got) != 1 || got["r"] != "two" {
		t.Errorf("%v: %v", got, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(link, func(w io.Writer) error { _, err := w.Write([]byte("three")); return err }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if got := files(t, dir); err != nil || info.Mode().IsRegular() || got["r"] != "three" || len(got) != 2 {
		t.Errorf("%v (%v)", got, err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		return // no such device on this system
	}
	if err := writeFile("/dev/full", func(w io.Writer) error { return json.NewEncoder(w).Encode("x") }); err == nil {
		t.Error("a full device took it")
	}
	b := &benchmark{benchFlags: benchFlags{raw: "/dev/full"}}
	raw, err := b.openRaw()
	if err != nil {
		t.Fatal(err)
	}

	raw.w.WriteString("x")
	if err := raw.close(); err == nil || !strings.Contains(err.Error(), "--raw: ") || strings.Count(err.Error(), "no space") != 1 {
		t.Errorf("got %v", err)
	}
}
