#!/usr/bin/env python3
"""Crashes the gateway, and takes its disk away, from outside: none of its calls may be lost or counted twice.

usage: check.py BINARY [--rounds N] [--seed S] [--only kill|faults] [--fault CLASS]... [--no-mount]

Kills: a gateway with keys, limits and a ledger is killed N times (200) at random moments under load, in front of a
simulated engine and behind clients that note what they were told. After each start every call that reached the
upstream must have exactly one row, every acknowledged one the very tokens that its client was told, and the hourly
sums must be those of the rows. Acknowledged is what GET /weir/calls has shown, or whose last byte its client had more
than 50 ms before the kill.

Faults: the database locked, replaced by garbage, read-only, its disk full, its directory removed. Each time calls must
go on, GET /weir/ledger and /metrics must say what is wrong, and once the fault is gone every call must be in the
database once. --no-mount fills the disk by a limit on the size of files instead of a small file system, which takes
root. --fault tries only the faults of those classes of faults.py.

The same seed kills after the same times; what happens by then is left to the machine.
"""
import argparse
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import faults  # noqa: E402
import kill  # noqa: E402
import lib  # noqa: E402


def main():
    lib.exit_on_signals()
    flags = argparse.ArgumentParser(usage=__doc__)
    flags.add_argument("binary")
    flags.add_argument("--rounds", type=int, default=200)
    flags.add_argument("--seed", type=int)
    flags.add_argument("--only", choices=("kill", "faults"))
    flags.add_argument("--fault", action="append")
    flags.add_argument("--no-mount", action="store_true")
    args = flags.parse_args()
    seed = random.SystemRandom().randrange(10**6) if args.seed is None else args.seed
    checks = lib.Checks()
    if args.only != "faults":
        kill.check(args.binary, checks, args.rounds, seed)
    if args.only != "kill":
        faults.check(args.binary, checks, not args.no_mount, args.fault)
    return checks.close()


if __name__ == "__main__":
    sys.exit(main())
