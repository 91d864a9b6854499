"""Which calls leave spans: with `sample 0` those that failed, were slow, or were chosen by their caller."""
import uuid

import lib
import rig
import shape

KEEP_TTFT = "400ms"

# Calls that fail, by the simulator's fault, and the outcome of each.
FAILED = {"status:503": "upstream_error", "truncate:2": "truncated", "abort:2": "upstream_error", "error:2": "stream_error",
          "html": "unrecognised"}


def check(checks, binary, directory, engine, jaeger):
    """A gateway that is told its collector by the environment alone."""
    options = rig.options("", "http/protobuf", more=("sample 0", "keep_ttft " + KEEP_TTFT))
    dead = lib.free_port()
    with rig.Gateway(binary, {"site": (engine.port, "weir"), "dead": (dead, "weir")}, rig.directory_of(directory, "sampling"), options,
                     {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://%s:%d" % (lib.HOST, jaeger.http)}) as gateway:
        unsampled = [ordinary(checks, gateway, engine, "ordinary-%d" % n) for n in range(3)]
        unsampled.append(ordinary(checks, gateway, engine, "caller-says-no", "00"))
        failed(checks, gateway, engine, jaeger)
        dead_upstream(checks, gateway, jaeger)
        slow(checks, gateway, engine, jaeger)
        chosen(checks, gateway, engine, jaeger)
        # What is kept came after them, so these would be there.
        checks.add("sample 0, ordinary calls", ["%s is in Jaeger" % t for t in unsampled if t and jaeger.spans(t)])
        state, _ = rig.figures(gateway)
        checks.add("sample 0, state", [lib.same(n, state["export"][n], 0) for n in ("spans_failed", "spans_dropped")] + [
            lib.same("endpoint", state["export"].get("endpoint"), None),  # it is the environment's
            lib.same("receiver", state.get("receiver"), None)])


def traceparent(flags):
    trace = uuid.uuid4().hex
    return trace, "00-%s-%s-%s" % (trace, uuid.uuid4().hex[:16], flags)


def ordinary(checks, gateway, engine, run, flags=None):
    """A call that leaves no spans; the engine is told that it is not sampled, and records nothing either."""
    headers = {} if flags is None else {"traceparent": traceparent(flags)[1]}
    answer = rig.call(gateway.ports["site"], run, **headers)
    problems, seen = rig.same_bytes(engine, run, answer), engine.seen.get(run)
    if not checks.add("sample 0, " + run, problems + ([lib.same("flags", seen.traceparent[-3:], "-00")] if seen else [])):
        return None
    record, _ = gateway.record(run)
    checks.add("sample 0, %s, record" % run, [lib.same("trace_id", record.get("trace_id"), seen.trace())])
    return seen.trace()


def kept(checks, name, gateway, jaeger, run, attempts=1):
    """Record and trace of a call that was kept."""
    record, missing = gateway.record(run)
    found = shape.Trace(jaeger.wait(record.get("trace_id", "0"), lambda s: shape.Trace(s).clients)) if record else shape.Trace([])
    whole = checks.add("%s, kept" % name, missing + [
        lib.same("SERVER spans", len(found.server), 1), lib.same("CLIENT spans", len(found.clients), 1),
        lib.same("attempts", len(found.attempts), attempts)])
    return (record, found) if whole else (record, None)


def broken(found, record, outcome):
    """What is wrong with the spans of a call that failed."""
    client, server = found.client(), found.server[0]
    problems = [lib.same("outcome", record["outcome"], outcome), lib.same("weir.outcome", client.attributes.get("weir.outcome"), outcome),
                lib.near("sum of weir.phase.*", sum(shape.phases_of(client).values()), server.ms(), shape.NEAR_MS)]
    for span in (server, client):
        problems += [lib.same("%s failed" % span.name, span.failed, True), shape.within(client, server)]
        problems += [lib.same("error.type", span.attributes.get("error.type"), record["error"])]
    return problems + [shape.within(a, client) for a in found.attempts] + [shape.within(c, found.attempts[-1]) for c in found.children]


def failed(checks, gateway, engine, jaeger):
    for fault, outcome in FAILED.items():
        run = "fault-" + fault.replace(":", "-")
        rig.call(gateway.ports["site"], run, X_Sim_Fault=fault)
        record, found = kept(checks, fault, gateway, jaeger, run)
        if found:
            checks.add("%s, spans" % fault, broken(found, record, outcome) + [
                lib.same("sampled", engine.seen[run].traceparent[-3:], "-00")])


def dead_upstream(checks, gateway, jaeger):
    """Nothing was sent, so that there is no phase of the engine's."""
    run = "no-upstream"
    answer = rig.call(gateway.ports["dead"], run)
    checks.add("dead upstream", [answer.error, lib.same("status", answer.status, 502)])
    record, found = kept(checks, "dead upstream", gateway, jaeger, run)
    if found:
        checks.add("dead upstream, spans", broken(found, record, "upstream_error") +
                   [lib.same("children", [c.name for c in found.children], [])])


def slow(checks, gateway, engine, jaeger):
    run = "slow"
    answer = rig.call(gateway.ports["site"], run, tokens=2, X_Sim_Fault="slow:600ms")
    checks.add("slow call", rig.same_bytes(engine, run, answer))
    record, found = kept(checks, "slow call", gateway, jaeger, run)
    if found:
        checks.add("slow call, trace", shape.problems(found, record, engine.seen[run]))


def chosen(checks, gateway, engine, jaeger):
    trace, header = traceparent("01")
    run = "caller-says-yes"
    answer = rig.call(gateway.ports["site"], run, traceparent=header)
    checks.add("caller's choice", rig.same_bytes(engine, run, answer))
    record, found = kept(checks, "caller's choice", gateway, jaeger, run)
    if found:
        checks.add("caller's choice, trace", shape.problems(found, record, engine.seen[run]) + [lib.same("trace", record["trace_id"], trace)])
