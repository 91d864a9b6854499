"""Collectors that are down, that accept and never answer, and that swallow even connections: no call may notice.

Each gets a gateway of its own, whose spans go there and whose receiver passes engines' spans on to there. Beside them
stands a gateway without tracing, whose calls are the measure.
"""
import concurrent.futures
import contextlib
import re
import socket
import statistics
import subprocess
import time

import lib
import rig

CALLS, AT_ONCE = 50, 4
SLACK_S = 2.0  # of the slowest call, on a busy machine; every time-out of an export is 10 s
FAIL_S = 45    # until an export has failed: 2 s until it begins, 10 s until it is given up, and again
FLOOD = 3000   # calls of some 5 spans each: more than may wait
QUEUE_SPANS = 8192
END_S = 20


# All that differs between equal calls.
VARYING = re.compile(rb'"(id|created)": ?("[^"]*"|\d+)')


class Silent:
    """A listener that accepts connections, as the kernel does for it, and never reads nor answers."""

    def __init__(self):
        self.socket = socket.create_server((lib.HOST, 0), backlog=1024)
        self.port = self.socket.getsockname()[1]

    def close(self):
        self.socket.close()


class BlackHole:
    """A listener whose queue is full, so that further connections are never made."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind((lib.HOST, 0))
        self.socket.listen(0)
        self.port = self.socket.getsockname()[1]
        self.filling = []
        for _ in range(8):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex((lib.HOST, self.port))
            self.filling.append(s)
        time.sleep(0.2)
        try:
            socket.create_connection((lib.HOST, self.port), 1).close()
            raise RuntimeError("the black hole takes connections")
        except TimeoutError:
            pass

    def close(self):
        for s in [self.socket, *self.filling]:
            s.close()


def batch_of_calls(gateway, engine, name):
    """CALLS calls, AT_ONCE at a time: what is wrong with them, and their times in s."""
    def one(n):
        run = "%s-%d" % (name, n)
        begun = time.monotonic()
        answer = rig.call(gateway.ports["site"], run, prompt="call %d" % n, X_Test_Span="now")
        return rig.same_bytes(engine, run, answer), time.monotonic() - begun, VARYING.sub(b"", answer.body)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(one, range(CALLS)))
    return [p for problems, _, _ in done for p in problems], [t for _, t, _ in done], [a for _, _, a in done]


def check(checks, binary, directory):
    with contextlib.ExitStack() as stack:
        silent, hole = Silent(), BlackHole()
        stack.callback(silent.close)
        stack.callback(hole.close)
        sim = stack.enter_context(rig.simulator(binary, directory, "fast", "--prefill", "10ms", "--decode", "5ms", "--prefill-token", "0s",
                                                "--per-request-metrics", "--no-prefix-cache"))
        sim.wait_for(lambda: lib.listening(sim.port), 60)
        engine = rig.Engine(sim.port)
        stack.callback(engine.close)
        plain = stack.enter_context(lib.Gateway(binary, {"site": (engine.port, "weir")}, rig.directory_of(directory, "plain")))
        problems, times, answers = batch_of_calls(plain, engine, "plain")
        checks.add("without tracing, bytes", problems)
        longest, median = max(times), statistics.median(times)
        print("%-12s median %4.0f ms, slowest %4.0f ms" % ("no tracing", median * 1000, longest * 1000), flush=True)
        gateways = {}
        for name, protocol, port in (("dead", "http/protobuf", lib.free_port()), ("slow", "http/protobuf", silent.port),
                                     ("black hole", "http/protobuf", hole.port), ("dead, grpc", "grpc", lib.free_port()),
                                     ("slow, grpc", "grpc", silent.port), ("black hole, grpc", "grpc", hole.port)):
            receiver, endpoint = lib.free_port(), "http://%s:%d" % (lib.HOST, port)
            forward = endpoint if protocol != "grpc" else "%s:%d" % (lib.HOST, port)
            gateway = stack.enter_context(rig.Gateway(
                binary, {"site": (engine.port, "weir"), "fast": (sim.port, "weir")}, rig.directory_of(directory, name),
                rig.options(endpoint, protocol, forward, receiver)))
            engine.receiver, engine.failures = receiver, []
            problems, times, got = batch_of_calls(gateway, engine, name)
            checks.add(name + " collector, bytes", problems + engine.failures)
            checks.add(name + " collector, answers", ["call %d has another answer than without tracing" % n
                                                      for n, (a, b) in enumerate(zip(got, answers)) if a != b][:3])
            checks.add(name + " collector, time", ["slowest call %.1f s, without tracing %.1f s" % (max(times), longest)]
                       if max(times) > longest + SLACK_S else [])
            print("%-12s median %4.0f ms, slowest %4.0f ms" % (name, statistics.median(times) * 1000, max(times) * 1000), flush=True)
            gateways[name] = gateway
        flood(checks, gateways["black hole"])
        for name, gateway in gateways.items():
            counted(checks, name, gateway)
        for name, gateway in gateways.items():
            ended(checks, name, gateway)


def flood(checks, gateway):
    """More calls than may wait for the collector: spans are dropped, and calls go on."""
    begun = time.monotonic()

    def some(_):
        bad = 0
        for n in range(FLOOD // AT_ONCE):
            answer = lib.post(gateway.ports["fast"], "/v1/chat/completions", rig.ask("flood", 1), {"X-Sim-Fault": "status:503"})
            bad += answer.status != 503
        return bad

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        bad = sum(pool.map(some, range(AT_ONCE)))
    took = time.monotonic() - begun
    state, metrics = rig.figures(gateway)
    export = state["export"]
    checks.add("black hole collector, flood", [
        lib.same("calls without their answer", bad, 0), "no span was dropped" if not export["spans_dropped"] else None,
        "%d spans wait" % export["spans_waiting"] if export["spans_waiting"] > QUEUE_SPANS else None,
        lib.same("weir_spans_dropped_total", metrics.get("weir_spans_dropped_total"), export["spans_dropped"])])
    print("flood: %d calls in %.1f s, %d spans wait, %d dropped" % (FLOOD, took, export["spans_waiting"], export["spans_dropped"]), flush=True)


def counted(checks, name, gateway):
    """What did not arrive is counted, in both places alike, and engines' spans were joined all the same."""
    state, metrics = rig.eventually(lambda: rig.figures(gateway), lambda f: f[0]["export"]["spans_failed"] > 0 and
                                    f[0]["receiver"]["forward"]["failed_attempts"] > 0 and f[0]["receiver"]["join"]["open"] == 0, FAIL_S)
    export, join, forward = state["export"], state["receiver"]["join"], state["receiver"]["forward"]
    lost = metrics["weir_spans_failed_total"] + metrics["weir_spans_waiting"] + metrics["weir_spans_dropped_total"]
    checks.add(name + " collector, counts", [
        lib.same("exported", export["spans_exported"], 0), "none failed" if not export["spans_failed"] else None,
        "no error is told" if not export.get("error") else None, "only %d spans of %d calls" % (lost, CALLS) if lost < 5 * CALLS else None,
        lib.same("passed on", forward["forwarded_spans"], 0), "no failed attempt" if not forward["failed_attempts"] else None,
        lib.same("kept or dropped", forward["queued_batches"] + forward["dropped_queue_full"] + forward["dropped_expired"] +
                 forward["dropped_refused"], CALLS),
        lib.same("joined", join["joined"], CALLS), lib.same("weir_engine_spans_joined_total", metrics["weir_engine_spans_joined_total"], CALLS),
        "weir_spans_failed_total is %r, state %d" % (metrics["weir_spans_failed_total"], export["spans_failed"])
        if metrics["weir_spans_failed_total"] < export["spans_failed"] else None])


def ended(checks, name, gateway):
    """The end of the process waits for the collector only so long."""
    begun = time.monotonic()
    gateway.child.terminate()
    try:
        status = gateway.child.wait(END_S)
    except subprocess.TimeoutExpired:
        status = "none after %d s" % END_S
    checks.add(name + " collector, end", [lib.same("status", status, 0)])
    print("%s collector: ended after %.1f s" % (name, time.monotonic() - begun), flush=True)
