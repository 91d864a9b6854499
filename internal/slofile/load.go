package slofile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	suffixSnapshot = ".snapshot"
	suffixJournal  = ".journal"
	suffixNew      = suffixSnapshot + ".new"
	asideName      = "unreadable.snapshot"

	// maxGeneration is the last that has a name of 16 digits, less room that is
	// never used up: one a second takes 31 million years.
	maxGeneration = 1e15
	// maxCandidates is how many snapshots and journals are looked at. There are
	// three at most unless somebody put them there.
	maxCandidates = 8
	// maxReadTries is how often reading is tried again before what cannot be read
	// counts as damaged.
	maxReadTries = 5
)

// entry is a file of a generation.
type entry struct {
	generation uint64
	suffix     string
	size       int64
}

func (e entry) name() string { return fmt.Sprintf("%016d", e.generation) + e.suffix }

// parseName reads the name of a file; false when it is not one of ours.
func parseName(f fileInfo) (entry, bool) {
	digits, suffix, _ := strings.Cut(f.name, ".")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || len(digits) != 16 || n == 0 || n > maxGeneration {
		return entry{}, false
	}
	e := entry{n, "." + suffix, f.size}
	return e, e.suffix == suffixSnapshot || e.suffix == suffixJournal || e.suffix == suffixNew
}

// list returns the files of all generations, the latest first, and the latest
// generation, 0 without any.
func list(d disk, dir string) (entries []entry, latest uint64, err error) {
	files, err := d.List(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("list the directory of counts: %w", err)
	}
	for _, f := range files {
		if e, ours := parseName(f); ours {
			entries = append(entries, e)
			latest = max(latest, e.generation)
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(b.generation, a.generation) })
	return entries, latest, nil
}

// found is what a directory holds of earlier processes.
type found struct {
	snapshots []loadedFile // good ones, the latest first; two at most
	journals  []loadedFile // from the older of them on, the oldest first
	latest    uint64       // generation of any file
	unread    uint64       // generation of the latest snapshot that is damaged
	torn      int          // journals with a torn tail
	damaged   int          // snapshots and journals
	size      int64        // of the snapshots and journals looked at
	why       error        // the first reason of damage
}

type loadedFile struct {
	generation uint64
	payloads   [][]byte
}

// spoil counts a file that is of no use.
func (f *found) spoil(e entry, err error) {
	f.damaged++
	if f.why == nil {
		f.why = fmt.Errorf("read %s: %w", e.name(), err)
	}
	if e.suffix == suffixSnapshot && f.unread == 0 {
		f.unread = e.generation
	}
}

// look reads what a directory holds. Two snapshots are read, since a State may
// refuse the latest. An error is one of the disk, and another try may do better;
// patient is whether there is to be one.
func look(d disk, dir string, patient bool) (*found, error) {
	entries, latest, err := list(d, dir)
	if err != nil {
		return nil, err
	}
	f := &found{latest: latest}
	read := func(e entry, max int64) ([]byte, error) {
		b, err := d.Read(filepath.Join(dir, e.name()), max)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && patient {
			return nil, fmt.Errorf("read the counts: %w", err)
		}
		if err != nil {
			f.spoil(e, err)
			return nil, nil
		}
		f.size += int64(len(b))
		return b, nil
	}
	looked := 0
	for _, e := range entries {
		if e.suffix != suffixSnapshot {
			continue
		}
		if looked++; looked > maxCandidates || len(f.snapshots) == 2 {
			break
		}
		b, err := read(e, headerLen+frameLen+maxSnapshot+1)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		payload, err := parseSnapshot(b, e.generation)
		if err != nil {
			f.spoil(e, err)
			continue
		}
		f.snapshots = append(f.snapshots, loadedFile{e.generation, [][]byte{payload}})
	}
	if len(f.snapshots) == 0 {
		return f, nil // a journal alone says too little
	}
	oldest := f.snapshots[len(f.snapshots)-1].generation
	for _, e := range entries {
		if e.suffix != suffixJournal || e.generation < oldest || len(f.journals) == maxCandidates {
			continue
		}
		b, err := read(e, 2*maxRecord)
		if err != nil {
			return nil, err
		}
		if len(b) == 0 {
			continue // killed before its first record
		}
		payloads, torn, err := parse(b, journals, e.generation)
		switch {
		case err != nil && len(b) < headerLen:
			f.torn++
			continue
		case err != nil:
			f.spoil(e, err)
			continue
		case torn:
			f.torn++
		}
		f.journals = append(f.journals, loadedFile{e.generation, payloads})
	}
	slices.Reverse(f.journals)
	return f, nil
}

// adopt gives a state what was found. fresh is nil for a state that has counted nothing
// yet; else it makes another, of which the state then gets the sum.
func (f *found) adopt(state State, fresh func() State) (Loaded, error) {
	if fresh == nil || len(f.snapshots) == 0 {
		return f.into(state)
	}
	refuse := func(l Loaded, err error) (Loaded, error) {
		l.Generation, l.Records, l.Anew = 0, 0, true
		f.unread = f.snapshots[0].generation
		return l, err
	}
	sum, can := state.(merger)
	other := fresh()
	if !can || other == nil {
		return refuse(Loaded{Torn: f.torn, Damaged: f.damaged}, errors.New("counting had begun before the files could be read"))
	}
	l, err := f.into(other)
	if l.Generation == 0 {
		return l, err
	}
	if refusal := sum.Merge(other.Snapshot()); refusal != nil {
		l.Refused++
		return refuse(l, fmt.Errorf("add what was kept to what has been counted: %w", refusal))
	}
	return l, err
}

// into gives an empty state what was found.
func (f *found) into(state State) (l Loaded, err error) {
	l.Torn, l.Damaged, err = f.torn, f.damaged, f.why
	unread := f.unread
	for _, s := range f.snapshots {
		if refusal := state.Restore(s.payloads[0]); refusal != nil {
			l.Refused++
			err = cmp.Or(err, fmt.Errorf("take up generation %d: %w", s.generation, refusal))
			unread = max(unread, s.generation)
			continue
		}
		l.Generation = s.generation
		break
	}
	if l.Generation == 0 {
		l.Anew, f.unread = unread > 0, unread
		return l, err
	}
	for _, j := range f.journals {
		if j.generation < l.Generation {
			continue
		}
		for _, changes := range j.payloads {
			if refusal := state.Apply(changes); refusal != nil {
				l.Refused++
				err = cmp.Or(err, fmt.Errorf("take up changes of generation %d: %w", j.generation, refusal))
				continue // each stands for itself
			}
			l.Records++
		}
	}
	return l, err
}
