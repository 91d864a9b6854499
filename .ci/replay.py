#!/usr/bin/env python3
"""Replays the wire samples through the built gateway, from outside: what went in must come out, and be told right.

usage: replay.py BINARY SAMPLES_FOLDER [--plain]

Every sample is sent several ways: at once in chunks and with a length, cut at the sample's own splits, one byte a
write, and compressed. Each time the client must get the upstream's very bytes and headers, the upstream the client's
very body, and the record must hold the sample's expected results. --plain tries all but the records on bare Caddy,
to tell a fault of the harness from one of the gateway.
"""
import json
import os
import socket
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import lib

TURNS = [{"role": "user", "content": "hello"}]
REQUESTS = {
    "openai.chat": ("/v1/chat/completions",
                    {"messages": TURNS, "stream": True, "stream_options": {"include_usage": True}}),
    "openai.chat.json": ("/v1/chat/completions", {"messages": TURNS}),
    "openai.completions": ("/v1/completions", {"prompt": "Say: ", "stream": True}),
    "openai.responses": ("/v1/responses", {"input": "hello", "stream": True}),
    "openai.embeddings": ("/v1/embeddings", {"input": "hello"}),
    "openai.speech": ("/v1/audio/speech", {"input": "hello", "voice": "alloy", "stream_format": "sse"}),
    "openai.transcription": ("/v1/audio/transcriptions", {"stream": True}),
    "anthropic.messages": ("/v1/messages", {"messages": TURNS, "max_tokens": 64, "stream": True}),
    "anthropic.messages.json": ("/v1/messages", {"messages": TURNS, "max_tokens": 64}),
    "ollama.chat": ("/api/chat", {"messages": TURNS}),
    "ollama.generate": ("/api/generate", {"prompt": "hello"}),
    "sglang.generate": ("/generate", {"text": "hello", "stream": True}),
    "sglang.generate.json": ("/generate", {"text": "hello"}),
    "tgi.generate_stream": ("/generate_stream", {"inputs": "hello"}),
    "llamacpp.completion": ("/completion", {"prompt": "hello", "stream": True}),
    "cohere.v2.chat": ("/v2/chat", {"messages": TURNS, "stream": True}),
    "cohere.rerank": ("/v1/rerank", {"query": "hello", "documents": ["a"]}),
    "gemini.native": ("/v1beta/models/model-a:streamGenerateContent?alt=sse", {"contents": []}),
}

# Response headers that Caddy sets on its own way, with or without the directive, and those of one hop.
HOP = {"connection", "date", "server", "transfer-encoding", "content-length", "via", "alt-svc"}

USAGE = {"prompt": "input_tokens", "completion": "output_tokens", "cached": "cached_tokens",
         "cache_write": "cache_write_tokens", "reasoning": "reasoning_tokens"}


def compressed(body, cuts, bits):
    """The body as gzip (bits 31) or deflate (bits 15), flushed at each cut as a streaming server does."""
    packer, parts, at = zlib.compressobj(wbits=bits), [], 0
    for cut in cuts:
        parts.append(packer.compress(body[at:cut]) + packer.flush(zlib.Z_SYNC_FLUSH))
        at = cut
    parts.append(packer.compress(body[at:]) + packer.flush())
    return parts


def sliced(body, cuts):
    edges = [0, *cuts, len(body)]
    return [body[a:b] for a, b in zip(edges, edges[1:]) if b > a]


class Delivery:
    """One way of sending one sample: its headers, the parts of its body, each written by itself, and the framing."""

    def __init__(self, headers, parts, with_length=False):
        self.headers, self.parts, self.with_length = headers, parts, with_length
        self.body = b"".join(parts)
        self.received = None  # the request body as the upstream read it


def deliveries(case, body):
    """Every way of sending a sample, by name."""
    headers = {"Content-Type": content_type(case), **(case.get("headers") or {})}
    encoded = "Content-Encoding" in headers
    splits = sorted({n for n in case.get("splits") or [] if 0 < n < len(body)})
    lines = [i + 1 for i, c in enumerate(body[:-1]) if c == 10] if not encoded else []
    ways = {"whole": Delivery(headers, sliced(body, [])),
            "with length": Delivery(headers, sliced(body, []), with_length=True),
            "one byte a write": Delivery(headers, sliced(body, range(1, len(body))))}
    if splits:
        ways["own splits"] = Delivery(headers, sliced(body, splits))
    elif lines:
        ways["line by line"] = Delivery(headers, sliced(body, lines))
    if not encoded:
        for name, bits in (("gzip", 31), ("deflate", 15)):
            ways[name] = Delivery({**headers, "Content-Encoding": name}, compressed(body, lines, bits))
        bytewise = b"".join(compressed(body, lines, 31))
        ways["gzip, one byte a write"] = Delivery({**headers, "Content-Encoding": "gzip"},
                                                  sliced(bytewise, range(1, len(bytewise))))
    return ways


def content_type(case):
    if case["file"].endswith(".json"):
        return "application/json"
    return "application/x-ndjson" if case["dialect"].startswith("ollama.") else "text/event-stream"


