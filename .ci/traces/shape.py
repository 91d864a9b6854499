"""The shape of a call's trace, as the README promises it, and what its figures must add up to."""
import json

import lib
import rig

NEAR_MS = 0.001  # instants are whole nanoseconds, and attributes float64 seconds
CHILDREN = ["network", "queue", "prefill", "decode"]


class Trace:
    """The spans of one call, told apart."""

    def __init__(self, spans):
        self.spans = spans
        self.server = [s for s in spans if s.kind == rig.SERVER and s.service == "weir"]
        self.around = [s for s in spans if s.kind == rig.SERVER and s.service not in ("weir", "vllm")]  # Caddy's own
        self.clients = [s for s in spans if s.kind == rig.CLIENT and "gen_ai.operation.name" in s.attributes]
        self.engine = [s for s in spans if s.name == "llm_request"]
        client = self.clients[0].id if self.clients else None
        self.attempts = [s for s in spans if s.kind == rig.CLIENT and s.parent == client and s not in self.clients]
        last = self.attempts[-1].id if self.attempts else None
        self.children = [s for s in spans if s.kind == rig.INTERNAL and s.parent == last]

    def client(self):
        return self.clients[0]

    def child(self, name):
        return next((s for s in self.children if s.name == name), None)


def phases_of(span):
    """The phases among a span's attributes, in ms."""
    prefix = "weir.phase."
    return {k[len(prefix):]: v * 1000 for k, v in span.attributes.items() if k.startswith(prefix)}


def within(inner, outer):
    """Spans nest to the nanosecond: they come from one clock."""
    if inner.start < outer.start or inner.end > outer.end:
        return "%s %s is not within %s" % (inner.name, [inner.start - outer.start, inner.end - outer.end], outer.name)
    return None


def problems(trace, record, seen, wanted=("network", "prefill", "decode"), attempts=1, caddy=False, engines=0):
    """What is wrong with a trace of a call that was answered. wanted are the children that must be there."""
    counts = [lib.same("CLIENT spans", len(trace.clients), 1), lib.same("attempts", len(trace.attempts), attempts),
              lib.same("SERVER spans of ours", len(trace.server), 0 if caddy else 1),
              lib.same("SERVER spans of Caddy's", len(trace.around), 1 if caddy else 0),
              lib.same("engine spans", len(trace.engine), engines)]
    if any(counts):
        return counts + ["spans: %s" % [(s.service, s.kind, s.name) for s in trace.spans]]
    client, top = trace.client(), (trace.around if caddy else trace.server)[0]
    said = [lib.same("name", client.name, "chat " + rig.MODEL), lib.same("its parent", client.parent, top.id),
            lib.same("trace of the record", record.get("trace_id"), client.trace),
            lib.same("the upstream's traceparent", seen.traceparent[:52], "00-%s-%s" % (client.trace, client.id)),
            lib.same("sources without phases", set(record["phase_sources"]), {n[:-len("_ms")] for n in record["phases"]})]
    said += [within(client, top)] + [within(a, client) for a in trace.attempts]
    said += [within(c, trace.attempts[-1]) for c in trace.children] + [within(e, client) for e in trace.engine]
    said += [lib.same("parent of the engine's span", e.parent, client.id) for e in trace.engine]
    # Children, and attempts, lie one after the other.
    for row in (trace.attempts, trace.children):
        said += ["%s begins %d ns before %s ends" % (b.name, a.end - b.start, a.name) for a, b in zip(row, row[1:]) if b.start < a.end]
    names = [c.name for c in trace.children]
    said += [lib.same("children", [n for n in names if n in wanted or n != "queue"], [n for n in CHILDREN if n in wanted]),
             lib.same("order", names, sorted(names, key=CHILDREN.index))]
    if any(said):
        return said
    # What the engine's span says later is not on ours, which had left.
    names = phases_of(client).keys() | (set() if not engines else {"queue_engine", "frontend", "prefill", "decode"})
    unsaid = {n[:-len("_ms")] for n in record["phases"]} - names
    if unsaid:
        return ["no weir.phase.%s" % n for n in sorted(unsaid)]
    return said + sums(trace, record, top, caddy) + described(trace, record, top, caddy)


