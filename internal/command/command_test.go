package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// build returns a subcommand as the program has it.
func build(t *testing.T, name string) *cobra.Command {
	t.Helper()
	for _, c := range All() {
		if c.Name == name {
			cmd := &cobra.Command{Use: c.Name, Short: c.Short}
			c.Configure(cmd)
			return cmd
		}
	}
	t.Fatalf("no subcommand %s", name)
	return nil
}

// TestHelp: every subcommand explains itself, with an example.
func TestHelp(t *testing.T) {
	for _, c := range All() {
		cmd := build(t, c.Name)
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "Examples:\n  weir "+c.Name) || cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s --help lacks an example or an explanation:\n%s", c.Name, &out)
		}
		cmd.SetArgs([]string{"surplus"})
		cmd.SetErr(&out)
		if err := cmd.Execute(); err == nil {
			t.Errorf("%s takes an argument it has no use for", c.Name)
		}
	}
}

// TestMetrics: the command prints the table.
func TestMetrics(t *testing.T) {
	cmd := build(t, "metrics")
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"weir_ttft_seconds", "histogram", "model (64)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q", want)
		}
	}
}
