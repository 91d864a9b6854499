package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/quantity"
)

const keysShort = "Adds, lists, rotates and revokes the API keys of a file"

func configureKeys(cmd *cobra.Command) {
	file := cmd.PersistentFlags().String("file", "keys.json", "file of keys")
	cmd.Long = `Adds, lists, rotates and revokes the API keys of a file, which holds their
SHA-256 and never a key. A new key is shown once. The file is changed as a whole,
several edits at once lose nothing, and a gateway that runs takes a change up
within seconds. The file may be edited by hand, too.`
	cmd.Example = `  weir keys add team-a --owner "Ada Lovelace" --tpm 200k --rpm 600
  weir keys list
  weir keys rotate team-a --grace 24h
  weir keys revoke team-a`
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(keysAdd(file), keysList(file), keysRotate(file), keysRevoke(file))
}

// oneAlias lets one argument pass. A second one could be a key, so none is repeated.
func oneAlias(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return fmt.Errorf("name the key: %s ALIAS", cmd.CommandPath())
	case 1:
		return nil
	}
	return fmt.Errorf("give one alias: %s ALIAS; a key itself never stands on the command line, where others see it", cmd.CommandPath())
}

// keyFlags are the flags of `weir keys add` that need a second look.
type keyFlags struct {
	entry   keys.Entry
	budget  keys.EntryBudget
	weight  float64
	money   float64
	per     string
	expires string
	keyEnv  string
}

func keysAdd(file *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add ALIAS",
		Short: "Makes a key, shows it once, and adds it to the file",
		Long: `Makes a key, shows it once on standard output, and adds its SHA-256 to the file
under the alias, which stands for the key in logs, metrics and reports. What is
not given does not apply: no limit, all models, no budget, no end.

A key that exists already comes from an environment variable, never from the
command line; it needs at least 20 random characters.`,
		Example: `  weir keys add team-a --owner "Ada Lovelace" --tpm 200k --rpm 600 --concurrency 16
  weir keys add nightly --class batch --model "llama-*" --model qwen3-8b --budget-tokens 10M --expires 90d
  weir keys add load-test --bench
  weir keys add old-team --key-env OLD_KEY`,
		Args: oneAlias,
	}
	f := new(keyFlags)
	limits := &f.entry.Limits
	flags := cmd.Flags()
	flags.StringVar(&f.entry.Owner, "owner", "", "whom the key is for, a text for people")
	flags.Var(countFlag{&limits.TokensPerMinute}, "tpm", "tokens per minute, input and output together")
	flags.Var(countFlag{&limits.InputTokensPerMinute}, "input-tpm", "input tokens per minute")
	flags.Var(countFlag{&limits.OutputTokensPerMinute}, "output-tpm", "output tokens per minute")
	flags.Var(countFlag{&limits.RequestsPerMinute}, "rpm", "requests per minute")
	flags.Var(countFlag{&limits.Concurrency}, "concurrency", "calls at once")
	flags.Var(countFlag{&limits.TokensInFlight}, "tokens-in-flight", "reserved tokens of the calls at once")
	flags.StringArrayVar(&f.entry.Models, "model", nil, "model that may be asked for, or a pattern like \"llama-*\"; give it once for each")
	flags.StringVar(&f.entry.Class, "class", "", "service class of the key's calls, like interactive or batch")
	flags.Float64Var(&f.weight, "weight", 1, "share of a contended pool in relation to other keys")
	flags.Var(countFlag{&f.budget.Tokens}, "budget-tokens", "tokens that may be used in each period")
	flags.Float64Var(&f.money, "budget-money", 0, "money that may be spent in each period, in the currency of the price table")
	flags.StringVar(&f.per, "budget-per", string(keys.Monthly), "the period: day or month")
	flags.StringVar(&f.budget.Zone, "budget-zone", "", "time zone in which the period begins, like Europe/Berlin; UTC when empty")
	flags.StringVar(&f.expires, "expires", "", "when the key ends: 2027-01-01 (midnight in UTC), 2027-01-01T08:00:00Z, or after 90d")
	flags.BoolVar(&f.entry.Bench, "bench", false, "for load tests: attributed, but left out of objectives")
	flags.StringVar(&f.keyEnv, "key-env", "", "environment variable with an existing key to take instead of making one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		now := time.Now()
		e := f.entry
		e.Alias = args[0]
		if flags.Changed("weight") {
			e.Weight = &f.weight
		}
		for _, name := range []string{"budget-tokens", "budget-money", "budget-per", "budget-zone"} {
			if flags.Changed(name) {
				e.Budget = &f.budget
			}
		}
		f.budget.Per = keys.Period(f.per)
		if flags.Changed("budget-money") {
			f.budget.Money = &f.money
		}
		var err error
		if e.Expires, err = expiry(f.expires, now); err != nil {
			return err
		}
		if flags.Changed("key-env") {
			key, err := existingKey(f.keyEnv)
			if err != nil {
				return err
			}
			if err := keys.Edit(*file, now, func(f *keys.File) error { return f.Add(e, key, now) }); err != nil {
				return err
			}
			return note(cmd.ErrOrStderr(), "Added %q to %s, with the key from %s.\n", e.Alias, *file, f.keyEnv)
		}
		key := keys.New()
		if err := keys.Edit(*file, now, func(f *keys.File) error { return f.Add(e, key, now) }); err != nil {
			return err
		}
		return showKey(cmd, key, e.Alias, fmt.Sprintf("Added %q to %s. This is its key, which is not shown again: the file has only its hash.\n", e.Alias, *file))
	}
	return cmd
}

