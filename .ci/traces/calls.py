"""Calls whose traces are looked at in Jaeger: the whole shape, engines' spans joined, Caddy's tracing, retries, callers' traces."""
import concurrent.futures
import json
import uuid

import lib
import rig
import shape

CONCURRENT = 5  # on rig.SLOTS slots, so that some have a queue


def sites(engine, dead):
    balanced = "\n\t\t".join(["{", "lb_policy first", "lb_try_duration 5s", "fail_duration 1m"]) + "\n\t}"
    both = "weir\n\treverse_proxy %s:%d %s:%d %s" % (lib.HOST, dead, lib.HOST, engine, balanced)
    return {"site": (engine, "weir\n\tlog"), "retry": (engine, both), "traced": (engine, "tracing {\n\t\tspan gateway\n\t}\n\tweir\n\tlog"),
            "hosted": (engine, "weir {\n\t\tpropagate off\n\t}")}


class Suite:
    """The checks of one gateway. protocol names the one it exports by."""

    def __init__(self, checks, protocol, gateway, engine, jaeger):
        self.checks, self.protocol, self.gateway, self.engine, self.jaeger = checks, protocol, gateway, engine, jaeger

    def run(self):
        self.told()
        self.joined()
        self.not_streamed()
        self.retried()
        self.callers()
        self.traced()
        self.hosted()
        self.logged()
        self.counted()

    def call(self, name, site="site", **more):
        run = "%s-%s" % (self.protocol, name)
        return run, rig.call(self.gateway.ports[site], run, **more)

    def add(self, name, problems):
        return self.checks.add("%s, %s" % (self.protocol, name), problems)

    def trace(self, seen, enough):
        """The trace that the engine was told of, when enough of it is there."""
        return shape.Trace(self.jaeger.wait(seen.trace(), lambda spans: enough(shape.Trace(spans))))

    def settled(self, run, good):
        """The record of a call once it is good; nobody can ask a record whether it will change."""
        return rig.eventually(lambda: self.gateway.record(run)[0], good, rig.WINDOW_S + 5)

    def answered(self, name, run, answer, wanted, attempts=1, caddy=False, engines=0, good=None):
        """Looks at bytes, record and trace of a call that went well; returns (record, trace, seen)."""
        if not self.add(name + ", bytes", rig.same_bytes(self.engine, run, answer)):
            return None
        seen = self.engine.seen[run]
        record = self.settled(run, good or (lambda r: r))
        trace = self.trace(seen, lambda t: t.clients and (t.around if caddy else t.server) and t.children and len(t.engine) >= engines)
        self.add(name + ", trace", shape.problems(trace, record, seen, wanted, attempts, caddy, engines)
                 if record else ["no record"])
        return record, trace, seen

    def told(self):
        """The engine's own figures in the answer: our spans have queue, prefill and decode from the engine."""
        names = ["told-%d" % n for n in range(CONCURRENT)]
        with concurrent.futures.ThreadPoolExecutor(CONCURRENT) as pool:
            answers = list(pool.map(lambda n: self.call(n, tokens=12, X_Test_Figures="keep"), names))
        queued = 0
        for name, (run, answer) in zip(names, answers):
            figures = self.engine.seen[run].figures
            wanted = [n for n in shape.CHILDREN if n != "queue" or figures["queue"] > 1]
            looked = self.answered(name, run, answer, wanted)
            if looked is None:
                continue
            record, trace, _ = looked
            self.add(name + ", figures", exact(record, figures) + [
                lib.same("source of " + n, trace.child(n).attributes.get("weir.phase.source"), "measured" if n == "decode" else "engine")
                for n in wanted if n != "network" and trace.child(n)])
            queued += bool(trace.child("queue"))
        self.add("told, queues", ["no call had a queue"] if not queued else [])

    def joined(self):
        """The figures in the engine's own span, as from a stock vLLM: the record learns them, and the span joins."""
        names = ["joined-%d" % n for n in range(CONCURRENT)]
        with concurrent.futures.ThreadPoolExecutor(CONCURRENT) as pool:
            answers = list(pool.map(lambda n: self.call(n, tokens=12, X_Test_Span="now"), names))
        learnt = 0
        for name, (run, answer) in zip(names, answers):
            looked = self.answered(name, run, answer, ("network", "prefill", "decode"), engines=1, good=knows)
            if looked is None:
                continue
            record, trace, seen = looked
            self.add(name + ", figures", exact(record, seen.figures))
            span = trace.engine[0].attributes if trace.engine else {}
            self.add(name + ", passed on unchanged", [lib.same(n, span.get(rig.VLLM[n]), seen.figures[n] / 1000) for n in rig.VLLM])
            learnt += record["phases"].get("queue_engine_ms", 0) > 1
        self.add("joined, queues", ["no call had a queue"] if not learnt else [])

    def not_streamed(self):
        run, answer = self.call("whole", stream=False, X_Test_Span="now")
        looked = self.answered("not streamed", run, answer, ("network", "prefill"), engines=1, good=knows)
        if looked:
            record, _, seen = looked
            self.add("not streamed, figures", exact(record, seen.figures) + [
                lib.near("decode", record["phases"].get("decode_ms"), seen.figures["decode"], 0.001)])

    def retried(self):
        """An upstream that refuses, then one that answers: an attempt each."""
        run, answer = self.call("retry", site="retry")
        looked = self.answered("two attempts", run, answer, ("network", "prefill", "decode"), attempts=2)
        if looked:
            record, trace, _ = looked
            first, last = (a.attributes for a in trace.attempts[:2])
            self.add("two attempts, resent", [
                lib.same("attempts", record["attempts"], 2), lib.same("first", first.get("http.request.resend_count"), None),
                lib.same("second", last.get("http.request.resend_count"), 1), lib.same("first failed", trace.attempts[0].failed, True),
                lib.same("its error", first.get("error.type"), "connection_lost")])

    def callers(self):
        """A caller's own trace goes on; its baggage does not."""
        trace, span = uuid.uuid4().hex, uuid.uuid4().hex[:16]
        run, answer = self.call("caller", traceparent="00-%s-%s-01" % (trace, span), tracestate="a=b", baggage="user=nobody")
        looked = self.answered("caller's trace", run, answer, ("network", "prefill", "decode"))
        if looked:
            _, found, seen = looked
            self.add("caller's trace, propagation", [
                lib.same("trace", seen.trace(), trace), lib.same("flags", seen.traceparent[-3:], "-01"),
                lib.same("parent of the SERVER span", found.server[0].parent if found.server else None, span),
                lib.same("tracestate", seen.tracestate, "a=b"), lib.same("baggage", seen.baggage, None)])

    def traced(self):
        """Under Caddy's tracing its span is the topmost and ours lie below it; the engine hears of ours."""
        trace, span = uuid.uuid4().hex, uuid.uuid4().hex[:16]
        for name, headers in (("tracing", {}), ("tracing, caller's trace", {"traceparent": "00-%s-%s-01" % (trace, span)})):
            run, answer = self.call("traced-%d" % len(name), site="traced", X_Test_Span="now", **headers)
            looked = self.answered(name, run, answer, ("network", "prefill", "decode"), caddy=True, engines=1, good=knows)
            if looked:
                _, found, seen = looked
                parent = found.around[0].parent if found.around else None
                self.add(name + ", top", [lib.same("name", found.around[0].name if found.around else None, "gateway"),
                                          lib.same("parent", parent, span if headers else ""),
                                          lib.same("trace", seen.trace(), trace) if headers else None])

    def hosted(self):
        """With propagate off nothing of the trace leaves the house, and the spans are there all the same."""
        trace, span = uuid.uuid4().hex, uuid.uuid4().hex[:16]
        run, answer = self.call("hosted", site="hosted", traceparent="00-%s-%s-01" % (trace, span), tracestate="a=b", baggage="c=d")
        seen = self.engine.seen.get(run)
        self.add("propagate off", rig.same_bytes(self.engine, run, answer) + [
            lib.same(n, getattr(seen, n, None), None) for n in ("traceparent", "tracestate", "baggage")])
        found = shape.Trace(self.jaeger.wait(trace, lambda spans: shape.Trace(spans).children))
        self.add("propagate off, trace", [lib.same("SERVER spans", len(found.server), 1), lib.same("CLIENT spans", len(found.clients), 1)])
        text = self.jaeger.text(trace) or ""
        self.add("no text of prompts", ["a prompt is in a span"] if rig.SECRET in text else [] if text else ["no trace"])

    def logged(self):
        """Each line of the access log that is of a call has the call's trace id."""
        by_id = {r["id"]: r["trace_id"] for r in self.gateway.calls(limit=1000)}
        with open(self.gateway.path, errors="replace") as log:
            lines = [json.loads(line) for line in log if line.startswith("{") and '"logger":"http.log.access' in line]
        ours = [line["weir"] for line in lines if "weir" in line]
        wrong = [w.get("trace_id") for w in ours if w.get("trace_id") != by_id.get(w["id"])]
        self.add("access log", ["%d of %d lines have another trace id, as %r" % (len(wrong), len(ours), wrong[0])] if wrong else
                 [] if len(ours) > 2 * CONCURRENT else ["only %d lines" % len(ours)])

    def counted(self):
        """What the gateway says of all that: everything went out, every awaited span came."""
        calls = len(self.engine.seen) and sum(k is not None and k.startswith(self.protocol) for k in self.engine.seen)
        joins = CONCURRENT + 1 + 2
        sent = rig.eventually(lambda: rig.figures(self.gateway), lambda f: f[0]["export"]["spans_waiting"] == 0 and
                              f[0]["receiver"]["join"]["open"] == 0 and f[0]["receiver"]["forward"]["queued_batches"] == 0, 20)
        state, metrics = sent
        export, join, forward = state["export"], state["receiver"]["join"], state["receiver"]["forward"]
        self.add("state", [lib.same(n, export[n], 0) for n in ("spans_failed", "spans_dropped", "spans_waiting")] + [
            lib.same("protocol", export["protocol"], "grpc" if self.protocol == "grpc" else "http/protobuf"),
            "only %d spans of %d calls" % (export["spans_exported"], calls) if export["spans_exported"] < 5 * calls else None,
            export.get("error"), lib.same("joined", join["joined"], joins), lib.same("open", join["open"], 0),
            lib.same("tracked", join["tracked"], calls - 1),  # not of the one that was not propagated
            lib.same("unjoined", join["unjoined"], calls - 1 - joins), lib.same("late", join["late"], 0),
            lib.same("ambiguous", join["ambiguous"], 0), lib.same("dropped", forward["dropped_spans"], 0), forward.get("error")])
        self.add("metrics", [lib.same(m, metrics.get(m), want) for m, want in {
            "weir_spans_exported_total": export["spans_exported"], "weir_spans_failed_total": 0, "weir_spans_dropped_total": 0,
            "weir_engine_spans_joined_total": joins, "weir_engine_spans_unjoined_total": calls - 1 - joins,
            "weir_engine_spans_late_total": 0, "weir_engine_spans_forwarded_total": forward["forwarded_spans"],
            "weir_engine_spans_forward_dropped_total": 0}.items()])
        self.add("engine", self.engine.failures)
        print("%s: %d calls, %d spans exported, %d passed on, %d joined"
              % (self.protocol, calls, export["spans_exported"], forward["forwarded_spans"], join["joined"]), flush=True)


def knows(record):
    return record.get("phase_sources", {}).get("prefill") == "engine"


def exact(record, figures):
    """Queue and prefill of a record are the engine's, and say so.

    On a busy machine the gateway may note that it has sent a request when the engine has long begun with it. Then there
    is less time than the engine says, and the record has to say that something was cut.
    """
    phases, sources = record.get("phases", {}), record.get("phase_sources", {})
    degraded = record.get("degraded", [])
    slack = lib.ORDER_SLACK_MS if degraded == ["phase_clamped"] else 0.001
    return [lib.near("queue_engine_ms", phases.get("queue_engine_ms"), figures["queue"], slack),
            lib.near("prefill_ms", phases.get("prefill_ms"), figures["prefill"], slack),
            lib.same("source of queue_engine", sources.get("queue_engine"), "engine"),
            lib.same("source of prefill", sources.get("prefill"), "engine"),
            lib.same("source of frontend", sources.get("frontend"), "inferred"),
            lib.same("degraded", [d for d in degraded if d != "phase_clamped"], [])] + lib.phase_problems(record)
