// Package slofile keeps the counts of objectives on disk.
//
// A File follows a State: every two seconds it appends what has changed to a
// journal, and every ten minutes, when the journal has grown, and at the end, it
// writes the whole as a snapshot and begins a new journal. So a process that is
// killed loses the last two seconds. The journal is not forced out of the
// system's cache: a loss of power can cost the last half minute on top.
//
// # Files
//
// A directory holds generations, numbered from 1 in 16 decimal digits. Snapshot n has
// all that came before it, journal n what came after it, until snapshot n+1:
//
//	0000000000000041.snapshot
//	0000000000000041.journal
//	0000000000000042.snapshot
//	0000000000000042.journal
//	lock
//
// The latest two generations are kept, so that when snapshot 42 is damaged,
// snapshot 41 and both journals give the same counts. A snapshot is written as
// n.snapshot.new, forced to the disk and renamed: it is there whole or not at all.
// A snapshot that is damaged or that the State does not take, with none before it
// to fall back to, is set aside as unreadable.snapshot, and counting begins anew.
// The lock file is locked (flock) by the one process that uses the directory; it stays.
// Other small files may lie beside these (see Beside), such as alerts.json; they have
// formats of their own.
//
// # Format
//
// Numbers are big-endian. Each file begins with a header of 24 bytes:
//
//	 0  8  "weir-slo"
//	 8  1  version of this format, 1
//	 9  1  'S' for a snapshot, 'J' for a journal
//	10  6  0
//	16  8  the generation
//
// Frames follow: one in a snapshot, any number in a journal, numbered from 0.
//
//	0  4  length n of the payload, from 1 to 128 MiB in a snapshot, 16 MiB in a journal
//	4  4  CRC-32C of the header, the frame's number (8 bytes), the length (4 bytes) and the payload
//	8  n  the payload: what State.Snapshot or State.Changes returned
//
// A frame that is cut or does not match its checksum ends a journal: what comes
// before it counts. A snapshot with anything else than one good frame is damaged.
package slofile
