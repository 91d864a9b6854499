#!/usr/bin/env python3
"""Measures a real llama.cpp server through the gateway and holds every figure against the server's own.

usage: check.py BINARY LLAMA_SERVER MODEL [--plain]

Shapes: every streamed API that the server speaks, directly and through the gateway: same bytes but for ids, times and
speeds; the record equals the stream's own usage and timings. Queue: six streams on two slots. Stale connections: 400
streamed calls one after the other against a server that closes a kept connection after every second one, through the
gateway and, to compare, through bare Caddy beside it. Reconciling: 500 calls of several keys against the server's own
counters; see reconcile.py. Loads: `weir bench` through the gateway, side by side with its records; see loads.py. --plain
leaves the records, the reconciling and the loads out.
"""
import concurrent.futures
import contextlib
import http.client
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib  # noqa: E402
import loads  # noqa: E402
import reconcile  # noqa: E402
from told import Told  # noqa: E402

SEQUENTIAL = 400
SLOTS, CONCURRENT = 2, 6
NEAR_MS = 20.0  # gateway's and client's TTFT are reported when further apart

TURNS = [{"role": "user", "content": "List the rivers of Europe, one a line."}]
STEADY = {"temperature": 0, "seed": 7, "cache_prompt": False}
SHAPES = {
    "chat stream": ("/v1/chat/completions", {"messages": TURNS, "max_tokens": 32, "stream": True,
                                             "stream_options": {"include_usage": True}}),
    "chat stream, two choices": ("/v1/chat/completions", {"messages": TURNS, "max_tokens": 16, "stream": True, "n": 2,
                                                          "stream_options": {"include_usage": True}}),
    "chat stream, progress": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "A long river. " * 120}],
                                                       "max_tokens": 16, "stream": True, "return_progress": True}),
    "chat stream, no usage asked": ("/v1/chat/completions", {"messages": TURNS, "max_tokens": 32, "stream": True}),
    "chat": ("/v1/chat/completions", {"messages": TURNS, "max_tokens": 32}),
    "completions stream": ("/v1/completions", {"prompt": "Rivers run", "max_tokens": 32, "stream": True,
                                               "stream_options": {"include_usage": True}}),
    "completions": ("/v1/completions", {"prompt": "Rivers run", "max_tokens": 32}),
    "native stream": ("/completion", {"prompt": "Rivers run", "n_predict": 32, "stream": True}),
    "messages stream": ("/v1/messages", {"messages": TURNS, "max_tokens": 32, "stream": True}),
    "responses stream": ("/v1/responses", {"input": "List the rivers of Europe.", "max_output_tokens": 32,
                                           "stream": True}),
    "embeddings": ("/v1/embeddings", {"input": "a river"}),
    "embeddings, refused": ("/v1/embeddings", {"input": "a river"}),
}

# What differs between two equal calls: ids, the clock, slots and speeds. Everything else must be the same bytes.
VARYING = [
    (re.compile(rb'\b(chatcmpl-|resp_|msg_|rs_|fc_|call_)\w{8,}'), rb'\1ID'),
    (re.compile(rb'"(created|created_at|completed_at|id_slot|time_ms)":[\d.]+'), rb'"\1":0'),
    (re.compile(rb'"((?:prompt|predicted)_(?:ms|per_token_ms|per_second))":[\d.e+-]+'), rb'"\1":0'),
    (re.compile(rb'(?m)^:[^\n]*\n\n?'), b""),  # pings come by the clock
]


def steady(body):
    for pattern, instead in VARYING:
        body = pattern.sub(instead, body)
    return body


def record_problems(record, answer, told, streamed, several=False):
    """What of a record differs from the server's own word. several: more than one choice has its own timings."""
    engine = record.get("engine") or {}
    problems = [
        lib.same("outcome", record.get("outcome"), "completed"),
        lib.same("terminated", record.get("terminated"), True),
        lib.same("status", record.get("status"), 200),
        lib.same("stream", record.get("stream"), streamed),
        lib.same("bytes_out", record.get("bytes_out"), len(answer.body)),
        lib.same("parse_errors", record.get("parse_errors"), None),
    ]
    if told.input is not None:
        problems.append(lib.same("input_tokens", record.get("input_tokens"), told.input))
    if told.output is not None:
        problems.append(lib.same("output_tokens", record.get("output_tokens"), told.output))
    if told.finish is not None and not several:
        problems.append(lib.same("finish_reason", record.get("finish_reason"), told.finish))
    if told.prefill_ms is not None and not several:
        problems += [lib.near("engine.prefill_ms", engine.get("prefill_ms"), told.prefill_ms, 0.001),
                     lib.near("engine.decode_ms", engine.get("decode_ms"), told.decode_ms, 0.001)]
    if streamed:
        problems.append(lib.same("content_events", record.get("content_events"), told.content_events))
        problems += lib.order_problems(record, told.ttft_ms)
    else:
        problems.append(lib.same("ttft_ms", record.get("ttft_ms"), None))
    return problems + lib.phase_problems(record)


