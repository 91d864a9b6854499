#!/usr/bin/env python3
"""Lets the official SDKs call an engine directly and through the gateway, and holds both against the records.

usage: check.py BINARY [--plain] NAME COMMAND...   (NAME is the language; COMMAND makes the calls)

The command runs twice, with SIDE=direct and SIDE=weir, and prints a JSON line for each call: sdk, scenario, run
(its X-Weir-Run header), text, reasoning, tools (pairs of name and arguments), input and output tokens, finish,
ttft_ms as the client saw it, error (type, status, code). Then it runs with SIDE=refusals; see refusals.py. --plain
leaves the records and the refusals out, on bare Caddy.
"""
import contextlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib  # noqa: E402
import refusals  # noqa: E402

SECONDS = 300  # for one side of one language
DIALECTS = {"chat": "openai.chat", "completions": "openai.completions", "responses": "openai.responses",
            "embeddings": "openai.embeddings", "messages": "anthropic.messages"}
ERROR_BODIES = {
    "/v1/chat/completions": {400: "invalid_request_error", 429: "rate_limit_exceeded", 500: "server_error"},
    "/v1/messages": {400: "invalid_request_error", 529: "overloaded_error"},
}
# Both the direct answer and the one through the gateway must show this much of every scenario.
SCENARIOS = {"openai": 12, "anthropic": 6}


class Errors(BaseHTTPRequestHandler):
    """An upstream that answers the status which the request asks for, in the shape of the API it serves."""
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write, so that no timer of TCP's comes between them

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status = int(self.headers.get("X-Answer-Status") or 500)
        kind = ERROR_BODIES.get(self.path, {}).get(status, "unexpected")
        error = {"type": kind, "message": "as asked"}
        if self.path == "/v1/messages":
            body = {"type": "error", "error": error, "request_id": "req_1"}
        else:
            body = {"error": {**error, "param": None, "code": kind}}
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def calls(command, side, base, errors):
    """Runs the calls of one side; gives the lines by (sdk, scenario), and what went wrong."""
    environment = dict(os.environ, BASE_URL="http://%s:%d" % (lib.HOST, base),
                       ERROR_URL="http://%s:%d" % (lib.HOST, errors), SIDE=side)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "HTTP_PROXY",
                 "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        environment.pop(name, None)
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {}, ["%s calls not done after %d s" % (side, SECONDS)]
    problems = []
    if done.returncode:
        problems.append("%s calls ended with status %d: %s" % (side, done.returncode, done.stderr[-800:]))
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for sdk, count in SCENARIOS.items():
        problems.append(lib.same("%s calls of %s" % (side, sdk), sum(l["sdk"] == sdk for l in lines), count))
    return {(l["sdk"], l["scenario"]): l for l in lines}, problems


def sane(seen):
    """What a call must show whichever way it went, so that two empty answers do not pass as equal."""
    scenario = seen["scenario"]
    problems = ["failed: " + seen["failure"] if "failure" in seen else None]
    if scenario.startswith("error"):
        status = int(scenario.rsplit("_", 1)[1])
        error = seen.get("error") or [None, None, None]
        problems.append(lib.same("error status", error[1], status))
        problems.append("no typed error" if not error[0] or "Error" not in error[0] else None)
    elif scenario == "early_close":
        problems.append("no token before the close" if "ttft_ms" not in seen else None)
    elif scenario.endswith("_tools"):
        problems.append("no tool call" if not seen["tools"] else None)
    else:
        problems.append("no output" if not seen["text"] + seen["reasoning"] else None)
    return problems


def comparison(direct, through):
    fields = ["text", "reasoning", "tools", "input", "output", "finish", "error"]
    if direct["scenario"] == "early_close":
        fields = []
    return [lib.same(f + " through the gateway", through.get(f), direct.get(f)) for f in fields]


