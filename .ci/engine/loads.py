"""`weir bench` against a real llama.cpp server through the gateway, and the engine's queue as the gateway infers it."""
import json
import os
import subprocess

import lib

CALLS, REPEATS = 60, 2
# What the figures are to be on a quiet machine: the tails are printed beside these, and fail nothing, since other work
# on the machine stretches them; the medians do.
TTFT_MS = 1.0   # between client's and gateway's first token of the same call, at p99
SLOT_MS = 20.0  # from the end of a stream to the beginning of the next one's prefill, each


def bench(checks, binary, gateway, directory):
    """Tokens of every call are equal on both sides, and first tokens as close as two processes on one machine can be."""
    saved = os.path.join(directory, "bench.json")
    ran = subprocess.run([binary, "bench", "--url", "http://%s:%d" % (lib.HOST, gateway.ports["alone"]), "--model", "gemma",
                          "--concurrency", "2", "--calls", str(CALLS), "--repeat", str(REPEATS), "--input", "32", "--output", "8",
                          "--ignore-eos", "--compare", "--admin", "http://%s:%d" % (lib.HOST, gateway.admin), "--save", saved,
                          "--quiet"], capture_output=True, text=True, timeout=600, cwd=directory)
    if ran.returncode:
        checks.add("weir bench", ["status %d: %s" % (ran.returncode, (ran.stderr or ran.stdout)[-500:])])
        return
    with open(saved) as f:
        run = json.load(f)["runs"][0]
    compared, ttft = run["compared"], run["compared"].get("ttft_difference_ms") or {}
    print("weir bench: %d calls, %d found at the gateway, tokens equal in %d; first token apart by %.3f ms (p50), %.3f (p95), "
          "%.3f (p99, %s %.0f ms), %.3f at most" % (compared["calls"], compared["found"], compared["tokens_equal"], ttft.get("p50", -1),
                                        ttft.get("p95", -1), ttft.get("p99", -1), within(ttft.get("p99"), TTFT_MS), TTFT_MS,
                                        ttft.get("max", -1)))
    checks.add("weir bench, side by side", [
        lib.same("calls", compared["calls"], CALLS * REPEATS), lib.same("found", compared["found"], compared["calls"]),
        lib.same("tokens equal", compared["tokens_equal"], compared["calls"]), lib.same("tokens differ", compared["tokens_differ"], 0),
        None if ttft.get("p50", 1e9) <= TTFT_MS else "first tokens are %.3f ms apart at p50" % ttft.get("p50", -1)])


def within(figure, bound):
    return "within" if figure is not None and figure <= bound else "OVER"


def slots(checks, records, slots):
    """The queue that is inferred for a waiting stream ends when an earlier stream frees its slot.

    records are of streams that came together. The engine tells prefill and decode of each; what is left of the time to
    the first token is the queue. Streams leave it one by one, each when one of those before it has ended.
    """
    begun = []
    for r in records:
        received = lib.seconds(r["time"]) * 1000
        phases = r["phases"]
        before = sum(phases.get(p + "_ms") or 0 for p in ("upload", "queue_gateway", "connect", "upstream_rtt", "queue_engine"))
        ended = received + sum(phases.get(p + "_ms") or 0 for p in phases_until_decode(phases))
        begun.append((received + before, ended, phases.get("queue_engine_ms") or 0, r))
    begun.sort(key=lambda b: b[0])
    ends = sorted(b[1] for b in begun)
    problems, apart = [], []
    for n, (start, _, queued, r) in enumerate(begun[slots:]):
        apart.append(start - ends[n])
        if r["phase_sources"].get("queue_engine") != "inferred":
            problems.append("queue of stream %d is %s" % (n + slots + 1, r["phase_sources"].get("queue_engine")))
    furthest = max((abs(a) for a in apart), default=None)
    print("inferred queues end after an earlier stream by: %s ms (%s %.0f ms)"
          % (", ".join("%.1f" % a for a in apart), within(furthest, SLOT_MS), SLOT_MS))
    if apart and sorted(abs(a) for a in apart)[len(apart) // 2] > SLOT_MS:
        problems.append("queues end %s ms from the end of an earlier stream" % ", ".join("%.1f" % a for a in apart))
    if len(apart) != len(records) - slots or not apart:
        problems.append("%d streams waited" % len(apart))
    checks.add("queues end when slots free", problems)


def phases_until_decode(phases):
    return [p[:-3] for p in phases if p not in ("tail_ms", "delivery_ms")]
