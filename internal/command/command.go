package command

import "github.com/spf13/cobra"

// Subcommand is one of Weir's own, beside those of Caddy. Configure gives a
// command its flags, its help and its work.
type Subcommand struct {
	Name, Short string
	Configure   func(*cobra.Command)
}

// All lists the subcommands.
func All() []Subcommand {
	return []Subcommand{
		{"bench", benchShort, configureBench},
		{"capacity", capacityShort, configureCapacity},
		{"demo", demoShort, configureDemo},
		{"diagnose", diagnoseShort, configureDiagnose},
		{"doctor", doctorShort, configureDoctor},
		{"keys", keysShort, configureKeys},
		{"metrics", metricsShort, configureMetrics},
		{"rules", rulesShort, configureRules},
		{"sim", simShort, configureSim},
		{"slo", sloShort, configureSLO},
		{"usage", usageShort, configureUsage},
	}
}