def record_problems(record, seen):
    scenario = seen["scenario"]
    problems = [lib.same("attempts", record.get("attempts"), 1), lib.same("model", record.get("model"), "model-a")]
    if scenario.startswith("error"):
        problems += [lib.same("outcome", record.get("outcome"), "upstream_error"),
                     lib.same("status", record.get("status"), int(scenario.rsplit("_", 1)[1])),
                     lib.same("ttft_ms", record.get("ttft_ms"), None),
                     lib.same("output_tokens", record.get("output_tokens"), None)]
        return problems + lib.phase_problems(record)
    problems.append(lib.same("status", record.get("status"), 200))
    if scenario == "early_close":
        problems += [lib.same("outcome", record.get("outcome"), "client_gone"),
                     lib.same("e2e_ms", record.get("e2e_ms"), None),
                     lib.same("terminated", record.get("terminated"), False)]
        return problems + lib.order_problems(record, seen["ttft_ms"]) + lib.phase_problems(record)
    dialect = DIALECTS[scenario.split("_")[0]]
    problems += [
        lib.same("outcome", record.get("outcome"), "completed"),
        lib.same("terminated", record.get("terminated"), True),
        None if (record.get("dialect") or "").startswith(dialect) else "dialect=%r" % record.get("dialect"),
        "e2e_ms is absent" if record.get("e2e_ms") is None else None,
    ]
    if seen["input"] is not None:
        problems.append(lib.same("input_tokens", record.get("input_tokens"), seen["input"]))
        problems.append(lib.same("output_tokens", record.get("output_tokens"),
                                 0 if scenario == "embeddings" else seen["output"]))
        problems.append(lib.same("usage_source", record.get("usage_source"), "reported"))
    elif record.get("output_tokens") == 0 or record.get("input_tokens") == 0:
        problems.append("tokens that nobody reported are 0")
    if seen["finish"] is not None:
        problems.append(lib.same("finish_reason", record.get("finish_reason"), seen["finish"]))
    if "stream" in scenario:
        problems += [lib.same("stream", record.get("stream"), True)] + lib.order_problems(record, seen.get("ttft_ms"))
    else:
        problems += [lib.same("stream", record.get("stream"), False),
                     lib.same("ttft_ms", record.get("ttft_ms"), None)]
    return problems + lib.phase_problems(record)


def main():
    lib.exit_on_signals()
    arguments = [a for a in sys.argv[1:] if a != "--plain"]
    if len(arguments) < 3:
        sys.exit(__doc__)
    binary, language, command = arguments[0], arguments[1], arguments[2:]
    plain = "--plain" in sys.argv
    checks = lib.Checks()
    errors = ThreadingHTTPServer((lib.HOST, 0), Errors)
    errors.daemon_threads = True
    threading.Thread(target=errors.serve_forever, daemon=True).start()
    directive = "" if plain else "weir"
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(lib.temporary_directory())
        engine = engine_port(binary, directory, stack)
        gateway = stack.enter_context(lib.Gateway(
            binary, {"engine": (engine, directive), "errors": (errors.server_port, directive)}, directory))
        direct, problems = calls(command, "direct", engine, errors.server_port)
        checks.add(language + ": direct calls", problems)
        through, problems = calls(command, "weir", gateway.ports["engine"], gateway.ports["errors"])
        checks.add(language + ": calls through the gateway", problems)
        for key, seen in through.items():
            name = "%s %s %s" % (language, *key)
            other = direct.get(key)
            checks.add(name + ", direct", sane(other) if other else ["no such call"])
            checks.add(name + ", through the gateway", sane(seen) + (comparison(other, seen) if other else []))
            if not plain:
                record, missing = gateway.record(seen["run"])
                checks.add(name + ", record", missing or record_problems(record, seen))
        if not plain:
            report(gateway, through)
            refusals.check(checks, binary, language, command, engine)
    errors.shutdown()
    return checks.close()


def engine_port(binary, directory, stack):
    """Starts the simulated engine, or takes the one whose port is in WEIR_CI_ENGINE_PORT (to try this check alone)."""
    given = os.environ.get("WEIR_CI_ENGINE_PORT")
    if given:
        return int(given)
    port = lib.free_port()
    sim = stack.enter_context(lib.Process("sim", [binary, "sim", "--listen", "%s:%d" % (lib.HOST, port), "--quirks", "vllm"],
                                          directory, {"HOME": directory, "XDG_CONFIG_HOME": directory, "XDG_DATA_HOME": directory}))
    sim.wait_for(lambda: lib.listening(port), 60)
    return port


def report(gateway, through):
    print("%-34s %10s %10s %10s %7s" % ("scenario", "ttft_ms", "client", "e2e_ms", "tokens"))
    for (sdk, scenario), seen in through.items():
        record, _ = gateway.record(seen["run"], 1)
        figure = lambda v, width: ("%*.2f" % (width, v)) if isinstance(v, float) else "%*s" % (width, "-" if v is None else v)
        print("%-34s %s %s %s %s" % (sdk + " " + scenario, figure(record.get("ttft_ms"), 10),
                                     figure(seen.get("ttft_ms"), 10), figure(record.get("e2e_ms"), 10),
                                     figure(record.get("output_tokens"), 7)))


if __name__ == "__main__":
    sys.exit(main())
