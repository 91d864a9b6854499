package capacity

import (
	"fmt"
	"strings"
)

// GPU is what of an accelerator decides how much fits.
type GPU struct {
	Name string `json:"name,omitempty"`
	// Stated is the memory as the vendor writes it, in "GB". Vendors do not say whether
	// that is 10⁹ or 2³⁰ bytes, and the chips are somewhere between: a plan reads it in the
	// unit it is made in.
	Stated int64 `json:"stated_gb,omitempty"`
	// Bytes is the memory in bytes where it is known exactly; it goes before Stated.
	Bytes int64 `json:"bytes,omitempty"`
}

// memory is the memory in bytes, with Stated read in a unit.
func (g GPU) memory(u Unit) int64 {
	if g.Bytes > 0 {
		return g.Bytes
	}
	return g.Stated * u.Bytes()
}

// gpuPresets are accelerators with the memory that their vendors state. NVIDIA: data
// sheets, and the list of GPUs in the documentation of NIM for LLMs; the B200 is an eighth
// of the 1,440 GB of a DGX B200, where other sheets say "up to 192 GB". AMD: the sheets
// of the Instinct MI300X, MI325X and MI355X.
var gpuPresets = []GPU{
	{Name: "l4", Stated: 24},
	{Name: "a10", Stated: 24},
	{Name: "a10g", Stated: 24},
	{Name: "rtx-4090", Stated: 24},
	{Name: "rtx-5090", Stated: 32},
	{Name: "a100-40gb", Stated: 40},
	{Name: "l40s", Stated: 48},
	{Name: "rtx-6000-ada", Stated: 48},
	{Name: "a100-80gb", Stated: 80},
	{Name: "h100", Stated: 80},
	{Name: "h100-nvl", Stated: 94},
	{Name: "h20", Stated: 96},
	{Name: "rtx-pro-6000", Stated: 96},
	{Name: "h200", Stated: 141},
	{Name: "b200", Stated: 180},
	{Name: "mi300x", Stated: 192},
	{Name: "mi325x", Stated: 256},
	{Name: "mi355x", Stated: 288},
}

// GPUs lists the presets, by memory.
func GPUs() []GPU { return append([]GPU(nil), gpuPresets...) }

// FindGPU returns the preset of a name; case and punctuation do not matter. A name that
// several presets begin with, like a100, is an error that names them.
func FindGPU(name string) (GPU, error) {
	wanted := planKey(name)
	var like []string
	for _, g := range gpuPresets {
		switch key := planKey(g.Name); {
		case key == wanted:
			return g, nil
		case wanted != "" && strings.HasPrefix(key, wanted):
			like = append(like, g.Name)
		}
	}
	if like != nil {
		return GPU{}, fmt.Errorf("which %s is meant: %s?", planQuote(name), strings.Join(like, " or "))
	}
	names := make([]string, len(gpuPresets))
	for i, g := range gpuPresets {
		names[i] = g.Name
	}
	return GPU{}, fmt.Errorf("no preset for GPU %s: choose one of %s, or say how much memory it has", planQuote(name), strings.Join(names, ", "))
}
