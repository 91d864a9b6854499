package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/quantity"
)

func keysList(file *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Lists the keys of the file, without their hashes",
		Long: `Lists the keys of the file: their state (active, expired or revoked), how many
keys of the alias are good now, and what applies to them. Neither keys nor their
hashes are shown; "-" is what does not apply.`,
		Example: `  weir keys list
  weir keys list --json
  weir keys list --file /etc/weir/keys.json`,
		Args: cobra.NoArgs,
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON for programs, with plain numbers")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		list, err := listed(*file, time.Now())
		if err != nil {
			return err
		}
		if *asJSON {
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			return enc.Encode(list)
		}
		if len(list) == 0 {
			return note(cmd.OutOrStdout(), "%s has no keys; make one with: weir keys add ALIAS --file %[1]s\n", *file)
		}
		return writeKeys(cmd.OutOrStdout(), list)
	}
	return cmd
}

// listedKey is a key as it is listed; what does not apply is left out.
type listedKey struct {
	Alias   string        `json:"alias"`
	Owner   string        `json:"owner,omitempty"`
	State   string        `json:"state"` // active, expired or revoked
	Keys    []listedSpan  `json:"keys"`  // one for each hash
	Limits  call.Limits   `json:"limits,omitzero"`
	Models  []string      `json:"models,omitempty"`
	Class   string        `json:"class,omitempty"`
	Weight  float64       `json:"weight"`
	Budget  *listedBudget `json:"budget,omitempty"`
	Expires time.Time     `json:"expires,omitzero"`
	Revoked time.Time     `json:"revoked,omitzero"`
	Bench   bool          `json:"bench"`
}

// listedSpan says from when to when a key is good, and whether it is now.
type listedSpan struct {
	Created keys.Moment `json:"created,omitzero"`
	Expires keys.Moment `json:"expires,omitzero"`
	Good    bool        `json:"good"`
}

type listedBudget struct {
	Tokens call.Count  `json:"tokens,omitzero"`
	Money  float64     `json:"money,omitempty"`
	Per    keys.Period `json:"per"`
	Zone   string      `json:"zone"`
	Warn   float64     `json:"warn"`
}

// listed reads the file for the list.
func listed(path string, now time.Time) ([]listedKey, error) {
	file, err := keys.Read(path)
	if err != nil {
		return nil, err
	}
	compiled, err := file.Compiled()
	if err != nil {
		return nil, err
	}
	list := []listedKey{}
	for i, k := range compiled {
		e := &file.Keys[i]
		l := listedKey{
			Alias: k.Alias, Owner: k.Owner, State: "active", Limits: k.Limits, Models: k.Models, Class: k.Class,
			Weight: k.Weight, Expires: k.Expires, Revoked: k.Revoked, Bench: k.Bench,
		}
		status := e.StatusAt(now)
		if status != keys.Known {
			l.State = status.String()
		}
		for _, h := range e.Hashes {
			good := status == keys.Known && (h.Expires.IsZero() || now.Before(h.Expires.Time))
			l.Keys = append(l.Keys, listedSpan{h.Created, h.Expires, good})
		}
		if b := k.Budget; b != nil {
			l.Budget = &listedBudget{b.Tokens, b.Money, b.Per, b.Zone.String(), b.Warn}
		}
		list = append(list, l)
	}
	return list, nil
}

// writeKeys writes the list as a table.
func writeKeys(w io.Writer, list []listedKey) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ALIAS\tSTATE\tKEYS\tLIMITS\tMODELS\tCLASS\tWEIGHT\tBUDGET\tEXPIRES\tBENCH\tOWNER")
	for _, l := range list {
		good := 0
		for _, k := range l.Keys {
			if k.Good {
				good++
			}
		}
		expires, bench := "", ""
		if !l.Expires.IsZero() {
			expires = l.Expires.Format(time.RFC3339)
		}
		if l.Bench {
			bench = "yes"
		}
		cells := []string{
			l.Alias, l.State, strconv.Itoa(good), limitsText(l.Limits), strings.Join(l.Models, " "), l.Class,
			strconv.FormatFloat(l.Weight, 'g', -1, 64), budgetText(l.Budget), expires, bench, l.Owner,
		}
		for i, cell := range cells {
			if cell == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil { // the writes above go to its buffer
		return fmt.Errorf("write the list of keys: %w", err)
	}
	return nil
}

// limitsText names limits by the flags that set them.
func limitsText(l call.Limits) string {
	var parts []string
	for _, limit := range []struct {
		count call.Count
		name  string
	}{
		{l.TokensPerMinute, "tpm"}, {l.InputTokensPerMinute, "input-tpm"}, {l.OutputTokensPerMinute, "output-tpm"},
		{l.RequestsPerMinute, "rpm"}, {l.Concurrency, "concurrency"}, {l.TokensInFlight, "tokens-in-flight"},
	} {
		if n, known := limit.count.Get(); known {
			parts = append(parts, limit.name+" "+quantity.FormatCount(n))
		}
	}
	return strings.Join(parts, ", ")
}

func budgetText(b *listedBudget) string {
	if b == nil {
		return ""
	}
	var parts []string
	if n, known := b.Tokens.Get(); known {
		parts = append(parts, quantity.FormatCount(n)+" tokens")
	}
	if b.Money > 0 {
		parts = append(parts, strconv.FormatFloat(b.Money, 'f', -1, 64)+" money")
	}
	return strings.Join(parts, " and ") + " per " + string(b.Per) + ", " + b.Zone
}