HEADER = "%-28s %9s %9s %9s %9s %9s %9s %6s %6s" % ("call", "ttft_ms", "client", "tpot_ms", "queue_ms", "prefill", "e2e_ms", "in", "out")


def row(name, record, told):
    phases = record.get("phases") or {}
    figures = [record.get("ttft_ms"), told.ttft_ms if record.get("stream") else None, record.get("tpot_ms"),
               phases.get("queue_engine_ms"), (record.get("engine") or {}).get("prefill_ms"), record.get("e2e_ms")]
    print("%-28s" % name, *("%9s" % ("-" if f is None else "%.2f" % f) for f in figures),
          *("%6s" % record.get(k, "-") for k in ("input_tokens", "output_tokens")), flush=True)


def apart(record, told):
    """How much later than the gateway the client saw the first token, in ms; None when either did not."""
    ttft = record.get("ttft_ms")
    return None if ttft is None or told.ttft_ms is None else told.ttft_ms - ttft


def shapes(checks, gateway, plain, ports):
    """Every API, directly and through the gateway, one call at a time."""
    delays = []
    if not plain:
        print(HEADER)
    for number, (name, (path, request)) in enumerate(SHAPES.items()):
        site = "embedder" if name == "embeddings" else "engine"
        request = {"model": "gemma", **STEADY, **request}
        direct = lib.post(ports[site], path, request)
        run = "engine-shape-%d" % number
        answer = lib.post(gateway.ports[site], path, request, {"X-Weir-Run": run, "Accept-Encoding": "gzip, br"})
        problems = [direct.error, answer.error, lib.same("status", answer.status, direct.status)]
        refused = name.endswith("refused")
        problems.append(lib.same("direct status", direct.status, 501 if refused else 200))
        if steady(direct.body) != steady(answer.body):
            problems.append("%d bytes through the gateway, %d directly, differ" % (len(answer.body), len(direct.body)))
        whole = checks.add(name + ", bytes", problems)
        if plain:
            continue
        record, missing = gateway.record(run)
        if refused or not whole:
            checks.add(name + ", record", missing or [lib.same("outcome", record.get("outcome"), "upstream_error"),
                                                      lib.same("status", record.get("status"), direct.status)])
            continue
        told = Told(answer)
        problems = record_problems(record, answer, told, bool(request.get("stream")), several="n" in request)
        checks.add(name + ", record", missing or problems)
        row(name, record, told)
        delays.append(apart(record, told))
    return delays


def queue(checks, gateway, plain):
    """More streams than slots: the later ones wait in the engine, and the record says so."""
    request = {"model": "gemma", **STEADY, "messages": TURNS, "max_tokens": 48, "stream": True,
               "stream_options": {"include_usage": True}}

    def call(n):
        turns = [{"role": "user", "content": "%d. %s" % (n, TURNS[0]["content"])}]
        return lib.post(gateway.ports["engine"], "/v1/chat/completions", {**request, "messages": turns},
                        {"X-Weir-Run": "engine-queue-%d" % n})

    with concurrent.futures.ThreadPoolExecutor(CONCURRENT) as pool:
        answers = list(pool.map(call, range(CONCURRENT)))
    delays, waits, decodes, records = [], [], [], []
    for n, answer in enumerate(answers):
        name = "stream %d of %d on %d slots" % (n + 1, CONCURRENT, SLOTS)
        ended = answer.body.rstrip().endswith(b"data: [DONE]")
        if not checks.add(name, [answer.error, lib.same("status", answer.status, 200), None if ended else "no end"]) or plain:
            continue
        record, missing = gateway.record("engine-queue-%d" % n)
        told = Told(answer)
        checks.add(name + ", record", missing or record_problems(record, answer, told, True))
        row("queued stream %d" % (n + 1), record, told)
        delays.append(apart(record, told))
        records.append(record)
        waits.append((record.get("phases") or {}).get("queue_engine_ms") or 0)
        decodes.append((record.get("engine") or {}).get("decode_ms") or 0)
    if not plain:
        # The last two had to wait for two whole streams before them.
        waits.sort()
        checks.add("queue in the engine", ["longest wait %.0f ms is shorter than a decode of %.0f ms" % (waits[-1], min(decodes))]
                   if waits and waits[-1] < min(decodes) else [] if waits else ["no records"])
        loads.slots(checks, records, SLOTS)
    return delays


