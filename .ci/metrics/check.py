#!/usr/bin/env python3
"""Has a real Prometheus scrape the gateway, and holds what arrives there against the gateway's own records.

usage: check.py BINARY PROMETHEUS PROMTOOL

Two servers scrape every second: one the text that people's installations scrape (OpenMetrics, from a site with Caddy's
`metrics`; classic buckets), one protobuf from the admin endpoint (native histograms), both with room for exemplars.
promtool judges the page.
"""
import concurrent.futures
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib  # noqa: E402

SLOTS, LONG = 2, 5  # more long streams than slots, so that the engine's gauges have something to show
SHORT, FAILED = 24, 3
MODEL = "model-a"
NATIVE_GROWTH = 2 ** (1 / 8)  # from one native bucket to the next

# Names of ours: all begin so, but for those of the conventions of OpenTelemetry.
OURS = re.compile(r"^(weir|gen_ai)_")


class Sink(BaseHTTPRequestHandler):
    """A collector that takes everything, so that spans are exported and exemplars lead somewhere."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()


class Prometheus(lib.Process):
    """A server with one target, which it scrapes every second."""

    def __init__(self, program, name, target, directory, features):
        self.port, data = lib.free_port(), os.path.join(directory, name)
        os.mkdir(data)
        config = os.path.join(data, "prometheus.yml")
        with open(config, "w") as f:
            json.dump({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "storage": {"exemplars": {"max_exemplars": 10000}},
                       "scrape_configs": [{"job_name": "weir", "static_configs": [
                           {"targets": ["%s:%d" % (lib.HOST, target)]}]}]}, f)  # YAML contains JSON
        super().__init__(name, [program, "--config.file=" + config, "--storage.tsdb.path=" + os.path.join(data, "tsdb"),
                                "--web.listen-address=%s:%d" % (lib.HOST, self.port),
                                "--enable-feature=" + ",".join(features)], data)

    def __enter__(self):
        try:
            return self.wait_for(lambda: lib.listening(self.port) and lib.get(self.port, "/-/ready")[0] == 200, 60)
        except BaseException:
            self.__exit__()
            raise

    def ask(self, path, **query):
        status, body = lib.get(self.port, "/api/v1/" + path + "?" + urlencode(query), seconds=20)
        if status != 200:
            raise RuntimeError("%s answered %d to %s %s: %s" % (self.name, status, path, query, body[:300]))
        return json.loads(body)["data"]

    def vector(self, query):
        """The result of an instant query: (labels, value) of each series."""
        return [(r["metric"], float(r["value"][1])) for r in self.ask("query", query=query)["result"] if "value" in r]

    def number(self, query):
        """The one value of an instant query; None without one."""
        found = self.vector(query)
        return found[0][1] if len(found) == 1 else None


def chat(n, tokens):
    return {"model": MODEL, "messages": [{"role": "user", "content": "%d. A river." % n}], "max_tokens": tokens, "ignore_eos": True,
            "stream": True, "stream_options": {"include_usage": True}}


def call(gateway, n, tokens, fault=None):
    return lib.post(gateway.ports["site"], "/v1/chat/completions", chat(n, tokens),
                    {"X-Weir-Run": "metrics", **({"X-Sim-Fault": fault} if fault else {})})


def make_calls(checks, gateway):
    """Long streams at once, then short ones, then some that fail; every client gets its answer."""
    with concurrent.futures.ThreadPoolExecutor(LONG) as pool:
        answers = list(pool.map(lambda n: call(gateway, n, 150), range(LONG)))
    answers += [call(gateway, n, 4) for n in range(SHORT)]
    checks.add("calls", [a.error or lib.same("status", a.status, 200) for a in answers])
    answers = [call(gateway, n, 4, "status:503") for n in range(FAILED)]
    checks.add("calls that fail", [a.error or lib.same("status", a.status, 503) for a in answers])


def page(checks, gateway, promtool):
    """What promtool says of the page as any scraper gets it."""
    text = gateway.get("/metrics")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=60)
    said = (done.stdout + done.stderr).decode(errors="replace").strip()
    names = sorted(n for n in set(re.findall(r"(?m)^# TYPE (\S+)", text.decode())) if OURS.match(n))
    print("promtool on %d metrics of ours, status %d: %s" % (len(names), done.returncode, said or "no complaint"))
    checks.add("promtool check metrics", ["status %d: %s" % (done.returncode, said[-800:]) if done.returncode or said else None,
                                          "only %d metrics of ours" % len(names) if len(names) < 30 else None])
    return dict(re.findall(r"(?m)^# TYPE ((?:weir|gen_ai)_\S+) (\S+)", text.decode()))


def settle(server, query, want, seconds=30):
    """Waits until a query gives the wanted number; returns the last that it gave."""
    deadline = time.monotonic() + seconds
    while True:
        got = server.number(query)
        if got == want or time.monotonic() > deadline:
            return got
        time.sleep(0.3)


def common(checks, server, records, types):
    """What both servers must have, however they scraped."""
    name = server.name
    checks.add(name + ", calls", [
        lib.same("calls", settle(server, "sum(weir_calls_total)", len(records)), len(records)),
        lib.same("completed", server.number('sum(weir_calls_total{outcome="completed",model="%s"})' % MODEL), LONG + SHORT),
        lib.same("failed", server.number('sum(weir_calls_total{outcome="upstream_error"})'), FAILED),
    ])
    targets = server.ask("targets")["activeTargets"]
    checks.add(name + ", target", [lib.same("targets", len(targets), 1)] +
               [lib.same("health", t["health"], "up") or t["lastError"] for t in targets] +
               [lib.same("scrapes that failed", server.number("count_over_time((up == 0)[10m:1s])"), None)])
    known = {n: m[0]["type"] for n, m in server.ask("metadata").items() if OURS.match(n)}
    # OpenMetrics, and with it the metadata of its scrapes, names a counter without its _total.
    differ = [n for n, t in types.items() if known.get(n) != t and known.get(n.removesuffix("_total")) != t]
    checks.add(name + ", types", ["differ: %s" % ", ".join(differ[:5]) if differ else None])
    tokens = sum(r.get("output_tokens") or 0 for r in records)
    checks.add(name + ", tokens", [lib.same("output tokens", server.number('sum(weir_tokens_total{kind="output"})'), tokens)])
    waiting = server.number("max_over_time(weir_engine_waiting[10m])")
    # The gauges of the engine while the long streams ran, as both servers saw them from second to second.
    checks.add(name + ", engine", [
        lib.same("up", server.number('weir_engine_up{kind="vllm"}'), 1),
        lib.same("most running", server.number("max_over_time(weir_engine_running[10m])"), SLOTS),
        # All but the first wait while its prompt is read.
        None if LONG - SLOTS <= (waiting or 0) <= LONG - 1 else "most waiting=%r" % waiting,
        "no KV use" if not server.number("max_over_time(weir_engine_kv_use_ratio[10m])") else None,
        lib.same("generated tokens", settle(server, "weir_engine_generated_tokens_total", tokens), tokens),
    ])
    checks.add(name + ", spans", [
        lib.same("failed", server.number("weir_spans_failed_total"), 0), lib.same("dropped", server.number("weir_spans_dropped_total"), 0),
        lib.same("some exported", settle(server, "weir_spans_exported_total > bool 0", 1), 1)])


def classic(checks, server, ttfts):
    """Every bucket holds just the calls at or below its edge."""
    buckets = {float(labels["le"]): n for labels, n in server.vector("sum by (le) (weir_ttft_seconds_bucket)")}
    wrong = ["le=%g: %d want %d" % (le, n, sum(t <= le for t in ttfts)) for le, n in sorted(buckets.items())
             if n != sum(t <= le for t in ttfts)]
    checks.add("classic buckets", wrong[:3] + [
        "only %d edges" % len(buckets) if len(buckets) < 20 else None,
        lib.same("count", server.number("sum(weir_ttft_seconds_count)"), len(ttfts)),
        lib.near("sum", server.number("sum(weir_ttft_seconds_sum)"), sum(ttfts), 1e-6)])
    print("classic: %d edges, %d calls" % (len(buckets), len(ttfts)))


def native(checks, server, ttfts, types):
    """Count and sum are exact, and quantiles are within one native bucket."""
    median = sorted(ttfts)[(len(ttfts) - 1) // 2]
    got = server.number("histogram_quantile(0.5, sum(weir_ttft_seconds))")
    checks.add("native histogram", [
        lib.same("histogram_count", server.number("histogram_count(sum(weir_ttft_seconds))"), len(ttfts)),
        lib.near("histogram_sum", server.number("histogram_sum(sum(weir_ttft_seconds))"), sum(ttfts), 1e-6),
        None if got and median / NATIVE_GROWTH <= got <= median * NATIVE_GROWTH else "median %r of %r" % (got, median),
        # A native histogram has no edges that anybody chose.
        lib.near("histogram_fraction", server.number("histogram_fraction(0, 10000, sum(weir_ttft_seconds))"), 1, 1e-9)])
    names = [n for n, t in types.items() if t == "histogram"]
    filled = [n for n in names if server.number("histogram_count(sum(%s))" % n)]
    print("native: median %s s where records have %.6f s; %d of %d histograms have counts" % (got, median, len(filled), len(names)))
    checks.add("native histograms", ["only %s" % ", ".join(filled) if len(filled) < 8 else None])


def exemplars(checks, server, query, records):
    """Each leads to a call of ours: its trace, its figure, when it ended."""
    by_trace = {r["trace_id"]: r for r in records}
    found, problems = [], []
    for series in server.ask("query_exemplars", query=query, start=time.time() - 600, end=time.time() + 1):
        edge = float(series["seriesLabels"].get("le", "inf"))
        for e in series["exemplars"]:
            found.append(e)
            record = by_trace.get(e["labels"].get("trace_id"))
            if record is None:
                problems.append("trace %r is of no call" % e["labels"])
                continue
            ended = lib.seconds(record["time"]) + record["e2e_ms"] / 1000
            problems += [lib.near("value", float(e["value"]), record["ttft_ms"] / 1000, 1e-9),
                         lib.near("time", float(e["timestamp"]), ended, 0.01),
                         "%s is above its bucket %g" % (e["value"], edge) if float(e["value"]) > edge else None]
    checks.add("exemplars, " + server.name, problems[:3] + ([] if found else ["none of " + query]))
    print("exemplars, %s: %d of %d calls" % (server.name, len({e["labels"].get("trace_id") for e in found}), len(by_trace)))


def main():
    lib.exit_on_signals()
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    binary, prometheus, promtool = (os.path.abspath(a) for a in sys.argv[1:])
    checks = lib.Checks()
    sink = ThreadingHTTPServer((lib.HOST, 0), Sink)
    sink.daemon_threads = True
    threading.Thread(target=sink.serve_forever, daemon=True).start()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(lib.temporary_directory())
        engine = lib.free_port()
        sim = stack.enter_context(lib.Process("sim", [binary, "sim", "--listen", "%s:%d" % (lib.HOST, engine), "--slots", str(SLOTS)],
                                              directory, {"HOME": directory}))
        sim.wait_for(lambda: lib.listening(engine), 60)
        gateway = stack.enter_context(lib.Gateway(
            binary, {"site": (engine, "weir"), "metrics": (engine, "metrics /metrics")}, directory,
            ["weir {", "\totlp http://%s:%d" % (lib.HOST, sink.server_port), "\tengine vllm http://%s:%d" % (lib.HOST, engine), "}"]))
        text = stack.enter_context(Prometheus(prometheus, "OpenMetrics", gateway.ports["metrics"], directory, ["exemplar-storage"]))
        protobuf = stack.enter_context(Prometheus(prometheus, "protobuf", gateway.admin, directory,
                                                  ["exemplar-storage", "native-histograms"]))
        for server in (text, protobuf):  # a target is scraped some seconds after the start
            checks.add(server.name + ", first scrape", [lib.same("up", settle(server, "up", 1), 1)])
        make_calls(checks, gateway)
        records = gateway.calls(run="metrics", limit=1000)
        checks.add("records", [lib.same("records", len(records), LONG + SHORT + FAILED)])
        ttfts = [r["ttft_ms"] / 1000 for r in records if r.get("ttft_ms") is not None]
        types = page(checks, gateway, promtool)
        for server in (text, protobuf):
            common(checks, server, records, types)
        classic(checks, text, ttfts)
        native(checks, protobuf, ttfts, types)
        exemplars(checks, text, "weir_ttft_seconds_bucket", records)
        exemplars(checks, protobuf, "weir_ttft_seconds", records)
    sink.shutdown()
    return checks.close()


if __name__ == "__main__":
    sys.exit(main())
