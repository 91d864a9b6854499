"""Kills the gateway at random moments under load, starts it again, and holds the ledger against what clients and
upstream know.
"""
import collections
import json
import os
import random
import threading
import time

import lib
import rig

CLIENTS = 6
CALLS = 30            # of one client in one round, at most
LOAD_S = (0.02, 0.5)  # how long the load lasts until the kill
START_S = 0.12        # within which the kills fall that hit the start, and so the replay
AT_START = 0.15       # share of rounds whose kill does
# The record of a call is written after its last byte: a call counts as acknowledged so long after it.
ACKNOWLEDGED_S = 0.05

# Names of counts.
LOST = "not recorded: told as uncovered"
SLOWEST = "slowest start with replay, ms"

# How a call may end, by its kind, when its client had its end long before the kill.
OUTCOMES = {
    "chat": {"completed"}, "chat stream": {"completed"}, "chat stream, no usage": {"completed"},
    "messages": {"completed"}, "messages stream": {"completed"},
    # A client that has left is noticed at the next write, or never, when the answer was on its way already.
    "left before the answer": {"client_gone", "completed"}, "left in the stream": {"client_gone", "completed"},
    "upstream error": {"upstream_error"}, "upstream aborts": {"truncated", "stream_error", "upstream_error"},
}
WEIGHTS = {"chat": 5, "chat stream": 5, "chat stream, no usage": 2, "messages": 2, "messages stream": 2,
           "left before the answer": 2, "left in the stream": 2, "upstream error": 1, "upstream aborts": 1}


class Life:
    """One process of the gateway, from its start to its kill."""

    def __init__(self):
        self.calls = []        # list.append is atomic
        self.visible = set()   # names seen on /weir/calls
        self.uncovered = 0     # as /weir/ledger told it last,
        self.asked = None      # and when it was asked for that
        self.killed = None
        self.told = False      # the log says that the spill was not being written

    def left_open(self):
        """Whether the gateway said that calls went on without being recorded at once."""
        return self.uncovered > 0 or self.told

    def open_to_loss(self):
        """How many calls may be lost by its own account: those it told of, and those since it was last asked."""
        if not self.left_open():
            return 0
        return self.uncovered + sum(1 for c in self.calls if self.asked is None or c.ended > self.asked)


def load(gateway, life, number, seed, stop):
    """One client: call after call, until stop."""
    choose = random.Random("%s/%d" % (seed, number))
    for n in range(CALLS):
        if stop.is_set():
            return
        alias = choose.choices(rig.KEYS, (6, 3, 1))[0]
        call = rig.Call("%s-%d-%d" % (seed, number, n), choose.choices(list(WEIGHTS), list(WEIGHTS.values()))[0], alias)
        life.calls.append(call)
        rig.perform(gateway.port, call, gateway.keys[alias], choose.randint(2, 12))


def watch(gateway, life, stop):
    """Notes what the admin endpoint shows, until stop."""
    while not stop.is_set():
        asked = time.monotonic()
        state = gateway.ledger()
        if state:
            life.uncovered, life.asked = state["uncovered"], asked
        status, body = gateway.get("/weir/calls?limit=30")
        if status == 200 and not stop.is_set():
            life.visible.update(c["request_id"] for c in json.loads(body)["calls"] if c.get("request_id"))
        stop.wait(0.02)


def run(gateway, life, seed, seconds):
    """Loads a gateway that is ready, and kills it after so many seconds."""
    stop = threading.Event()
    threads = [threading.Thread(target=load, args=(gateway, life, n, seed, stop)) for n in range(CLIENTS)]
    threads.append(threading.Thread(target=watch, args=(gateway, life, stop)))
    for t in threads:
        t.start()
    time.sleep(seconds)
    stop.set()
    life.killed = gateway.kill()
    for t in threads:
        t.join()
    life.told = "spill is not being written" in gateway.tail()


