"""Takes the ledger's disk away in the ways that disks go, and holds that calls go on, that it is told, and that nothing
is lost once the disk is back.
"""
import contextlib
import os
import re
import resource
import shutil
import sqlite3
import statistics
import subprocess
import time

import lib
import rig

CALLS = 60          # one after the other, before, during and after a fault
NOTICED_S = 15      # within which the ledger must tell; the calls go on meanwhile
# A call may wait for the disk twice, at its start and at its end, each time for the breaker's 10 ms, and no longer. The
# rest is the machine's: others run on it too.
ADDED_MEDIAN_MS = 2 * 10 + 10
ADDED_P95_MS = 2 * 10 + 200
SMALL_DISK = 8 << 20
FILES = ("", "-wal", "-shm")  # of an SQLite database
COUNTED = ("uncovered", "dropped", "damaged", "torn")


class Fault:
    """One way of losing the disk. A subclass says what breaks and mends it, and what is to be said meanwhile."""

    name = ""
    says = None            # what /weir/ledger must give as the reason; None: it may know how to help itself
    at_start = False       # the gateway starts with the fault, else it comes while it runs
    unprivileged = False
    spill_apart = False    # the spill is on a disk that stays well
    options = ("max_spill 1MiB",)  # small segments, so that a new one is begun within a phase
    lost = frozenset()     # names of calls whose rows the fault itself took away

    def __init__(self, directory):
        self.directory = directory
        self.data = os.path.join(directory, "data")
        self.database = os.path.join(self.data, "usage.db")
        self.spill = os.path.join(directory, "spill") if self.spill_apart else None
        os.mkdir(self.data)
        if self.spill:
            os.mkdir(self.spill)
        if self.unprivileged and os.geteuid() == 0:
            for path in filter(None, (self.data, self.spill)):
                os.chown(path, rig.NOBODY, rig.NOBODY)

    def close(self):
        """Leaves the directory such that it can be removed."""

    def broken(self, gateway, calls):
        raise NotImplementedError

    def mended(self, gateway):
        raise NotImplementedError


class Locked(Fault):
    """Another process in the middle of a transaction."""
    name, says = "database locked by another process", "lock"

    def broken(self, gateway, calls):
        self.other = sqlite3.connect(self.database, isolation_level=None, timeout=10)
        self.other.execute("BEGIN EXCLUSIVE")

    def mended(self, gateway):
        self.other.execute("ROLLBACK")
        self.other.close()


class ReadOnlyFile(Fault):
    """A database that somebody else made, or that was restored with the wrong mode."""
    name, says, at_start, unprivileged, spill_apart = "database file read-only", "may not be written", True, True, True

    def broken(self, gateway, calls):
        with gateway:  # makes it
            perform(gateway, calls, "made", 1)
            gateway.flushed()
        for name in os.listdir(self.data):
            os.chmod(os.path.join(self.data, name), 0o444)

    def mended(self, gateway):
        for name in os.listdir(self.data):
            os.chmod(os.path.join(self.data, name), 0o644)


class NoDirectoryToWrite(Fault):
    """Neither database nor spill can be made: all there is, is memory."""
    name, says, at_start, unprivileged = "directory read-only from the start", "permission denied", True, True

    def broken(self, gateway, calls):
        os.chmod(self.data, 0o555)

    def mended(self, gateway):
        os.chmod(self.data, 0o755)


class ReadOnlyDirectory(Fault):
    """The directories lose their write permission while all files in them are open."""
    name, says, unprivileged = "directory read-only while it runs", "permission denied", True

    def broken(self, gateway, calls):
        self.mode(0o555)

    def mended(self, gateway):
        self.mode(0o755)

    def mode(self, mode):
        for path in (self.data, self.database + ".spill"):
            os.chmod(path, mode)


class Garbage(Fault):
    """Something else is where the database was; then the database is moved back."""
    name, says = "database replaced by garbage, then put back", "damaged or no SQLite file"

    def broken(self, gateway, calls):
        self.aside = os.path.join(self.directory, "aside.db")
        for end in FILES:
            os.rename(self.database + end, self.aside + end)
        with open(self.database, "wb") as f:
            f.write(os.urandom(1 << 16))

    def mended(self, gateway):
        for end in FILES:
            os.replace(self.aside + end, self.database + end)


class GarbageRemoved(Garbage):
    """The garbage is removed, and a new database is begun; what was in the old one is in the old one."""
    name = "database replaced by garbage, then removed"

    def mended(self, gateway):
        os.remove(self.database)
        with rig.Tables(self.aside) as tables:
            self.lost = frozenset(tables.rows()[1])


