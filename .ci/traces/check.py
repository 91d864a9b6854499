#!/usr/bin/env python3
"""Looks at the gateway's spans in a real Jaeger, and at engines' spans that it joins to calls.

usage: check.py BINARY JAEGER

Calls: the shape of traces, over HTTP and over gRPC, under Caddy's tracing and without; see calls.py and shape.py. Sampling:
what is kept whatever the sampling; see sampling.py. Hostile: engines' spans late, twice, in any order, and foreign; see
hostile.py. Collectors: those that are down, slow, or swallow everything; see collectors.py.
"""
import contextlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib  # noqa: E402
import calls  # noqa: E402
import collectors  # noqa: E402
import hostile  # noqa: E402
import rig  # noqa: E402
import sampling  # noqa: E402


def base(port):
    return "http://%s:%d" % (lib.HOST, port)


def suite(checks, protocol, binary, directory, engine, jaeger):
    """One gateway, which exports by the protocol and passes engines' spans on by it."""
    receiver, receiver_grpc, spoken = lib.free_port(), lib.free_port(), {"http": "http/protobuf"}.get(protocol, protocol)
    if protocol == "grpc":
        # Caddy's own spans take the way through the receiver.
        endpoint, forward, environment = base(jaeger.grpc), "%s:%d" % (lib.HOST, jaeger.grpc), base(receiver_grpc)
    else:
        endpoint, forward, environment = base(jaeger.http), base(jaeger.http), base(jaeger.http)
    options = rig.options(endpoint, spoken, forward, receiver, receiver_grpc)
    engine.receiver = receiver
    with rig.Gateway(binary, calls.sites(engine.port, lib.free_port()), rig.directory_of(directory, protocol), options,
                     {"OTEL_EXPORTER_OTLP_ENDPOINT": environment, "OTEL_EXPORTER_OTLP_PROTOCOL": spoken,
                      "OTEL_BSP_SCHEDULE_DELAY": "300"}) as gateway:
        calls.Suite(checks, protocol, gateway, engine, jaeger).run()


def main():
    lib.exit_on_signals()
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    binary, program = (os.path.abspath(a) for a in sys.argv[1:])
    checks = lib.Checks()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(lib.temporary_directory())
        jaeger = stack.enter_context(rig.Jaeger(program, directory))
        sim = stack.enter_context(rig.simulator(binary, directory, "sim", "--slots", str(rig.SLOTS), "--per-request-metrics",
                                                "--frontend", "2ms"))
        sim.wait_for(lambda: lib.listening(sim.port), 60)
        engine = rig.Engine(sim.port)
        stack.callback(engine.close)
        for protocol in ("http", "grpc"):
            suite(checks, protocol, binary, directory, engine, jaeger)
        sampling.check(checks, binary, directory, engine, jaeger)
        collectors.check(checks, binary, directory)
        hostile.check(checks, binary, directory, engine, jaeger)
    return checks.close()


if __name__ == "__main__":
    sys.exit(main())
