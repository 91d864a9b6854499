package command

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/weirgate/weir/internal/capacity"
)

// writePresets lists the models and GPUs that weir capacity plan knows.
func writePresets(w io.Writer, asJSON bool) error {
	models, gpus := capacity.Models(), capacity.GPUs()
	if asJSON {
		if err := writeIndented(w, struct {
			Models []capacity.Model `json:"models"`
			GPUs   []capacity.GPU   `json:"gpus"`
		}{models, gpus}); err != nil {
			return fmt.Errorf("write the presets: %w", err)
		}
		return nil
	}
	out := bufio.NewWriter(w)
	rows := [][]string{{"MODEL", "PARAMETERS", "TYPE", "LAYERS", "KV HEADS", "HEAD DIM", "KV BYTES A TOKEN", "CONTEXT", "ATTENTION"}}
	for _, m := range models {
		heads, dim, attention := thousands(m.KVHeads), thousands(m.HeadDim), ""
		switch {
		case m.KVRank > 0:
			heads, dim = "-", "-"
			attention = fmt.Sprintf("latent (MLA), %d + %d a layer", m.KVRank, m.RopeDim)
		case m.WindowLayers > 0:
			attention = fmt.Sprintf("window of %s tokens in %d layers", thousands(m.Window), m.WindowLayers)
		}
		rows = append(rows, []string{m.Name, thousands(m.Params), string(m.Dtype), thousands(m.Layers), heads, dim,
			thousands(int64(m.KVPerToken())), thousands(m.Context), attention})
	}
	writeAligned(out, rows, func(column int) bool { return column == 0 || column == 2 || column == 8 })
	fmt.Fprintf(out, "\nPARAMETERS are all that is in memory, every expert included, counted from config.json. KV BYTES\nA TOKEN are of a KV cache in %s, and of all layers: those with a window hold no more than it.\n\n", capacity.BF16)
	rows = [][]string{{"GPU", "MEMORY"}}
	for _, g := range gpus {
		rows = append(rows, []string{g.Name, strconv.FormatInt(g.Stated, 10)})
	}
	writeAligned(out, rows, func(column int) bool { return column == 0 })
	fmt.Fprintf(out, "\nMEMORY is as the vendor states it, in GB; --unit says whether a GB is 10⁹ or 2³⁰ bytes, and\n--memory gives it exactly, as nvidia-smi shows it in MiB.\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the presets: %w", err)
	}
	return nil
}
