#!/usr/bin/env python3
"""Puts the same load on the simulated engine with another tool and with `weir bench` by that tool's definitions.

usage: check.py BINARY NAME=PROGRAM...   (NAME is aiperf or guidellm; PROGRAM is where it is installed)

Three runs of each, by turns. The medians of every figure that both have must agree within 2 %.
"""
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib  # noqa: E402
import clients  # noqa: E402
import load  # noqa: E402

RUNS = 3
LIMIT = 0.02
TIMES = {"aiperf": ("TTFT", "ITL", "E2E"), "guidellm": ("TTFT", "TPOT", "ITL", "E2E")}
RATES = ("calls/s", "output tokens/s")

# A run during which more of the engine's steps came late tells of the machine, not of definitions. It is repeated, and
# of a few such runs the evenest counts.
UNEVEN, ATTEMPTS = 0.02, 3


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    lib.exit_on_signals()
    binary, checks = os.path.abspath(sys.argv[1]), lib.Checks()
    for named in sys.argv[2:]:
        name, _, program = named.partition("=")
        if name not in clients.TOOLS:
            sys.exit(__doc__)
        with lib.temporary_directory() as directory, load.Engine(binary, directory) as engine:
            try:
                compare(checks, name, binary, os.path.abspath(program), engine, directory)
            except (RuntimeError, OSError, LookupError, TypeError, ValueError) as e:
                checks.add(name, ["%s: %s" % (type(e).__name__, e)])
    sys.exit(checks.close())


def compare(checks, name, binary, program, engine, directory):
    theirs, ours = [], []
    for n in range(RUNS):
        for who, run, into in ((name, lambda at: clients.TOOLS[name](program, engine, at), theirs),
                               ("weir", lambda at: clients.weir(binary, engine, at, name), ours)):
            figures = evenly(run, engine, directory, "%s-%d-%s" % (name, n, who))
            checks.add("load of %s, run %d" % (who, n + 1), [
                lib.same("calls", figures["calls"], load.CALLS), lib.same("failed", figures["failed"], 0),
                lib.same("output tokens", figures["output"], load.OUTPUT),
                lib.near("input tokens", figures["input"], load.INPUT, load.INPUT * LIMIT)])
            into.append(figures)
    print("\n%s %s and weir %s" % (name, theirs[0]["version"], ours[0]["version"] or "without a version"))
    print("%-16s %10s %10s %11s" % ("medians of %d" % RUNS, name, "weir", "difference"), flush=True)
    for figure in (*(of + one for of in TIMES[name] for one in (" mean", " p50")), *RATES):
        their, our = median(theirs, figure), median(ours, figure)
        if their is None or our is None:
            checks.add("%s, %s" % (name, figure), ["%s has %r, weir %r" % (name, their, our)])
            continue
        apart = (our - their) / their
        print("%-16s %10.3f %10.3f %+10.2f%%" % (figure, their, our, apart * 100), flush=True)
        checks.add("%s, %s" % (name, figure), ["%.2f %% apart" % (apart * 100) if abs(apart) > LIMIT else None])
    print(flush=True)


def median(runs, figure):
    found = [r.get(figure) for r in runs]
    return None if None in found else statistics.median(found)


def evenly(run, engine, directory, label):
    """The figures of a run, repeated while this machine is too busy for it."""
    best = None
    for attempt in range(ATTEMPTS):
        at = os.path.join(directory, "%s-%d" % (label, attempt))
        os.mkdir(at)
        engine.uneven()
        figures = run(at)
        uneven = engine.uneven()
        print("%s: %.1f %% of steps late, load average %.1f" % (label, uneven * 100, os.getloadavg()[0]), flush=True)
        if best is None or uneven < best[0]:
            best = (uneven, figures)
        if uneven <= UNEVEN:
            break
    return best[1]


if __name__ == "__main__":
    main()