def judge(call, rows, life, seen, counts):
    """What is wrong with the rows of one call."""
    mine = rows.get(call.name, [])
    acknowledged = call.name in life.visible or call.whole and call.ended < life.killed - ACKNOWLEDGED_S
    counts["acknowledged"] += acknowledged
    counts["reached the upstream"] += seen
    if not mine:
        if not acknowledged and not seen:
            counts["never arrived"] += 1
            return []
        if life.left_open():
            counts[LOST] += 1
            return []
        return ["%s (%s) has no row: acknowledged %s, seen upstream %s, client: %s" % (
            call.name, call.kind, acknowledged, seen, client(call, life))]
    if len(mine) > 1:
        return ["%s (%s) has %d rows" % (call.name, call.kind, len(mine))]
    row = mine[0]
    counts["rows"] += 1
    counts["outcome " + row["outcome"]] += 1
    tokens = row["input_tokens"], row["output_tokens"]
    problems = [lib.same("key", row["key"], call.alias)]
    refused = call.status == 429
    allowed = {"refused"} if refused else set(OUTCOMES[call.kind])
    if call.alias == "tight" and call.status is None:
        allowed.add("refused")
    if row["outcome"] == "crashed":
        problems += [lib.same("usage_source", row["usage_source"], "none"),
                     lib.same("provenance", row["provenance"], "estimated"),
                     "estimated_output_tokens is NULL" if row["estimated_output_tokens"] is None else None]
        if acknowledged and life.left_open():
            counts["acknowledged, and crashed: told as uncovered"] += 1
        elif acknowledged:
            problems.append("crashed, though it was acknowledged: %s" % client(call, life))
        if call.whole:
            counts["whole at the client within %d ms of the kill, and crashed" % (ACKNOWLEDGED_S * 1000)] += 1
    else:
        ended = call.whole or call.name in life.visible and call.ended < life.killed
        if ended and row["outcome"] not in allowed:
            problems.append("outcome=%r want one of %s" % (row["outcome"], sorted(allowed)))
        if call.whole:
            problems.append(lib.same("status", row["status"], call.status))
        if call.tokens and not refused:
            counts["exact tokens"] += 1
            problems.append(lib.same("tokens", tokens, call.tokens))
    if row["outcome"] in ("crashed", "refused", "upstream_error") or call.whole and not call.tokens:
        problems.append(lib.same("reported tokens", tokens, (None, None)))
    problems = [p for p in problems if p]
    if not problems:
        return []
    return ["%s (%s): %s; %s; client: %s" % (call.name, call.kind, ", ".join(problems), row, client(call, life))]


def client(call, life):
    return "status %s, whole %s, ended %+.0f ms from the kill, %s" % (
        call.status, call.whole, (call.ended - life.killed) * 1000, call.error)


def check(binary, checks, rounds, seed):
    """The whole of it: rounds of load, kill, start and comparison."""
    chance = random.Random(seed)
    counts = collections.Counter()
    began = time.monotonic()
    with lib.temporary_directory() as directory:
        sim, port = rig.simulator(binary, directory)
        with sim, rig.Relay(port) as relay:
            sim.wait_for(lambda: lib.listening(port), 30)
            database = os.path.join(directory, "usage.db")
            gateway = rig.Gateway(binary, directory, relay.port, database, options=("max_spill 1MiB",))
            with gateway:
                rounds_of(gateway, relay, checks, rounds, seed, chance, counts)
            left = [name for name in os.listdir(gateway.spill) if name.endswith(".spill")]
            with rig.Tables(gateway.database) as tables:
                checks.add("after a clean end", [
                    tables.whole(), lib.same("segments left in the spill", left, []), *tables.problems()])
    print("kill: %d rounds in %.0f s, seed %s" % (rounds, time.monotonic() - began, seed))
    for name, n in sorted(counts.items()):
        print("kill:   %6d %s" % (n, name))


def rounds_of(gateway, relay, checks, rounds, seed, chance, counts):
    """The gateway runs when this is called, and when it returns."""
    last = 0
    for number in range(rounds):
        life = Life()
        run(gateway, life, "%s.%d" % (seed, number), chance.uniform(*LOAD_S))
        counts["kills under load"] += 1
        counts["calls"] += len(life.calls)
        while chance.random() < AT_START:
            counts["kills at the start"] += 1
            gateway.start()
            time.sleep(chance.uniform(0, START_S))
            gateway.kill()
        before = time.monotonic()
        gateway.start().ready()
        state, problems = gateway.flushed()
        counts[SLOWEST] = max(counts[SLOWEST], int((time.monotonic() - before) * 1000))
        problems += [lib.same(name, state.get(name), 0) for name in ("dropped", "damaged", "refused")]
        for name in ("replayed", "torn"):
            counts["%s, as the ledger counts" % name] += state.get(name, 0)
        with rig.Tables(gateway.database) as tables:
            last, rows = tables.rows(last)
            problems += tables.problems()
        lost = counts[LOST]
        counts["lives in which the breaker let calls go on"] += life.left_open()
        counts["starts and ends not recorded at once, as last told"] += life.uncovered
        for call in life.calls:
            problems += judge(call, rows, life, call.name in relay.seen, counts)
        if counts[LOST] - lost > life.open_to_loss():
            problems.append("%d calls are lost, and the gateway told of %d at most" % (
                counts[LOST] - lost, life.open_to_loss()))
        strange = rows.keys() - {call.name for call in life.calls}
        problems += ["a row of no call of this round: %s" % name for name in strange]
        checks.add("round %d, seed %s" % (number, seed), problems)
