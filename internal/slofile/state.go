package slofile

import "time"

// State is what is kept: a slo.Tracker. Its methods may be called while it counts.
type State interface {
	// Snapshot returns all of it. What it holds is not among later Changes.
	Snapshot() []byte
	// Changes returns what has changed since the last call of Changes or Snapshot,
	// nothing when nothing has. It is called at least once a minute, unless the
	// disk hangs; meanwhile what it would return has to stay bounded.
	Changes() []byte
	// Restore takes a Snapshot into an empty State. On an error the State is as it was.
	Restore(snapshot []byte) error
	// Apply takes Changes that followed the Snapshot, in their order. On an error
	// the State is as it was.
	Apply(changes []byte) error
}

// merger is a State that can also add the Snapshot of another to what it has counted.
type merger interface {
	Merge(snapshot []byte) error
}

// Options configure a File.
type Options struct {
	// Fresh makes an empty State of the same kind. It is needed where the disk
	// answers, or another process lets go of the directory, only after counting has
	// begun: then the files are taken into a fresh State, and its Snapshot is added
	// with the method Merge(snapshot []byte) error that the State has to have, too. nil, or a State
	// without that method, begins anew in this case.
	Fresh func() State
	// Report is told what people should know, once when it begins and once when it
	// is over, with the error where there is one: that counts are not being kept,
	// that files were damaged. Open and Run wait for it, counting does not.
	// nil tells nobody; Status has the same.
	Report func(text string, err error)

	disk       disk          // nil is the operating system's
	every      time.Duration // 0 is appendEvery
	maxJournal int64         // 0 is maxJournal
}

// Status is how a File stands.
type Status struct {
	Path string `json:"path"` // the directory
	// Kept is whether what is counted reaches the disk, Since since when that is
	// so, or is not so, and Error why not and what to do.
	Kept  bool      `json:"kept"`
	Since time.Time `json:"since"`
	Error string    `json:"error,omitempty"`
	// LastWritten is when something was written last; nothing is while nothing
	// changes. Zero: nothing yet.
	LastWritten time.Time `json:"last_written,omitzero"`
	// Bytes is what the latest snapshot and its journal take.
	Bytes int64 `json:"bytes"`
	// Loaded is what was found when the directory was taken.
	Loaded Loaded `json:"loaded"`
}

// Loaded tells what an earlier process left and what became of it.
type Loaded struct {
	// At is when it was taken up; zero as long as the directory is not this process's.
	At time.Time `json:"at,omitzero"`
	// Generation is that of the snapshot, 0 without one.
	Generation uint64 `json:"generation,omitempty"`
	// Records is how many appended changes followed it.
	Records int `json:"records"`
	// Torn counts journals that end within a record, as a kill leaves them.
	Torn int `json:"torn,omitempty"`
	// Damaged counts snapshots and journals that could not be read, and Refused
	// those, and records, that the state did not take. What they held is lost,
	// unless the snapshot before makes up for it.
	Damaged int `json:"damaged,omitempty"`
	Refused int `json:"refused,omitempty"`
	// Anew is whether there was something and nothing of it could be used.
	Anew bool `json:"anew,omitempty"`
}
