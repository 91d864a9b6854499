package bench

import "github.com/weirgate/weir/internal/saturation"

// Ladder is a series of loads and the knee found in it.
type Ladder struct {
	Steps []saturation.Step `json:"steps"`
	Knee  saturation.Knee   `json:"knee"`
}

// Staircase is a series of rates around a target, and what it says of it.
type Staircase struct {
	Windows []saturation.Window `json:"windows"`
	Verdict saturation.Verdict  `json:"verdict"`
}

// Profile names whose definitions the figures follow.
type Profile string

// The profiles: ours, and those of other tools.
const (
	Weir        Profile = "weir"
	VLLMBench   Profile = "vllm_bench"
	SGLangBench Profile = "sglang_bench"
	GuideLLM    Profile = "guidellm"
	AIPerf      Profile = "aiperf"
	GenAIBench  Profile = "genai_bench"
)