class Upstream(BaseHTTPRequestHandler):
    """Answers the delivery that the request names."""
    protocol_version = "HTTP/1.1"
    wbufsize = 0  # each write is one write
    deliveries = {}

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_POST(self):
        delivery = self.deliveries[self.headers["X-Weir-Run"]]
        delivery.received = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        for name, value in delivery.headers.items():
            self.send_header(name, value)
        if delivery.with_length:
            self.send_header("Content-Length", str(len(delivery.body)))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in delivery.parts:
            self.wfile.write(part if delivery.with_length else b"%x\r\n%s\r\n" % (len(part), part))
        if not delivery.with_length:
            self.wfile.write(b"0\r\n\r\n")


def header_problems(sent, got):
    theirs = {name.lower(): value for name, value in sent.items()}
    ours = {name.lower(): value for name, value in got if name.lower() not in HOP}
    return [] if theirs == ours else ["headers %r became %r" % (theirs, ours)]


def askings(case):
    """The requests that a sample is sent for, by name, each with what to expect of the record.

    A prompt that is echoed looks like output on the wire. The sample's expected results read it so; a request that
    asks for the echo makes its first event the prompt, which is the one that the sample repeats.
    """
    request = case.get("request") or {}
    if not request.get("echo"):
        return [("", request, case["expect"])]
    expect = dict(case["expect"])
    for field, change in (("content_events", -1), ("first_content_event", 1), ("first_visible_event", 1)):
        expect[field] += change
    return [("not asked to echo, ", {**request, "echo": False}, case["expect"]), ("asked to echo, ", request, expect)]


def record_problems(record, case, expect, answer, delivery):
    json_body = case["file"].endswith(".json")
    problems = [lib.same(field, record.get(field), expect["usage"][key]) for key, field in USAGE.items()]
    problems += [
        lib.same("content_events", record.get("content_events") or 0, expect["content_events"]),
        lib.same("finish_reason", record.get("finish_reason"), expect["finish_reason"]),
        lib.same("terminated", record.get("terminated"), expect["terminated"]),
        lib.same("outcome", record.get("outcome"), expect["outcome"]),
        lib.same("usage_source", record.get("usage_source"), case["usage_source"]),
        lib.same("status", record.get("status"), 200),
        lib.same("bytes_out", record.get("bytes_out"), len(delivery.body)),
        lib.same("bytes_in", record.get("bytes_in"), len(delivery.received or b"")),
        lib.same("attempts", record.get("attempts"), 1),
        lib.same("model", record.get("model"), "model-a"),
    ]
    first = expect["first_content_event"]
    if first is None or json_body:
        problems.append(lib.same("ttft_ms", record.get("ttft_ms"), None))
    else:
        problems.append(lib.same("first_content_event", record.get("first_content_event"), first))
        problems += lib.order_problems(record, answer.ended_ms)
    if expect["first_visible_event"] is None:
        problems.append(lib.same("ttft_visible_ms", record.get("ttft_visible_ms"), None))
    for name, ms in (expect.get("engine_timing") or {}).items():
        problems.append(lib.near("engine." + name, (record.get("engine") or {}).get(name), ms, 0.001))
    return problems + lib.phase_problems(record)


def main():
    lib.exit_on_signals()
    arguments = [a for a in sys.argv[1:] if a != "--plain"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    binary, folder = arguments
    plain = "--plain" in sys.argv
    with open(os.path.join(folder, "corpus.json")) as f:
        cases = json.load(f)["cases"]
    server = ThreadingHTTPServer((lib.HOST, 0), Upstream)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    checks = lib.Checks()
    with lib.temporary_directory() as directory, \
            lib.Gateway(binary, {"site": (server.server_port, "" if plain else "weir")}, directory) as gateway:
        for number, case in enumerate(cases):
            path, base = REQUESTS[case["dialect"]]
            with open(os.path.join(folder, case["file"]), "rb") as f:
                body = f.read()
            tries = [(asking + way, delivery, fields, expect) for asking, fields, expect in askings(case)
                     for way, delivery in deliveries(case, body).items()]
            for attempt, (way, delivery, fields, expect) in enumerate(tries):
                run = "replay-%d-%d" % (number, attempt)
                request = json.dumps({**base, **fields, "model": "model-a"}).encode()
                Upstream.deliveries[run] = delivery
                answer = lib.post(gateway.ports["site"], path, request,
                                  {"X-Weir-Run": run, "Accept-Encoding": "gzip, deflate, br, zstd"})
                problems = [answer.error, lib.same("status", answer.status, 200)]
                if answer.body != delivery.body:
                    problems.append("%d bytes came of %d, or others" % (len(answer.body), len(delivery.body)))
                if delivery.received != request:
                    problems.append("the upstream read another request body")
                problems += header_problems(delivery.headers, answer.headers)
                if not plain:
                    record, missing = gateway.record(run)
                    problems += missing or record_problems(record, case, expect, answer, delivery)
                checks.add("%s, %s" % (case["file"], way), problems)
    server.shutdown()
    return checks.close()


if __name__ == "__main__":
    sys.exit(main())