def sequential(port, run):
    """Streamed calls one after the other on a kept connection; gives the failures' reasons."""
    request = {"model": "gemma", **STEADY, "prompt": "Go", "max_tokens": 2, "stream": True}
    connection = http.client.HTTPConnection(lib.HOST, port, timeout=60)
    failures = []
    for n in range(SEQUENTIAL):
        answer = lib.post(port, "/v1/completions", request, {"X-Weir-Run": run}, connection)
        if answer.error or answer.status != 200 or not answer.body.rstrip().endswith(b"data: [DONE]"):
            failures.append(answer.error or "status %d, %d bytes" % (answer.status, len(answer.body)))
    connection.close()
    return failures


def stale(checks, gateway, plain):
    failures = sequential(gateway.ports["engine"], "engine-stale")
    bare = sequential(gateway.ports["bare"], "engine-bare")
    print("stale connections, of %d streamed calls one after the other: %d failed through the gateway, %d through bare Caddy"
          % (SEQUENTIAL, len(failures), len(bare)))
    if plain:
        return
    checks.add("stale connections", ["%d of %d failed, first: %s" % (len(failures), SEQUENTIAL, failures[0])]
               if failures else [])
    records = gateway.calls(run="engine-stale", limit=1000)
    replayed = sum(1 for r in records if r.get("replayed"))
    print("stale connections: %d of %d calls were sent again over a fresh connection" % (replayed, len(records)))
    checks.add("stale connections, records", [
        lib.same("records", len(records), SEQUENTIAL),
        lib.same("completed", sum(r.get("outcome") == "completed" for r in records), SEQUENTIAL - len(failures)),
        lib.same("replays of one attempt", sum(bool(r.get("replayed")) and r.get("attempts", 0) < 2 for r in records), 0),
    ])


def llama(binary, model, directory, name, *flags, before=()):
    port = lib.free_port()
    process = lib.Process(name, [*before, binary, "-m", model, "--host", lib.HOST, "--port", str(port), "-c", "4096", *flags],
                          directory, {"HOME": directory, "OMP_WAIT_POLICY": "passive"})  # spin not on cores that others need
    process.port = port
    return process


def healthy(port):
    c = http.client.HTTPConnection(lib.HOST, port, timeout=2)
    try:
        c.request("GET", "/health")
        return c.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        c.close()


def main():
    lib.exit_on_signals()
    arguments = [a for a in sys.argv[1:] if a != "--plain"]
    if len(arguments) != 3:
        sys.exit(__doc__)
    binary, server, model = (os.path.abspath(a) for a in arguments)
    plain = "--plain" in sys.argv
    directive = "" if plain else "weir"
    checks = lib.Checks()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(lib.temporary_directory())
        engine = stack.enter_context(llama(server, model, directory, "llama", "-np", str(SLOTS), "--metrics"))
        embedder = stack.enter_context(llama(server, model, directory, "embedder", "--embeddings", "--pooling", "mean"))
        # One thread, and the lower priority: on two cores the engine's own work would else keep both sides of the
        # comparison from their clocks.
        alone = stack.enter_context(llama(server, model, directory, "alone", "-np", "2", "-t", "1", "-tb", "1", before=("nice", "-n", "15")))
        for process in (engine, embedder, alone):
            process.wait_for(lambda: healthy(process.port), 120)
        gateway = stack.enter_context(lib.Gateway(binary, {
            "engine": (engine.port, directive), "embedder": (embedder.port, directive), "alone": (alone.port, directive),
            "bare": (engine.port, "")}, directory))
        delays = shapes(checks, gateway, plain, {"engine": engine.port, "embedder": embedder.port})
        delays += queue(checks, gateway, plain)
        stale(checks, gateway, plain)
        if not plain:
            loads.bench(checks, binary, gateway, directory)
            reconcile.check(checks, binary, engine.port)
    delays = [d for d in delays if d is not None]
    if delays:
        print("client's first token after the gateway's: %.2f to %.2f ms, %d of %d within %.0f ms"
              % (min(delays), max(delays), sum(d <= NEAR_MS for d in delays), len(delays), NEAR_MS))
    return checks.close()


if __name__ == "__main__":
    sys.exit(main())
