package command

import (
	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/telemetry"
)

const metricsShort = "Prints the names, labels and definitions of all metrics"

func configureMetrics(cmd *cobra.Command) {
	cmd.Long = `Prints every metric that the gateway exposes on /metrics of the admin endpoint:
its name, its type, its labels with the most values each can have, and what it
means.`
	cmd.Example = "  weir metrics\n  curl -s http://127.0.0.1:2019/metrics | grep ^weir_"
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		return telemetry.WriteTable(cmd.OutOrStdout())
	}
}
