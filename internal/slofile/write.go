package slofile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// writer is where Run stands in the directory. Run alone uses it.
//
// There is one answer to every fault: what was begun is left, and the next try
// writes a snapshot, which has everything, as the next generation. So no change is
// appended twice, and none to a file of which it is not known what it holds.
type writer struct {
	lock   lock // nil: the directory is another's, or cannot be used
	loaded bool // what there was has been taken up, which is done once
	tries  int  // to read it

	generation uint64 // that changes are appended to; 0: the next write is a snapshot
	previous   uint64 // the one before; what is older may go
	latest     uint64 // the latest that was there or was written
	attempt    uint64 // one whose snapshot failed, to be overwritten; 0 without
	aside      uint64 // generation of a snapshot to set aside; 0 without
	changed    bool   // there are changes that are in no file

	whole   int64     // bytes of the snapshot
	began   time.Time // when it was written
	out     file      // the journal; nil before the first record
	size    int64     // of the journal
	records uint64    // in it
}

// begin starts in a directory that was taken.
func (f *File) begin(l lock, found *found, loaded Loaded) {
	f.hold(l)
	f.latest, f.loaded = found.latest, true
	f.previous = loaded.Generation
	if loaded.Anew {
		f.aside = found.unread
	}
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	f.status.Loaded, f.status.Bytes = loaded, found.size
	if f.faults.err == nil {
		f.faults.since = loaded.At
	}
}

// write writes what there is to write: the changes behind those of the journal, or
// all as a new snapshot. It tells whether there was anything.
func (f *File) write(changes []byte, last bool) (wrote bool, err error) {
	defer f.watch()()
	due := f.records > 0 && (last || time.Since(f.began) >= snapshotEvery)
	if !f.changed && !due {
		return false, nil
	}
	if f.generation > 0 && len(changes) > 0 && len(changes) <= maxRecord {
		if err = f.append(changes); err == nil {
			f.changed = false
			due = due || last || f.size >= f.maxJournal
		}
	}
	if err == nil && (f.changed || due) {
		err = f.snapshot()
	}
	if err != nil {
		f.leave()
		return false, err
	}
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	f.status.LastWritten, f.status.Bytes = time.Now(), f.whole+f.size
	return true, nil
}

// leave leaves the generation: the next is begun with a snapshot.
func (f *File) leave() {
	if f.out != nil {
		f.out.Close() // what it holds, or not, the next snapshot has
		f.out = nil
	}
	if f.generation > 0 {
		f.previous = f.generation
	}
	f.generation, f.changed = 0, true
}

func (f *File) path(generation uint64, suffix string) string {
	return filepath.Join(f.dir, entry{generation: generation, suffix: suffix}.name())
}

// append puts changes behind those of the journal.
func (f *File) append(changes []byte) error {
	if !f.lock.Held() {
		return f.lost()
	}
	name := f.path(f.generation, suffixJournal)
	head := header(journals, f.generation)
	frame := appendFrame(nil, head, f.records, changes)
	if f.out == nil {
		out, err := f.disk.Create(name)
		if err != nil {
			return fmt.Errorf("begin a journal of counts: %w", err)
		}
		f.out, f.size, f.records = out, 0, 0
		frame = append(head, frame...)
	} else if size, err := f.disk.Size(name); err != nil || size != f.size {
		if err == nil {
			err = fmt.Errorf("it has %d bytes, not %d", size, f.size)
		}
		return fmt.Errorf("the journal of counts %s was changed by somebody else: %w", name, err)
	}
	frame = append(frame, changes...)
	n, err := f.out.Write(frame)
	f.size += int64(n)
	if err != nil {
		return fmt.Errorf("append to the journal of counts: %w", err)
	}
	f.records++
	return nil
}

// lost gives up a lock that does not count any more; the next step takes it anew.
func (f *File) lost() error {
	f.lock.Close()
	f.lock, f.attempt = nil, 0
	return fmt.Errorf("the lock of %s was removed, or all of it; let nobody clear the directory while the gateway runs", f.dir)
}

// snapshot writes all as the next generation, and removes those that are not
// needed any more.
func (f *File) snapshot() error {
	if !f.lock.Held() {
		return f.lost()
	}
	next, err := f.clear()
	if err != nil {
		return err
	}
	whole := f.state.Snapshot()
	if int64(len(whole)) > maxSnapshot || len(whole) == 0 {
		return fmt.Errorf("write a snapshot of counts: it has %d bytes, and 1 to %d can be kept", len(whole), maxSnapshot)
	}
	f.attempt = next
	name := f.path(next, suffixSnapshot)
	if err := f.create(f.path(next, suffixNew), next, whole); err != nil {
		return fmt.Errorf("write a snapshot of counts: %w", err)
	}
	if err := f.disk.Rename(f.path(next, suffixNew), name); err != nil {
		return fmt.Errorf("name a snapshot of counts: %w", err)
	}
	if err := f.disk.Sync(f.dir); err != nil {
		return fmt.Errorf("sync the directory of counts: %w", err)
	}
	f.leave()
	f.generation, f.latest, f.attempt, f.changed = next, next, 0, false
	f.whole, f.size, f.records, f.began = headerLen+frameLen+int64(len(whole)), 0, 0, time.Now()
	return nil
}

// create writes a file with one frame.
func (f *File) create(name string, generation uint64, payload []byte) (err error) {
	out, err := f.disk.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			_ = f.disk.Remove(name) // may free a full disk; else the next try does
		}
	}()
	head := header(snapshots, generation)
	if _, err := out.Write(appendFrame(head, head, 0, payload)); err != nil {
		return err
	}
	if _, err := out.Write(payload); err != nil {
		return err
	}
	return out.Sync()
}

// clear removes what is older than the two generations that are kept, and what
// a try that failed has left, and returns the number of the next generation. A
// directory that cannot be cleared gets no other file, or it would grow for ever.
func (f *File) clear() (next uint64, err error) {
	entries, latest, err := list(f.disk, f.dir)
	if err != nil {
		return 0, err
	}
	keep := f.previous
	if f.generation > 0 {
		keep = f.generation
	}
	for _, e := range entries {
		name := filepath.Join(f.dir, e.name())
		switch {
		case e.generation == f.aside && e.suffix == suffixSnapshot:
			err = f.disk.Rename(name, filepath.Join(f.dir, asideName))
		case e.generation < keep || e.suffix == suffixNew:
			err = f.disk.Remove(name)
		default:
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("clear the directory of counts: %w", err)
		}
	}
	f.aside = 0
	if latest = max(latest, f.latest); f.attempt > 0 && f.attempt >= latest {
		return f.attempt, nil // or a disk that fails would be filled, file by file
	}
	return latest + 1, nil
}

// end gives the directory up.
func (f *File) end() {
	if f.out != nil {
		f.out.Close() // after the last snapshot, or a fault that was told of
	}
	if f.lock != nil {
		f.lock.Close()
	}
}
