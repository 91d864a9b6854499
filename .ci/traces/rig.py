"""What the trace checks stand on: a real Jaeger, an engine that traces its requests as vLLM does, and gateways before it.

The engine is the simulator behind a small server that takes the simulator's own figures of each call out of the answer and
says them in a span instead. It remembers what it got and what it sent, for comparison.
"""
import hashlib
import http.client
import json
import os
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import lib

MODEL = "model-a"
SLOTS = 2
WINDOW_S = 3  # the join window of the gateways
SERVER, CLIENT, INTERNAL = 2, 3, 1  # kinds of spans in OTLP
SECRET = "of-rivers-and-weirs"  # part of every prompt, and of no span

VLLM = {"queue": "gen_ai.latency.time_in_queue", "prefill": "gen_ai.latency.time_in_model_prefill",
        "decode": "gen_ai.latency.time_in_model_decode"}


class Span:
    """A span as Jaeger gives it out, with times in nanoseconds."""

    def __init__(self, span, service):
        self.trace, self.id, self.parent = span["traceId"], span["spanId"], span.get("parentSpanId", "")
        self.name, self.kind, self.service = span["name"], span.get("kind", 0), service
        self.start, self.end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        self.failed = span.get("status", {}).get("code") == 2
        self.attributes = attributes(span)

    def ms(self):
        return (self.end - self.start) / 1e6


def attributes(holder):
    plain = {}
    for pair in holder.get("attributes", []):
        (kind, value), = pair["value"].items() or [("", None)]
        if kind == "intValue":
            value = int(value)
        plain[pair["key"]] = value
    return plain


class Jaeger(lib.Process):
    """Jaeger with everything in memory. http and grpc are its ports for OTLP."""

    def __init__(self, program, directory):
        self.http, self.grpc, self.query = lib.free_port(), lib.free_port(), lib.free_port()
        listeners = {"collector.otlp.http": self.http, "collector.otlp.grpc": self.grpc, "query.http-server": self.query,
                     "query.grpc-server": lib.free_port(), "admin.http": lib.free_port(), "collector.http-server": lib.free_port(),
                     "collector.grpc-server": lib.free_port()}
        super().__init__("jaeger", [program, *("--%s.host-port=%s:%d" % (name, lib.HOST, port) for name, port in listeners.items()),
                                    "--memory.max-traces=150000"], directory,
                         {"OTEL_TRACES_SAMPLER": "always_off"})  # of its own spans

    def __enter__(self):
        try:
            return self.wait_for(lambda: all(map(lib.listening, (self.http, self.grpc, self.query))), 60)
        except BaseException:
            self.__exit__()
            raise

    def text(self, trace):
        """All that there is of a trace, as JSON; None of one that is not there."""
        status, body = lib.get(self.query, "/api/v3/traces/" + trace, seconds=20)
        if status == 404:
            return None
        if status != 200:
            raise RuntimeError("Jaeger answered %d: %s" % (status, body[:300]))
        return body.decode()

    def spans(self, trace):
        found, text = [], self.text(trace)
        for resource in json.loads(text)["result"]["resourceSpans"] if text else []:
            service = attributes(resource["resource"]).get("service.name")
            for scope in resource["scopeSpans"]:
                found += [Span(s, service) for s in scope["spans"]]
        return sorted(found, key=lambda s: (s.start, -s.end))

    def wait(self, trace, enough, seconds=30):
        """The spans of a trace as soon as they are enough, or the last that there were."""
        deadline = time.monotonic() + seconds
        while True:
            spans = self.spans(trace)
            if enough(spans) or time.monotonic() > deadline:
                return spans
            time.sleep(0.2)


def simulator(binary, directory, name="sim", *flags):
    port = lib.free_port()
    process = lib.Process(name, [binary, "sim", "--listen", "%s:%d" % (lib.HOST, port), *flags], directory, {"HOME": directory})
    process.port = port
    return process


