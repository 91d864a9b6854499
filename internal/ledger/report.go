package ledger

import (
	"context"
	"time"
)

// Grouping is a column by which usage is reported.
type Grouping string

// The groupings. At most one of the last three says how time is divided.
const (
	ByKey      Grouping = "key"
	ByModel    Grouping = "model"
	ByClass    Grouping = "class"
	ByUpstream Grouping = "upstream"
	ByHour     Grouping = "hour"
	ByDay      Grouping = "day"
	ByMonth    Grouping = "month"
)

// Query asks for usage. The zero value asks for one row over everything.
type Query struct {
	By []Grouping
	// Since and Until bound the time at which calls were received, Until not
	// included; both are rounded down to hours of UTC. Zero is unbounded.
	Since, Until time.Time
	// Zone is where days and months begin; nil is UTC. Its offset must be a whole
	// number of hours in the period asked for; else the nearest hour is taken.
	Zone *time.Location
	// Keys and Models narrow the question; empty asks for all.
	Keys, Models []string
}

// Sums counts tokens of one provenance. Cached and CacheWrite are part of
// Input, Reasoning is part of Output.
type Sums struct {
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cached_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	Output     int64 `json:"output_tokens"`
	Reasoning  int64 `json:"reasoning_tokens"`
}

// Usage is one row of a report. Fields that were not grouped by are empty.
type Usage struct {
	Key      string    `json:"key,omitempty"`
	Model    string    `json:"model,omitempty"`
	Class    string    `json:"class,omitempty"`
	Upstream string    `json:"upstream,omitempty"`
	From     time.Time `json:"from,omitzero"` // when the hour, day or month begins, in the query's zone

	Calls     int64 `json:"calls"`
	Completed int64 `json:"completed"`
	Refused   int64 `json:"refused"` // by the gateway's own limits; these used nothing
	// NoUsage counts the calls that reached an upstream and whose usage is
	// neither reported nor estimated: the sums below are too low by theirs.
	NoUsage int64 `json:"no_usage"`

	// Reported is what upstreams reported, by whatever way
	// (usage_source reported, timings, counted or partial).
	Reported Sums `json:"reported"`
	// Estimated stands in where they reported nothing.
	Estimated Sums `json:"estimated"`
	// BySource is input plus output tokens by usage_source, "estimated" included.
	BySource map[string]int64 `json:"tokens_by_source,omitempty"`
}

// Reporter answers queries: a Ledger, or its file alone.
type Reporter interface {
	Usage(context.Context, Query) ([]Usage, error)
}
