package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
)

// weirKeys runs `weir keys` with the file and these arguments.
func weirKeys(t *testing.T, file string, args ...string) (out, notes string, err error) {
	t.Helper()
	cmd := build(t, "keys")
	var o, n bytes.Buffer
	cmd.SetOut(&o)
	cmd.SetErr(&n)
	cmd.SetArgs(append(args, "--file", file))
	err = cmd.Execute()
	return o.String(), n.String(), err
}

// done is weirKeys where no error may be.
func done(t *testing.T, file string, args ...string) (out, notes string) {
	t.Helper()
	out, notes, err := weirKeys(t, file, args...)
	if err != nil {
		t.Fatalf("weir keys %s: %v", strings.Join(args, " "), err)
	}
	return out, notes
}

var newKey = regexp.MustCompile(`^sk-weir-[0-9A-Za-z]{32}\n$`)

// TestKeysLife: a key is made, seen once, used, rotated and revoked, and neither it
// nor its hash shows anywhere else.
func TestKeysLife(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	now := time.Now()
	status := func(key string, at time.Time) keys.Status {
		t.Helper()
		k, status := keys.Open(file, at).Lookup(strings.TrimSpace(key), at)
		if status != keys.Unknown && k.Alias != "team-a" {
			t.Errorf("the key is that of %q", k.Alias)
		}
		return status
	}
	first, notes := done(t, file, "add", "team-a", "--owner", "Ada & Bob", "--tpm", "200k", "--input-tpm", "150k", "--output-tpm", "50_000", "--rpm", "600",
		"--concurrency", "16", "--tokens-in-flight", "64k", "--model", "llama-*", "--model", "qwen3-8b", "--class", "batch", "--weight", "2",
		"--budget-tokens", "10M", "--budget-money", "25.5", "--budget-per", "day", "--budget-zone", "Europe/Berlin", "--expires", "90d", "--bench")
	if !newKey.MatchString(first) || !strings.Contains(notes, `Added "team-a" to `+file) || !strings.Contains(notes, "not shown again") {
		t.Errorf("said %q and %q", first, notes)
	}
	if got := status(first, now); got != keys.Known {
		t.Errorf("the key is %v", got)
	}
	k := keys.Open(file, now).All()[0]
	wantLimits := call.Limits{TokensPerMinute: call.Known(200_000), InputTokensPerMinute: call.Known(150_000), OutputTokensPerMinute: call.Known(50_000),
		RequestsPerMinute: call.Known(600), Concurrency: call.Known(16), TokensInFlight: call.Known(64_000)}
	if b := k.Budget; k.Owner != "Ada & Bob" || k.Limits != wantLimits || k.Class != "batch" || k.Weight != 2 || !k.Bench || !k.Allows("qwen3-8b") || k.Allows("gpt") ||
		b.Tokens != call.Known(10_000_000) || b.Money != 25.5 || b.Per != keys.Daily || b.Zone.String() != "Europe/Berlin" || b.Warn != 0.8 {
		t.Errorf("added was %+v with the budget %+v", k, b)
	}
	if left := k.Expires.Sub(now); left < 90*24*time.Hour-time.Minute || left > 90*24*time.Hour+time.Minute {
		t.Errorf("it expires in %v", left)
	}

	second, rotated := done(t, file, "rotate", "team-a", "--grace", "2h")
	if !newKey.MatchString(second) || second == first || !strings.Contains(rotated, "not shown again. The one before it ends on "+time.Now().Add(2*time.Hour).UTC().Format("2006-01-02")) {
		t.Errorf("said %q and %q", second, rotated)
	}
	for at, want := range map[time.Duration][2]keys.Status{0: {keys.Known, keys.Known}, 3 * time.Hour: {keys.Expired, keys.Known}} {
		if got := [2]keys.Status{status(first, now.Add(at)), status(second, now.Add(at))}; got != want {
			t.Errorf("after %v they are %v", at, got)
		}
	}
	third, ended := done(t, file, "rotate", "team-a", "--grace", "0")
	if !strings.Contains(ended, "The one before it has ended.") || status(second, time.Now()) != keys.Expired || status(third, time.Now()) != keys.Known {
		t.Errorf("said %q; they are %v and %v", ended, status(second, time.Now()), status(third, time.Now()))
	}

	table, _ := done(t, file, "list")
	listing, _ := done(t, file, "list", "--json")
	revoked, _ := done(t, file, "revoke", "team-a")
	again, _ := done(t, file, "revoke", "team-a")
	if !strings.Contains(revoked, `Revoked "team-a"`) || !strings.Contains(again, "was revoked before, on ") || status(third, now) != keys.Revoked {
		t.Errorf("said %q and %q; it is %v", revoked, again, status(third, now))
	}
	_, _, err := weirKeys(t, file, "rotate", "team-a")
	if err == nil || !strings.Contains(err.Error(), "was revoked on") {
		t.Errorf("rotated though revoked: %v", err)
	}

	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	said := notes + rotated + ended + table + listing + revoked + again
	for _, key := range []string{first, second, third} {
		key = strings.TrimSpace(key)
		hash, err := keys.Digest(key)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), key) || !strings.Contains(string(content), hash) {
			t.Errorf("the file has the key or lacks its hash:\n%s", content)
		}
		if strings.Contains(said, key) || strings.Contains(said, hash) || strings.Contains(said, hash[:12]) || strings.Contains(said, key[:12]) {
			t.Errorf("%s or its hash was said in\n%s", key, said)
		}
	}
}