class Seen:
    """What the engine had of one call: the headers, hashes of what it got and sent, and its own figures in ms."""

    def __init__(self, headers, body):
        self.traceparent, self.tracestate, self.baggage = (headers.get(n) for n in ("traceparent", "tracestate", "baggage"))
        self.got, self.sent = hashlib.sha256(body).hexdigest(), hashlib.sha256()
        self.figures, self.begun, self.ended = None, time.time_ns(), None

    def trace(self):
        return self.traceparent.split("-")[1]

    def parent(self):
        return self.traceparent.split("-")[2]


class Engine:
    """The server before the simulator. Calls say by header what they want of it:

    X-Test-Call   a name under which it remembers the call
    X-Test-Span   "now": the span is sent when the call has ended; else the check sends it, or nobody does
    X-Test-Figures  "keep": the figures stay in the answer, as with vLLM's --enable-per-request-metrics
    """

    def __init__(self, sim):
        self.sim, self.seen, self.receiver, self.failures = sim, {}, None, []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                seen = Seen(self.headers, body)
                engine.seen[self.headers.get("X-Test-Call")] = seen
                c = http.client.HTTPConnection(lib.HOST, engine.sim, timeout=60)
                try:
                    self.relay(c, body, seen)
                except (OSError, http.client.HTTPException):  # as faults want it, or the client left
                    self.close_connection = True
                finally:
                    c.close()
                if self.headers.get("X-Test-Span") == "now" and seen.figures and seen.traceparent:
                    engine.tell(engine.span(seen))

            def relay(self, c, body, seen):
                headers = {n: self.headers[n] for n in ("Content-Type", "X-Sim-Fault") if n in self.headers}
                c.request("POST", self.path, body, headers)
                answer = c.getresponse()
                keep = self.headers.get("X-Test-Figures") == "keep"
                streamed = answer.getheader("Content-Type", "").startswith("text/event-stream")
                whole = b"" if streamed else take_figures(answer.read(), seen, keep)
                self.send_response_only(answer.status)
                self.send_header("Content-Type", answer.getheader("Content-Type", "text/plain"))
                if not streamed:
                    self.send_header("Content-Length", str(len(whole)))
                    self.end_headers()
                    seen.sent.update(whole)
                    seen.ended = time.time_ns()
                    self.wfile.write(whole)
                    return
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in lines(answer):
                    if line.startswith(b"data: {"):
                        line = b"data: " + take_figures(line[len(b"data: "):].rstrip(b"\n"), seen, keep) + b"\n"
                    seen.ended = time.time_ns()
                    seen.sent.update(line)
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.write(b"0\r\n\r\n")

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Server((lib.HOST, 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def span(self, seen, **instead):
        """The engine's span of a call, as vLLM makes it. instead replaces members, and figures of VLLM's by name."""
        figures = {n: instead.pop(n, seen.figures[n] / 1000) for n in VLLM}
        whole = (seen.ended - seen.begun) / 1e9
        said = {VLLM[n]: {"doubleValue": v} for n, v in figures.items() if v is not None}
        said["gen_ai.latency.e2e"] = {"doubleValue": whole}
        if isinstance(figures["queue"], float) and isinstance(figures["prefill"], float):
            said["gen_ai.latency.time_to_first_token"] = {"doubleValue": figures["queue"] + figures["prefill"]}
        said["gen_ai.request.id"] = {"stringValue": "cmpl-" + uuid.uuid4().hex}
        return {"traceId": seen.trace(), "spanId": uuid.uuid4().hex[:16], "parentSpanId": seen.parent(), "name": "llm_request",
                "kind": SERVER, "startTimeUnixNano": str(seen.begun), "endTimeUnixNano": str(seen.ended),
                "attributes": [{"key": k, "value": v} for k, v in said.items()], **instead}

    def tell(self, *spans, scope="vllm.llm_engine"):
        """Exports spans to the gateway's receiver; what goes wrong is kept."""
        status, body = export(self.receiver, batch(spans, scope))
        if status != 200:
            self.failures.append("the receiver answered %d: %s" % (status, body[:200]))

    def close(self):
        self.server.shutdown()


def lines(answer):
    """The lines of an answer as they come. One that breaks off raises, which readline would not."""
    rest = b""
    while data := answer.read1(1 << 16):
        *whole, rest = (rest + data).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def take_figures(data, seen, keep):
    """Takes vLLM's metrics out of a chunk, or a whole answer, and notes them."""
    if b'"metrics":' not in data:
        return data
    message = json.loads(data)
    metrics = message.pop("metrics")
    seen.figures = {"queue": metrics["queue_time_ms"], "prefill": metrics["time_to_first_token_ms"], "decode": metrics["generation_time_ms"]}
    return data if keep else json.dumps(message).encode()


def batch(spans, scope):
    return {"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "vllm"}}]},
                               "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


def export(port, body, headers=None, seconds=30):
    """Sends OTLP/JSON, or bytes as they are: (status, body of the answer); status 0 when there was none."""
    answer = lib.post(port, "/v1/traces", body, headers, timeout=seconds)
    return answer.status, answer.error or answer.body.decode(errors="replace")


class Gateway(lib.Gateway):
    """A gateway that makes spans: it is there when its app has begun, a moment after its sites listen."""

    def __enter__(self):
        super().__enter__()
        try:
            return self.wait_for(lambda: lib.get(self.admin, "/weir/traces")[0] == 200, 20)
        except BaseException:
            self.__exit__()
            raise


def options(otlp, protocol, forward=None, receiver=None, receiver_grpc=None, more=()):
    """The lines of a block weir."""
    lines = ["weir {", "\totlp %s {" % otlp if otlp else "\totlp {", "\t\tprotocol %s" % protocol, *("\t\t" + m for m in more), "\t}"]
    if receiver:
        lines += ["\totlp_receiver %s:%d {" % (lib.HOST, receiver), "\t\twindow %ds" % WINDOW_S]
        if forward:
            lines.append("\t\tforward %s" % forward)
        if receiver_grpc:
            lines.append("\t\tgrpc %s:%d" % (lib.HOST, receiver_grpc))
        lines.append("\t}")
    return lines + ["}"]


def ask(prompt, tokens, stream=True):
    request = {"model": MODEL, "messages": [{"role": "user", "content": "%s %s" % (prompt, SECRET)}], "max_tokens": tokens, "ignore_eos": True}
    return {**request, "stream": True, "stream_options": {"include_usage": True}} if stream else request


def call(port, run, tokens=6, stream=True, timeout=60, prompt=None, **headers):
    """One call, under a name that record and engine know it by; names of headers have _ instead of -."""
    named = {"X-Weir-Run": run, "X-Test-Call": run, **{k.replace("_", "-"): v for k, v in headers.items()}}
    body = json.dumps(ask(prompt or run, tokens, stream)).encode()
    answer = lib.post(port, "/v1/chat/completions", body, named, timeout=timeout)
    answer.asked = hashlib.sha256(body).hexdigest()
    return answer


def same_bytes(engine, run, answer):
    """What differs between what client and engine had of a call."""
    seen = engine.seen.get(run)
    if seen is None:
        return ["it did not reach the engine: %s" % (answer.error or "status %d" % answer.status)]
    return [answer.error, lib.same("status", answer.status, 200),
            lib.same("sha256 of the answer", hashlib.sha256(answer.body).hexdigest(), seen.sent.hexdigest()),
            lib.same("sha256 of the request", seen.got, answer.asked)]


def figures(gateway):
    """The state at /weir/traces, and the figures of spans at /metrics by name."""
    state = json.loads(gateway.get("/weir/traces"))
    metrics = {}
    for line in gateway.get("/metrics").decode().splitlines():
        if line.startswith(("weir_spans_", "weir_engine_spans_")):
            name, value = line.split(" ")
            metrics[name] = float(value)
    return state, metrics


def eventually(state, good, seconds):
    """The first state that is good, or the last one."""
    deadline = time.monotonic() + seconds
    while True:
        now = state()
        if good(now) or time.monotonic() > deadline:
            return now
        time.sleep(0.2)


def resident_mib(process):
    with open("/proc/%d/status" % process.child.pid) as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmRSS:"))


def directory_of(directory, name):
    path = os.path.join(directory, name)
    os.mkdir(path)
    return path