def sums(trace, record, top, caddy):
    """Phases partition the call: on the span, in the record, and as children."""
    client, phases = trace.client(), phases_of(trace.client())
    whole = sum(record["phases"].values())
    said = [lib.near("sum of weir.phase.*", sum(phases.values()), whole, NEAR_MS),
            lib.near("sum of phases and e2e_ms", whole, record.get("e2e_ms", whole), NEAR_MS)]
    if not caddy:
        said += [lib.near("sum of weir.phase.* and the SERVER span", sum(phases.values()), top.ms(), NEAR_MS),
                 lib.near("SERVER span's begin and the record's time", top.start / 1e9, lib.seconds(record["time"]), 1e-6)]
    before = phases.get("upload", 0) + phases.get("queue_gateway", 0)
    said.append(lib.near("CLIENT span without upload and queue_gateway", client.ms(), whole - before, NEAR_MS))
    prefill, decode, queue = (trace.child(n) for n in ("prefill", "decode", "queue"))
    figure = lambda s, name: s.attributes.get(rig.VLLM[name], -1) * 1000
    said.append(lib.near("its prefill", figure(prefill, "prefill"), phases.get("prefill", 0) + phases.get("engine", 0), NEAR_MS))
    if decode:
        said.append(lib.near("its decode", figure(decode, "decode"), phases.get("decode"), NEAR_MS))
    if queue:
        said += [lib.near("its queue", figure(queue, "queue"), phases.get("queue_engine"), NEAR_MS),
                 lib.near("queue's length", queue.ms(), phases.get("queue_engine"), NEAR_MS)]
    if record["stream"]:
        begun = record["ttft_ms"] + lib.seconds(record["time"]) * 1000
        said += [lib.near("decode's begin", decode.start / 1e6 - begun, 0, NEAR_MS),  # float64: 0.2 µs
                 lib.same("decode's begin and prefill's end", decode.start, prefill.end),
                 lib.same("decode's end and the attempt's", decode.end, trace.attempts[-1].end)]
    return said


def described(trace, record, top, caddy):
    """What the spans say of the call beside its times."""
    client, attempt = trace.client(), trace.attempts[-1]
    host, _, port = record["upstream"].rpartition(":")
    want = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": rig.MODEL,
            "gen_ai.response.model": record.get("response_model"), "gen_ai.response.id": record.get("response_id"),
            "gen_ai.usage.input_tokens": record.get("input_tokens"), "gen_ai.usage.output_tokens": record.get("output_tokens"),
            "server.address": host, "server.port": int(port), "weir.call.id": record["id"], "weir.outcome": "completed", "error.type": None}
    said = [lib.same(name, client.attributes.get(name), value) for name, value in want.items()]
    # Jaeger stores a list as its JSON.
    reasons = json.loads(client.attributes.get("gen_ai.response.finish_reasons", "[]"))
    said.append(lib.same("finish reasons", reasons, [record.get("finish_reason")]))
    if record["stream"]:
        for name, figure in (("weir.ttft", "ttft_ms"), ("gen_ai.response.time_to_first_chunk", "ttft_upstream_ms"), ("weir.tpot", "tpot_ms")):
            said.append(lib.near(name, client.attributes.get(name, -1) * 1000, record.get(figure), NEAR_MS))
    said += [lib.same("attempt's name", attempt.name, "POST"), lib.same("attempt's port", attempt.attributes.get("server.port"), int(port)),
             lib.same("attempt's status", attempt.attributes.get("http.response.status_code"), 200)]
    if not caddy:
        said += [lib.same("SERVER span's name", top.name, "POST"), lib.same("its path", top.attributes.get("url.path"), "/v1/chat/completions"),
                 lib.same("its status", top.attributes.get("http.response.status_code"), 200)]
    said += ["%s says that it failed" % s.name for s in trace.spans if s.failed and s not in trace.attempts[:-1]]
    return said + ["%s has no source" % c.name for c in trace.children if "weir.phase.source" not in c.attributes]