class Backup(Fault):
    """A backup is moved to where the database is, and the write-ahead log of the other one is left beside it."""
    name = "database replaced by a backup of it"

    def broken(self, gateway, calls):
        backup, since = os.path.join(self.directory, "backup.db"), len(calls)
        with contextlib.closing(sqlite3.connect(self.database)) as now:
            with contextlib.closing(sqlite3.connect(backup)) as then:
                now.backup(then)
            perform(gateway, calls, "before", CALLS)
            gateway.flushed()
            now.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # as happens by itself every thousand pages
        perform(gateway, calls, "before", CALLS)
        gateway.flushed()
        self.lost = frozenset(call.name for call in calls[since:])
        os.replace(backup, self.database)

    def mended(self, gateway):
        pass


class SpillRemoved(Fault):
    """rm -rf on the directory of the spill alone. The ledger may make it anew before it can be asked."""
    name = "spill's directory removed"

    def broken(self, gateway, calls):
        shutil.rmtree(self.database + ".spill")

    def mended(self, gateway):
        os.makedirs(self.database + ".spill", exist_ok=True)


class Removed(Fault):
    """rm -rf on the directory of database and spill, which is made anew, empty, if the ledger has not done so."""
    name = "directory removed"

    def broken(self, gateway, calls):
        self.lost = frozenset(call.name for call in calls)
        shutil.rmtree(self.data)

    def mended(self, gateway):
        os.makedirs(self.data, exist_ok=True)


class Full(Fault):
    """A small file system, filled up: database and spill find no room."""
    name, says = "disk full, a tmpfs of %d MiB" % (SMALL_DISK >> 20), "full|no space"

    def __init__(self, directory):
        super().__init__(directory)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % SMALL_DISK, "weir-ci", self.data], check=True)

    def broken(self, gateway, calls):
        with open(os.path.join(self.data, "filler"), "wb", buffering=0) as f:
            size = 1 << 16
            while size:
                try:
                    f.write(b"\0" * size)
                except OSError:
                    size //= 2

    def mended(self, gateway):
        os.remove(os.path.join(self.data, "filler"))

    def close(self):
        subprocess.run(["umount", "-l", self.data], check=True)


class FullApart(Full):
    name, spill_apart = "disk of the database full, the spill elsewhere", True


class FileSizes(Fault):
    """No file of the gateway may grow: what a full disk is without a disk to fill."""
    name, says = "disk full, by RLIMIT_FSIZE of the process", "full|too large|i/o"

    def broken(self, gateway, calls):
        self.limit(gateway, 4096)

    def mended(self, gateway):
        self.limit(gateway, resource.RLIM_INFINITY)

    def limit(self, gateway, size):
        _, hard = resource.prlimit(gateway.child.pid, resource.RLIMIT_FSIZE)
        if size == resource.RLIM_INFINITY:
            size = hard
        resource.prlimit(gateway.child.pid, resource.RLIMIT_FSIZE, (size, hard))


def can_mount(directory):
    """Whether this process may mount a small file system."""
    place = os.path.join(directory, "mount")
    os.mkdir(place)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "weir-ci", place], capture_output=True).returncode != 0:
        return False
    subprocess.run(["umount", place], check=True)
    return True


def perform(gateway, calls, phase, number):
    """Makes calls one after the other, and returns how long each took, in milliseconds."""
    took = []
    for _ in range(number):
        call = rig.Call("%s-%d" % (phase, len(calls)), "chat", "one")
        calls.append(call)
        began = time.monotonic()
        rig.perform(gateway.port, call, gateway.keys["one"], 2)
        took.append((call.ended - began) * 1000)
    return took


def noticed(gateway, calls, took):
    """Goes on with calls until the ledger tells of the fault; returns its state, and what the metrics say."""
    deadline = time.monotonic() + NOTICED_S
    while True:
        state = gateway.ledger()
        if state.get("degraded") or time.monotonic() > deadline:
            _, metrics = gateway.get("/metrics")
            found = re.search(r"^weir_ledger_degraded (\S+)$", metrics.decode(), re.M)
            return state, found and float(found.group(1))
        took += perform(gateway, calls, "during", 10)


def show(took):
    return "%.1f/%.1f/%.1f" % (statistics.median(took), p95(took), max(took))


def p95(took):
    return statistics.quantiles(took, n=20)[-1]


def walk(binary, kind, upstream, directory):
    """One fault from end to end: what is wrong, and a line of figures."""
    fault, calls = kind(directory), []
    try:
        gateway = rig.Gateway(binary, directory, upstream, fault.database, fault.spill, fault.options,
                              fault.unprivileged)
        if fault.at_start:
            fault.broken(gateway, calls)
        with gateway:
            return endure(gateway, fault, calls)
    finally:
        fault.close()