// TestKeysList holds the table and the JSON to what is in the file.
func TestKeysList(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, []byte(`{"version":1,"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := done(t, file, "list"); !strings.Contains(out, "has no keys; make one with: weir keys add ALIAS --file "+file) {
		t.Errorf("no keys: %q", out)
	}
	if out, _ := done(t, file, "list", "--json"); out != "[]\n" {
		t.Errorf("no keys in JSON: %q", out)
	}
	hash := func(n int) string { return fmt.Sprintf("%064x", n) }
	text := `{"version":1,"keys":[
		{"alias":"plain","hashes":[{"sha256":"` + hash(1) + `"}]},
		{"alias":"full","owner":"Ada <a@b>","hashes":[{"sha256":"` + hash(2) + `","created":"2026-01-01","expires":"2026-02-01"},{"sha256":"` + hash(3) + `","created":"2026-02-01"}],
			"limits":{"tokens_per_minute":"200k","concurrency":0},"models":["llama-*","gpt"],"class":"batch","weight":0.5,
			"budget":{"tokens":"10M","money":2.5,"zone":"Asia/Tokyo","warn":0.5},"expires":"9000-01-01","bench":true},
		{"alias":"over","hashes":[{"sha256":"` + hash(4) + `"}],"expires":"2026-01-01","budget":{"money":3,"per":"day"}},
		{"alias":"gone","hashes":[{"sha256":"` + hash(5) + `"}],"revoked":"2026-01-01"}
	]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	table, _ := done(t, file, "list")
	want := strings.Join([]string{
		`ALIAS  STATE    KEYS  LIMITS                   MODELS       CLASS  WEIGHT  BUDGET                                         EXPIRES               BENCH  OWNER`,
		`plain  active   1     -                        -            -      1       -                                              -                     -      -`,
		`full   active   1     tpm 200k, concurrency 0  llama-* gpt  batch  0.5     10M tokens and 2.5 money per month, Asia/Tokyo  9000-01-01T00:00:00Z  yes    Ada <a@b>`,
		`over   expired  0     -                        -            -      1       3 money per day, UTC                           2026-01-01T00:00:00Z  -      -`,
		`gone   revoked  0     -                        -            -      1       -                                              -                     -      -`,
	}, "\n")
	if squeeze(table) != squeeze(want) {
		t.Errorf("the table is\n%s\nwant\n%s", table, want)
	}
	listing, _ := done(t, file, "list", "--json")
	var got []map[string]any
	if err := json.Unmarshal([]byte(listing), &got); err != nil {
		t.Fatal(err)
	}
	full, err := json.Marshal(got[1])
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"alias":"full","bench":true,"budget":{"money":2.5,"per":"month","tokens":10000000,"warn":0.5,"zone":"Asia/Tokyo"},"class":"batch","expires":"9000-01-01T00:00:00Z",` +
		`"keys":[{"created":"2026-01-01T00:00:00Z","expires":"2026-02-01T00:00:00Z","good":false},{"created":"2026-02-01T00:00:00Z","good":true}],` +
		`"limits":{"concurrency":0,"tokens_per_minute":200000},"models":["llama-*","gpt"],"owner":"Ada \u003ca@b\u003e","state":"active","weight":0.5}`; string(full) != want {
		t.Errorf("in JSON it is\n%s\nwant\n%s", full, want)
	}
	if len(got) != 4 || got[2]["state"] != "expired" || got[3]["state"] != "revoked" || got[3]["revoked"] != "2026-01-01T00:00:00Z" {
		t.Errorf("the others are %v", got)
	}
	for n := 1; n <= 5; n++ {
		if strings.Contains(table+listing, hash(n)) || strings.Contains(table+listing, "sha256") {
			t.Errorf("hash %d is in the list", n)
		}
	}
}

// squeeze leaves one blank of several.
func squeeze(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestKeysTakesAnExistingKey from the environment, and says nothing of it.
func TestKeysTakesAnExistingKey(t *testing.T) {
	const key = "an-existing-key-0123456789"
	t.Setenv("WEIR_TEST_KEY", key)
	file := filepath.Join(t.TempDir(), "keys.json")
	out, notes := done(t, file, "add", "old-team", "--key-env", "WEIR_TEST_KEY")
	if out != "" || !strings.Contains(notes, "with the key from WEIR_TEST_KEY") || strings.Contains(notes, key) {
		t.Errorf("said %q and %q", out, notes)
	}
	if k, status := keys.Open(file, time.Now()).Lookup(key, time.Now()); status != keys.Known || k.Weight != 1 || k.Budget != nil || !k.Expires.IsZero() || k.Bench {
		t.Errorf("it is %v, %+v", status, k)
	}
}

// TestKeysErrors: each says what to do, and none shows a key.
func TestKeysErrors(t *testing.T) {
	const secret = "sk-weir-0123456789abcdefghijABCDEFGHIJ"
	dir := t.TempDir()
	file := filepath.Join(dir, "keys.json")
	t.Setenv("WEIR_TEST_KEY", secret)
	t.Setenv("WEIR_TEST_SHORT", "short-secret")
	t.Setenv("WEIR_TEST_EMPTY", "")
	done(t, file, "add", "team-a", "--key-env", "WEIR_TEST_KEY")
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte(`{"version":1,"keys":[{"alias":"a","tpm":1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		args string // separated by blanks
		want string
	}{
		{file, "nothing", `unknown command "nothing"`},
		{file, "add", "name the key: keys add ALIAS"},
		{file, "add b " + secret, "a key itself never stands on the command line"},
		{file, "add " + secret, "begins like a key"},
		{file, "rotate " + secret, "begins like a key"},
		{file, "revoke " + secret, "begins like a key"},
		{file, "add team-a", `a key named "team-a" already`},
		{file, "add zrtiftszyf", "short id"},
		{file, "add b --key-env " + secret, "wants the name of an environment variable"},
		{file, "add b --key-env=", "wants the name of an environment variable"},
		{file, "add b --key-env WEIR_TEST_EMPTY", "WEIR_TEST_EMPTY is empty or not set"},
		{file, "add b --key-env WEIR_TEST_SHORT", "at least 20 random"},
		{file, "add b --key-env WEIR_TEST_KEY", `this key is that of "team-a"`},
		{file, "add b --tpm lots", "write it like 200k"},
		{file, "add b --tpm -1", "write it like 200k"},
		{file, "add b --weight 0", "weight 0 is not from"},
		{file, "add b --budget-per day", "neither tokens nor money"},
		{file, "add b --budget-tokens 1 --budget-per week", `"day" and "month"`},
		{file, "add b --budget-money 0", "money is 0"},
		{file, "add b --budget-money 1 --budget-zone Nowhere", "Europe/Berlin"},
		{file, "add b --expires soon", "none of a date (2027-01-01), a time (2027-01-01T08:00:00Z) and a duration (90d)"},
		{file, "add b --expires 2020-01-01", "is over already"},
		{file, "add b --expires 0", "is over already"},
		{file, "rotate b", `no key named "b"; known are: team-a`},
		{file, "rotate team-a --grace -1h", "--grace: "},
		{file, "revoke b", `no key named "b"; known are: team-a`},
		{file, "list surplus", "unknown command"},
		{broken, "list", `line 1: keys[0]: unknown field "tpm"`},
		{broken, "add b", "mend it by hand first"},
		{filepath.Join(dir, "none.json"), "list", "make the first one with: weir keys add ALIAS --file " + filepath.Join(dir, "none.json")},
		{filepath.Join(dir, "none.json"), "revoke b", "there is none yet"},
		{filepath.Join(dir, "none", "keys.json"), "add b", "make the directory first"},
	} {
		out, notes, err := weirKeys(t, c.file, strings.Fields(c.args)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v; want %q", c.args, err, c.want)
		}
		for _, hidden := range []string{secret, "short-secret"} {
			if strings.Contains(fmt.Sprint(out, notes, err), hidden) {
				t.Errorf("%s: it said %s\n%s\n%v", c.args, out, notes, err)
			}
		}
	}
	if after, err := os.ReadFile(file); !bytes.Equal(after, before) || err != nil {
		t.Errorf("the file became %s", after)
	}
	if _, err := os.Stat(filepath.Join(dir, "none.json")); err == nil {
		t.Error("a file was made for nothing")
	}
}

// fullDisk refuses every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no room") }

// TestKeysThatNobodySaw: a key that could not be shown is said to be lost.
func TestKeysThatNobodySaw(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	for args, want := range map[string]string{
		"add team-a": "nobody has seen it, so make another with: weir keys rotate team-a --grace 0",
		"list":       "no room",
	} {
		done(t, file, "add", "other-"+strings.Fields(args)[0])
		cmd := build(t, "keys")
		cmd.SetOut(fullDisk{})
		cmd.SetErr(new(bytes.Buffer))
		cmd.SetArgs(append(strings.Fields(args), "--file", file))
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestKeysHelp: every subcommand explains itself, with an example.
func TestKeysHelp(t *testing.T) {
	cmd := build(t, "keys")
	for _, sub := range cmd.Commands() {
		var out bytes.Buffer
		sub.SetOut(&out)
		if err := sub.Help(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "Examples:\n  weir keys "+sub.Name()) || sub.Short == "" || sub.Long == "" || !strings.Contains(out.String(), "--file") {
			t.Errorf("keys %s --help lacks an example or an explanation:\n%s", sub.Name(), &out)
		}
	}
	if n := len(cmd.Commands()); n != 4 {
		t.Errorf("%d subcommands", n)
	}
	out, _ := done(t, "keys.json")
	if !strings.Contains(out, "Examples:\n  weir keys add") {
		t.Errorf("without a subcommand it says %q", out)
	}
}
