package main

import (
	"time"

	"github.com/weirgate/weir/slo"
)

// configs are the objectives that the checks are made with.
func configs() map[string]slo.Config {
	timed := func(n slo.Number, target slo.Target, threshold time.Duration) slo.Objective {
		return slo.Objective{Number: n, Target: target, Threshold: threshold}
	}
	class := func(name string, objectives ...slo.Objective) slo.Class {
		return slo.Class{Name: name, Objectives: objectives}
	}
	all := slo.Presets()
	return map[string]slo.Config{
		"presets": {Classes: []slo.Class{all[slo.Interactive], all[slo.Completion], all[slo.Batch]}},
		// For promtool: targets from those that burn at most 10 to those that burn at most 1000.
		"unit": {Classes: []slo.Class{class("unit",
			timed(slo.TTFT, 990_000, 2*time.Second), timed(slo.E2E, 900_000, 20*time.Second), timed(slo.Success, 999_000, 0))}},
		"rolling": {Classes: []slo.Class{class("unit", timed(slo.TTFT, 990_000, 2*time.Second))}},
		"monthly": {Classes: []slo.Class{class("unit", timed(slo.TTFT, 990_000, 2*time.Second))}, Period: slo.Period{Zone: time.UTC}},
		"drill":   {Classes: []slo.Class{class("drill", timed(slo.TTFT, 990_000, 2*time.Second), timed(slo.Success, 990_000, 0))}},
	}
}