def endure(gateway, fault, calls):
    """The gateway's part of a walk."""
    problems, before = [], None
    if not fault.at_start:
        before = perform(gateway, calls, "before", CALLS)
        problems += gateway.flushed()[1]
        fault.broken(gateway, calls)
    during = perform(gateway, calls, "during", CALLS)
    if fault.says:
        told, gauge = noticed(gateway, calls, during)
        reason = told.get("reason", "")
        problems += [None if told.get("degraded") else "not told as degraded after %d s: %s" % (NOTICED_S, told),
                     lib.same("weir_ledger_degraded", gauge, 1.0),
                     unsaid(fault, reason)]
    else:
        reason = gateway.ledger().get("reason", "nothing")
    during += perform(gateway, calls, "during", CALLS)
    fault.mended(gateway)
    mended = time.monotonic()
    after = perform(gateway, calls, "after", CALLS)
    state, restless = gateway.flushed()
    rest_s = time.monotonic() - mended
    problems += restless
    failed = [c for c in calls if not c.whole or c.status != 200]
    problems += ["a call failed: %s, status %s, %s" % (c.name, c.status, c.error) for c in failed[:3]]
    usual = before or after
    added = statistics.median(during) - statistics.median(usual), p95(during) - p95(usual)
    if added[0] > ADDED_MEDIAN_MS or added[1] > ADDED_P95_MS:
        problems.append("calls took %s ms without the fault and %s with it" % (show(usual), show(during)))
    try:
        with rig.Tables(fault.database) as tables:
            lacking, wrong = compare(tables, fault, calls, state)
    except sqlite3.Error as e:
        lacking, wrong = "unknown", ["the database cannot be read: %r" % e]
    figures = [fault.name,
               "%d calls; median/p95/most ms: %s before, %s during, %s after" % (
                   len(calls), show(before) if before else "-", show(during), show(after)),
               "at rest %.1f s after the fault; not in the database: %s; in what the fault took away: %d" % (
                   rest_s, lacking, len(fault.lost)),
               "entries " + ", ".join("%s %s" % (name, state.get(name)) for name in COUNTED),
               "told: " + reason]
    return problems + wrong, "\n    ".join(figures)


def unsaid(fault, reason):
    """The problem of a reason that does not say what it must. The paths in it say nothing."""
    if re.search(fault.says, reason.replace(fault.directory, ""), re.I):
        return None
    return "the reason says nothing of %s: %r" % (fault.says, reason)


def compare(tables, fault, calls, state):
    """How many calls the database lacks, and what is wrong with what it has."""
    problems = [tables.whole(), *tables.problems()]
    _, rows = tables.rows()
    lacking = [call.name for call in calls if call.name not in rows]
    unexplained = [name for name in lacking if name not in fault.lost]
    if len(unexplained) > state.get("dropped", 0):
        problems.append("%d calls are in no row and %d entries told as dropped: %s" % (
            len(unexplained), state.get("dropped", 0), unexplained[:5]))
    for call in calls:
        for row in rows.pop(call.name, [])[:1]:
            tokens = row["input_tokens"], row["output_tokens"]
            problems += [lib.same("tokens of " + call.name, tokens, call.tokens),
                         lib.same("outcome of " + call.name, row["outcome"], "completed")]
    if rows:
        problems.append("rows of no call: %s" % sorted(rows)[:3])
    return len(lacking), [p for p in problems if p][:10]


def check(binary, checks, mount, only=None):
    """Every fault, each with a gateway of its own; or only those whose class is named."""
    began = time.monotonic()
    kinds = [Locked, ReadOnlyFile, NoDirectoryToWrite, ReadOnlyDirectory, Garbage, GarbageRemoved, Backup,
             SpillRemoved, Removed]
    with lib.temporary_directory() as directory:
        os.chmod(directory, 0o755)
        kinds += [Full, FullApart] if mount and can_mount(directory) else [FileSizes]
        if only:
            kinds = [kind for kind in kinds if kind.__name__ in only]
        sim, port = rig.simulator(binary, directory)
        with sim:
            sim.wait_for(lambda: lib.listening(port), 30)
            for kind in kinds:
                place = os.path.join(directory, kind.__name__)
                os.mkdir(place)
                problems, figures = walk(binary, kind, port, place)
                print("fault: " + figures, flush=True)
                checks.add(kind.name, problems)
    print("faults: %d in %.0f s" % (len(kinds), time.monotonic() - began))
