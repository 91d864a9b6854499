// Package ledger keeps usage per key, durably.
//
// A call passes through it twice. Start and End append what they are told to
// the spill, a log in a directory, and return when it is in the page cache: from
// then on the call survives the end of the process. One goroutine, the
// committer, follows the spill, puts ends into the SQLite database in groups,
// adds them to the hourly and daily sums in the same transaction, and removes
// what is through. A start without an end, found after a restart, becomes a row
// with outcome crashed. The database is schema.sql, which is public.
//
//	calls ─► Start, End ─► spill ─► committer ─► database ─► Usage, Calls
//	         breaker.go    spill.go  commit.go    database.go  usage.go
//	                       writer.go tail.go      insert.go    cover.go
//	                                              rollup.go    adding.go
//	                                                           calls.go
//
// No call waits for the database, and none waits for a disk longer than the
// breaker allows. What that costs is counted in the State. One thing is out of
// the ledger's hands: SQLite maps the index of its write-ahead log
// (usage.db-shm) into memory, and a thread that touches a mapped page of a disk
// that has died cannot be stopped. Keep the database on a local disk.
package ledger