// showKey writes a new key to standard output, once, and what is to say of it to
// standard error.
func showKey(cmd *cobra.Command, key, alias, text string) error {
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), key); err != nil {
		return fmt.Errorf("show the key: %w; nobody has seen it, so make another with: weir keys rotate %s --grace 0", err, alias)
	}
	return note(cmd.ErrOrStderr(), "%s", text)
}

func note(w io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(w, format, args...); err != nil {
		return fmt.Errorf("the change is made, but could not be told: %w", err)
	}
	return nil
}

// existingKey returns the key in an environment variable.
func existingKey(name string) (string, error) {
	if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) {
		return "", errors.New("--key-env wants the name of an environment variable, like --key-env OLD_KEY, and not the key itself, which others see on the command line")
	}
	key := os.Getenv(name)
	if key == "" {
		return "", fmt.Errorf("environment variable %s is empty or not set; put the key into it, or leave --key-env out to have one made", name)
	}
	return key, nil
}

// expiry reads --expires: a date, a time, or a duration from now. "" is never.
func expiry(text string, now time.Time) (keys.Moment, error) {
	if text == "" {
		return keys.Moment{}, nil
	}
	end, err := keys.ParseMoment(text)
	if err != nil {
		after, err := quantity.ParseDuration(text)
		if err != nil {
			return keys.Moment{}, fmt.Errorf("--expires is none of a date (2027-01-01), a time (2027-01-01T08:00:00Z) and a duration (90d): %w", err)
		}
		end = keys.Moment{Time: now.UTC().Add(after).Truncate(time.Second)}
	}
	if !end.After(now) {
		return keys.Moment{}, fmt.Errorf("--expires %s is over already; give a time to come, like 90d", end.Format(time.RFC3339))
	}
	return end, nil
}

func keysRotate(file *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate ALIAS",
		Short: "Gives an alias a new key, and an end to the old one",
		Long: `Makes a new key for the alias and shows it once on standard output. The key
before it stays good for the grace, so that it can be changed without haste;
limits, budget and everything else stay as they are.`,
		Example: `  weir keys rotate team-a
  weir keys rotate team-a --grace 7d
  weir keys rotate team-a --grace 0`,
		Args: oneAlias,
	}
	grace := cmd.Flags().String("grace", quantity.FormatDuration(keys.DefaultGrace), "how long the old key stays good, like 24h or 7d; 0 ends it at once")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		now, alias := time.Now(), args[0]
		stays, err := quantity.ParseDuration(*grace)
		if err != nil {
			return fmt.Errorf("--grace: %w", err)
		}
		key := keys.New()
		if err := keys.Edit(*file, now, func(f *keys.File) error { return f.Rotate(alias, key, now, stays) }); err != nil {
			return err
		}
		old := "The one before it has ended."
		if stays > 0 {
			old = "The one before it ends on " + now.Add(stays).UTC().Format("2006-01-02 15:04:05 UTC") + ", or earlier if that was said before."
		}
		return showKey(cmd, key, alias, fmt.Sprintf("This is the new key of %q, which is not shown again. %s\n", alias, old))
	}
	return cmd
}

func keysRevoke(file *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ALIAS",
		Short: "Ends an alias and all of its keys, now and for good",
		Long: `Ends an alias and all of its keys, now and for good. The entry stays in the file,
so that calls with these keys are still known to be its.`,
		Example: "  weir keys revoke team-a",
		Args:    oneAlias,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		now, alias := time.Now(), args[0]
		var before keys.Moment
		err := keys.Edit(*file, now, func(f *keys.File) error {
			if e, err := f.Find(alias); err == nil {
				before = e.Revoked
			}
			return f.Revoke(alias, now)
		})
		switch {
		case err != nil:
			return err
		case !before.IsZero():
			return note(cmd.OutOrStdout(), "%q was revoked before, on %s.\n", alias, before.Format("2006-01-02 15:04:05 UTC"))
		}
		return note(cmd.OutOrStdout(), "Revoked %q. Where keys are enforced its calls are refused within %v; calls under way go on.\n", alias, keys.DefaultInterval)
	}
	return cmd
}

// countFlag is a flag whose value is a count, like 200k.
type countFlag struct{ to **quantity.Count }

func (c countFlag) Type() string { return "count" }

// String returns the value so far; "" is none.
func (c countFlag) String() string {
	if c.to == nil || *c.to == nil {
		return ""
	}
	return (*c.to).String()
}

// Set reads a value.
func (c countFlag) Set(text string) error {
	n, err := quantity.ParseCount(text)
	if err != nil {
		return err
	}
	count := quantity.Count(n)
	*c.to = &count
	return nil
}
