"""Engines' spans that come late, twice, in any order, of nobody's calls and by the hundred thousand, and what is no span at all."""
import concurrent.futures
import gzip
import json
import os
import random
import time
import uuid

import calls
import lib
import rig

FOREIGN, BATCH, SENDERS = 100_000, 500, 4
SHUFFLED = 30
GROWTH_MIB = 256  # bodies (8 of 16 MiB at most) and what waits for the collector (64 MiB at most) are all that may grow


def check(checks, binary, directory, engine, jaeger):
    receiver, forward = lib.free_port(), "http://%s:%d" % (lib.HOST, jaeger.http)
    engine.receiver, engine.failures = receiver, []
    with rig.Gateway(binary, {"site": (engine.port, "weir")}, rig.directory_of(directory, "hostile"),
                     rig.options(forward, "http/protobuf", forward, receiver)) as gateway:
        suite = Suite(checks, gateway, engine)
        suite.twice()
        suite.shuffled()
        suite.nested()
        suite.untrue()
        suite.late()
        suite.nonsense(receiver)
        suite.foreign(receiver)
        checks.add("hostile, exports", engine.failures[:3])


class Suite:
    def __init__(self, checks, gateway, engine):
        self.checks, self.gateway, self.engine = checks, gateway, engine

    def call(self, run):
        """A call whose span the check sends by itself."""
        answer = rig.call(self.gateway.ports["site"], run)
        self.checks.add(run + ", bytes", rig.same_bytes(self.engine, run, answer))
        return self.engine.seen[run]

    def join(self):
        return json.loads(self.gateway.get("/weir/traces"))["receiver"]["join"]

    def counted(self, name, before, **grown):
        """Checks by how much the joiner's counters have grown, once they have."""
        more = lambda: {k: self.join()[k] - before[k] for k in grown}
        got = rig.eventually(more, lambda now: now == grown, 10)
        self.checks.add(name + ", counters", [lib.same(k, got[k], n) for k, n in grown.items()])

    def learnt(self, name, run, figures):
        record = rig.eventually(lambda: self.gateway.record(run)[0], calls.knows, 8)
        self.checks.add(name, calls.exact(record, figures))

    def twice(self):
        before, seen = self.join(), self.call("twice")
        span = self.engine.span(seen)
        for _ in range(3):
            self.engine.tell(span)
        self.learnt("twice", "twice", seen.figures)
        self.counted("twice", before, joined=1, duplicate=2, further=0)

    def shuffled(self):
        """Spans of many calls at once, in any order, some of them twice, each beside those of strangers."""
        before, chance = self.join(), random.Random(5)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            runs = ["shuffled-%d" % n for n in range(SHUFFLED)]
            answers = list(pool.map(lambda run: rig.call(self.gateway.ports["site"], run, tokens=2), runs))
            for run, answer in zip(runs, answers):
                self.checks.add(run + ", bytes", rig.same_bytes(self.engine, run, answer))
            # The window counts from a call's end, and the first ended a while ago.
            runs = runs[-SHUFFLED // 2:]
            spans = [self.engine.span(self.engine.seen[run]) for run in runs]
            spans += spans[::3] + [stranger() for _ in runs]
            chance.shuffle(spans)
            list(pool.map(lambda n: self.engine.tell(*spans[n::5]), range(5)))
        for run in runs:
            self.learnt(run, run, self.engine.seen[run].figures)
        self.counted("shuffled", before, joined=len(runs), duplicate=-(-len(runs) // 3), foreign=len(runs))

    def nested(self):
        """The request's span lies below another of the engine's, which comes after it."""
        before, seen = self.join(), self.call("nested")
        outer = {"traceId": seen.trace(), "spanId": uuid.uuid4().hex[:16], "parentSpanId": seen.parent(), "name": "POST /v1/chat/completions",
                 "kind": rig.SERVER, "startTimeUnixNano": str(seen.begun), "endTimeUnixNano": str(seen.ended)}
        self.engine.tell(self.engine.span(seen, parentSpanId=outer["spanId"]))
        self.engine.tell(outer)
        self.learnt("nested", "nested", seen.figures)
        self.counted("nested", before, joined=1, further=0, ambiguous=0)

    def untrue(self):
        """Figures that cannot be are taken as unknown, or cut to the time that there was: phases add up whatever comes."""
        for number, instead in enumerate((
                {"queue": -1.0, "prefill": -5.0, "decode": -1.0}, {"queue": "NaN", "prefill": "Infinity", "decode": "-Infinity"},
                {"queue": 1e300, "prefill": 1e18, "decode": 1e9}, {"queue": "much", "prefill": "", "decode": None},
                {"queue": 0.0, "prefill": 3600.0, "decode": 0.0}, {"queue": 3600.0, "prefill": 0.0, "decode": 0.0})):
            run = "untrue-%d" % number
            seen = self.call(run)
            self.engine.tell(self.engine.span(seen, **instead))
            time.sleep(0.3)
            record, missing = self.gateway.record(run)
            self.checks.add("%s, record" % run, missing or lib.phase_problems(record) + [
                lib.same("outcome", record["outcome"], "completed"),
                "degraded says nothing" if 3600.0 in instead.values() and "phase_clamped" not in record.get("degraded", []) else None,
                lib.same("source of prefill", record["phase_sources"].get("prefill"), "unattributed") if number < 4 else None])

    def late(self):
        before, seen = self.join(), self.call("late")
        rig.eventually(lambda: self.join()["open"], lambda n: n == 0, rig.WINDOW_S + 5)
        self.engine.tell(self.engine.span(seen))
        self.counted("late", before, joined=0, late=1, unjoined=1)
        missed = self.join().get("latest_late_ms")
        self.checks.add("late, by how much", ["%r ms" % missed] if not missed or not 0 < missed < 10_000 else [])
        record, missing = self.gateway.record("late")
        self.checks.add("late, record", missing or [lib.same("source of prefill", record["phase_sources"].get("prefill"), "unattributed")] +
                        lib.phase_problems(record))
        _, metrics = rig.figures(self.gateway)
        self.checks.add("late, metrics", [lib.same("late", metrics["weir_engine_spans_late_total"], self.join()["late"])])

    def nonsense(self, receiver):
        """What is no export is refused with the right status; a bomb is not unpacked."""
        before = rig.resident_mib(self.gateway)
        good = json.dumps(rig.batch([stranger()], "vllm")).encode()
        cases = {
            "no JSON": (b"{", {}, 400), "another shape": (b"[1,2]", {}, 400), "ids in base64": (json.dumps(
                rig.batch([{**stranger(), "traceId": "W47/95a9IgQtDsTM0Kf5vw=="}], "vllm")).encode(), {}, 400),
            "nested deeply": (b'{"resourceSpans":' + b"[" * 100_000, {}, 400), "too large": (b" " * (17 << 20), {}, 413),
            "a bomb": (gzip.compress(b" " * (200 << 20)), {"Content-Encoding": "gzip"}, 413),
            "no gzip": (good, {"Content-Encoding": "gzip"}, 400), "another encoding": (good, {"Content-Encoding": "br"}, 415),
            "another type": (good, {"Content-Type": "text/plain"}, 415), "no protobuf": (good, {"Content-Type": "application/x-protobuf"}, 400),
            "in order": (good, {}, 200), "in order, packed": (gzip.compress(good), {"Content-Encoding": "gzip"}, 200)}
        counts = lambda: {k: json.loads(self.gateway.get("/weir/traces"))["receiver"].get(k, 0) for k in
                          ("malformed_batches", "refused_batches", "batches", "panics")}
        start, wrong = counts(), []
        for name, (body, headers, want) in cases.items():
            status, said = rig.export(receiver, body, headers)
            # A server may cut off a body that it will not read.
            if status != want and not (want == 413 and status == 0):
                wrong.append("%s: status %d want %d: %s" % (name, status, want, said[:100]))
        self.checks.add("nonsense", wrong)
        now = {k: n - start[k] for k, n in counts().items()}
        self.checks.add("nonsense, counters", [lib.same("taken", now["batches"], 2), lib.same("panics", now["panics"], 0), lib.same(
            "malformed or refused", now["malformed_batches"] + now["refused_batches"], len(cases) - 2)])
        grown = rig.resident_mib(self.gateway) - before
        self.checks.add("nonsense, memory", ["grew by %.0f MiB" % grown] if grown > GROWTH_MIB else [])

    def foreign(self, receiver):
        """A hundred thousand spans of strangers' traces while calls go on."""
        before, resident, begun = self.join(), rig.resident_mib(self.gateway), time.monotonic()

        def send(part):
            return [rig.export(receiver, rig.batch([stranger() for _ in range(BATCH)], "vllm")) for _ in range(FOREIGN // BATCH // SENDERS)]

        with concurrent.futures.ThreadPoolExecutor(SENDERS + 1) as pool:
            sending = [pool.submit(send, n) for n in range(SENDERS)]
            beside, peak = [], resident
            while not all(s.done() for s in sending):
                run = "beside-%d" % len(beside)
                beside.append((run, rig.call(self.gateway.ports["site"], run, tokens=2, X_Test_Span="now")))
                peak = max(peak, rig.resident_mib(self.gateway))
            said = [s for done in sending for s in done.result()]
        took = time.monotonic() - begun
        self.checks.add("foreign spans, answers", ["status %d: %s" % s for s in said if s[0] != 200][:3])
        for run, answer in beside:
            self.checks.add(run + ", bytes", rig.same_bytes(self.engine, run, answer))
            self.learnt(run, run, self.engine.seen[run].figures)
        self.counted("foreign spans", before, foreign=FOREIGN, joined=len(beside), overflow=0, ambiguous=0, open=0)
        state = lambda: json.loads(self.gateway.get("/weir/traces"))["receiver"]
        now = rig.eventually(state, lambda s: s["forward"]["queued_batches"] == 0, 60)
        forward = now["forward"]
        # A batch with a number that is none, which the collector refuses, is all that was lost.
        self.checks.add("foreign spans, passed on", [
            lib.same("passed on or dropped", forward["forwarded_spans"] + forward["dropped_spans"], now["spans"]),
            lib.same("waiting", forward["queued_bytes"], 0), lib.same("refused", forward["dropped_refused"], 1),
            lib.same("dropped", forward["dropped_spans"], 1), lib.same("failed attempts", forward["failed_attempts"], 1)])
        self.checks.add("foreign spans, memory", ["grew by %.0f MiB" % (peak - resident)] if peak - resident > GROWTH_MIB else [])
        print("foreign: %d spans in %.1f s with %d calls beside them, %d passed on, %d dropped, resident %.0f MiB before and %.0f MiB at most"
              % (FOREIGN, took, len(beside), forward["forwarded_spans"], forward["dropped_spans"], resident, peak), flush=True)


def stranger():
    """A span with an engine's figures, of a trace that nobody knows."""
    now = time.time_ns()
    return {"traceId": os.urandom(16).hex(), "spanId": os.urandom(8).hex(), "parentSpanId": os.urandom(8).hex(), "name": "llm_request",
            "kind": rig.SERVER, "startTimeUnixNano": str(now - 10**9), "endTimeUnixNano": str(now),
            "attributes": [{"key": key, "value": {"doubleValue": 0.25}} for key in rig.VLLM.values()]}
