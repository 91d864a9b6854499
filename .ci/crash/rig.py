"""What the crash checks stand on: a gateway with a ledger that can be killed, a relay that notes what reached the
upstream, a client that notes what it was told, and the ledger's tables as anybody may read them.
"""
import asyncio
import http.client
import json
import os
import re
import shutil
import sqlite3
import subprocess
import threading
import time

import lib

# Callers' keys: two that are never refused, and one whose second call at once is.
KEYS = ("one", "two", "tight")
LIMITS = """limit pool {
			tokens_per_minute 100M
			concurrency 1k
		}
		limit key {
			tokens_per_minute 50M
			requests_per_minute 1M
			concurrency 500
		}
		limit key tight {
			concurrency 1
		}"""

NOBODY = 65534  # a user whom file modes bind, where root runs the checks

FLUSH_S = 20  # far above what a replay of one round takes on a busy machine


def simulator(binary, directory):
    """A simulated engine, quick enough for many short calls: (its process, its port)."""
    port = lib.free_port()
    costs = ["--prefill", "2ms", "--prefill-token", "0s", "--decode", "1500us", "--decode-sequence", "0s"]
    listen = "%s:%d" % (lib.HOST, port)
    return lib.Process("sim", [binary, "sim", "--listen", listen, "--seed", "7", *costs], directory), port


def make_keys(binary, path):
    """Makes the file of keys, and returns the keys by alias."""
    def add(alias):
        command = [binary, "keys", "add", alias, "--file", path]
        done = subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.stdout.strip()

    return {alias: add(alias) for alias in KEYS}


class Gateway(lib.Process):
    """The built binary with one site, keys, limits and a ledger. It may be started again, on the same ports.

    database and spill are paths. As unprivileged the process runs as nobody, if this one is root.
    """

    def __init__(self, binary, directory, upstream, database, spill=None, options=(), unprivileged=False):
        self.binary, self.name, self.directory = binary, "gateway", directory
        self.database, self.spill = database, spill or database + ".spill"
        self.admin, self.port = lib.free_port(), lib.free_port()
        self.path = os.path.join(directory, "gateway.log")
        self.config = os.path.join(directory, "Caddyfile")
        keys = os.path.join(directory, "keys.json")
        self.keys = make_keys(binary, keys)
        self.user = NOBODY if unprivileged and os.geteuid() == 0 else None
        self.home = os.path.join(directory, "home")
        os.mkdir(self.home)
        if self.user is not None:
            self.binary = os.path.join(directory, "weir")
            shutil.copy(binary, self.binary)  # nobody need not reach the original
            os.chmod(directory, 0o755)
            for path in (keys, self.home):
                os.chown(path, self.user, self.user)
        with open(self.config, "w") as f:
            f.write("""{
	admin %s:%d
	auto_https off
	persist_config off
	weir {
		ledger sqlite %s {
			spill %s
			%s
		}
		keys %s
	}
}
http://%s:%d {
	weir {
		%s
	}
	reverse_proxy %s:%d
}
""" % (lib.HOST, self.admin, database, self.spill, "\n\t\t\t".join(options), keys,
       lib.HOST, self.port, LIMITS, lib.HOST, upstream))
        os.chmod(self.config, 0o644)
        self.child = None

    def start(self):
        """Starts the process and waits for nothing."""
        owner = {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}
        homes = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), self.home)
        with open(self.path, "wb") as log:
            self.child = subprocess.Popen([self.binary, "run", "--config", self.config, "--adapter", "caddyfile"],
                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home,
                                          env={**os.environ, **homes}, **owner)
        return self

    def ready(self):
        return self.wait_for(lambda: lib.listening(self.admin) and lib.listening(self.port), 60)

    def __enter__(self):
        try:
            return self.start().ready()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.child is not None:
            super().__exit__()

    def kill(self):
        """Ends the process as a crash does, and returns the moment."""
        at = time.monotonic()
        self.child.kill()
        self.child.wait()
        return at

    def get(self, path, timeout=10):
        """The status and the body of an admin page; (0, why) when there is no answer."""
        c = http.client.HTTPConnection(lib.HOST, self.admin, timeout=timeout)
        try:
            c.request("GET", path)
            answer = c.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as e:
            return 0, repr(e).encode()
        finally:
            c.close()

    def ledger(self):
        """The ledger's own state; {} when the gateway does not tell."""
        status, body = self.get("/weir/ledger")
        return json.loads(body) if status == 200 else {}

    def flushed(self, seconds=FLUSH_S):
        """Waits until the database has all, and returns the ledger's state, and what is wrong with it."""
        deadline, calm = time.monotonic() + seconds, 0
        while True:
            state = self.ledger()
            if state and not (state["replaying"] or state["pending"] or state["degraded"]):
                calm += 1  # twice, since an end may be on its way into the spill
                if calm == 2:
                    return state, []
            else:
                calm = 0
            if time.monotonic() > deadline:
                return state, ["the ledger is not at rest after %d s: %s" % (seconds, state or self.tail())]
            time.sleep(0.02)


class Relay:
    """Passes bytes on to the upstream, and counts by X-Request-Id the requests that come."""

    def __init__(self, upstream):
        self.upstream, self.port, self.seen = upstream, None, {}
        self.loop, self.stop = asyncio.new_event_loop(), None
        self.up = threading.Event()
        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(self.serve()), daemon=True)

    def __enter__(self):
        self.thread.start()
        if not self.up.wait(10):
            raise RuntimeError("the relay did not start")
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(10)

    async def serve(self):
        self.stop = asyncio.Event()
        server = await asyncio.start_server(self.connected, lib.HOST, 0, backlog=128)
        self.port = server.sockets[0].getsockname()[1]
        self.up.set()
        await self.stop.wait()
        server.close()

    async def connected(self, reader, writer):
        try:
            there, back = await asyncio.open_connection(lib.HOST, self.upstream)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.pump(reader, back, self.note), self.pump(there, writer, None))

    async def pump(self, reader, writer, note):
        kept = b""
        try:
            while data := await reader.read(1 << 16):
                if note:
                    kept = note(kept, data)
                writer.write(data)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    HEADER = re.compile(rb"\r\nx-request-id: ([^\r\n]+)\r\n", re.I)
    LONGEST = 200  # more than such a header is long

    def note(self, kept, data):
        """Counts the requests that end in data, of which kept is what came before."""
        text = kept + data
        for found in self.HEADER.finditer(text):
            if found.end() > len(kept):
                name = found.group(1).decode()
                self.seen[name] = self.seen.get(name, 0) + 1
        return text[-self.LONGEST:]


class Call:
    """One call as its client knows it."""

    def __init__(self, name, kind, alias):
        self.name, self.kind, self.alias = name, kind, alias
        self.status = None  # None: no answer began
        self.whole = False  # the answer came to its end, and reads as one
        self.tokens = None  # (input, output) as reported to the client
        self.ended = None   # when the client had the last byte, or left; on the clock of time.monotonic
        self.error = None


# kind → (path, fields of the request, headers). What the client does beside reading is in perform.
KINDS = {
    "chat": ("/v1/chat/completions", {}, {}),
    "chat stream": ("/v1/chat/completions", {"stream": True, "stream_options": {"include_usage": True}}, {}),
    "chat stream, no usage": ("/v1/chat/completions", {"stream": True}, {}),
    "messages": ("/v1/messages", {}, {}),
    "messages stream": ("/v1/messages", {"stream": True}, {}),
    "left before the answer": ("/v1/chat/completions", {}, {"X-Sim-Fault": "slow:20ms"}),
    "left in the stream": ("/v1/chat/completions", {"stream": True}, {"X-Sim-Fault": "slow:5ms"}),
    "upstream error": ("/v1/chat/completions", {}, {"X-Sim-Fault": "status:503"}),
    "upstream aborts": ("/v1/chat/completions", {"stream": True}, {"X-Sim-Fault": "abort:1"}),
}


def perform(port, call, key, tokens, timeout=30):
    """Makes a call that asks for so many tokens, and notes in it what happened. Nothing is raised."""
    path, fields, headers = KINDS[call.kind]
    turns = [{"role": "user", "content": "How wide? " * 8}]
    body = json.dumps({"model": "model-a", "max_tokens": tokens, "messages": turns, **fields})
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key, "X-Request-Id": call.name,
               **headers}
    c = http.client.HTTPConnection(lib.HOST, port, timeout=timeout)
    try:
        c.request("POST", path, body, headers)
        if call.kind == "left before the answer":
            time.sleep(0.01)
            return
        answer = c.getresponse()
        call.status, parts = answer.status, []
        while data := answer.read1(1 << 16):
            parts.append(data)
            if call.kind == "left in the stream" and len(parts) == 3:
                return
        call.ended = time.monotonic()
        read_answer(call, b"".join(parts), "stream" in fields)
    except (OSError, http.client.HTTPException, ValueError) as e:
        call.error = repr(e)
    finally:
        call.ended = call.ended or time.monotonic()
        c.close()


def read_answer(call, body, stream):
    """Reads what the answer says of itself; ValueError when it is cut."""
    if not stream or call.status != 200:
        usage = json.loads(body).get("usage")
        call.whole = True
    else:
        usage, last = {}, (b"data: [DONE]", b'data: {"type":"message_stop"}')
        call.whole = body.rstrip().endswith(last)
        if not call.whole:
            raise ValueError("the stream's last event is missing")
        for line in body.splitlines():
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                usage.update(event.get("usage") or (event.get("message") or {}).get("usage") or {})
    if not usage:
        return
    if "prompt_tokens" in usage:
        call.tokens = usage["prompt_tokens"], usage["completion_tokens"]
    else:  # Anthropic's input leaves out what a cache had
        parts = "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
        call.tokens = sum(usage.get(part) or 0 for part in parts), usage["output_tokens"]


ROW = ("id", "attempt", "request_id", "key", "outcome", "status", "error", "attempts", "ttfb_ms", "usage_source",
       "provenance", "input_tokens", "output_tokens", "estimated_input_tokens", "estimated_output_tokens")

# What usage_hours must hold: its key and its sums, from the rows and as they are there.
GROUP = ("time_ns / 3600000000000 * 3600",
         *("coalesce(%s, '')" % name for name in ("key", "model", "class", "upstream")), "provenance")
SUMS = ("count(*)", "sum(outcome = 'completed')", "sum(outcome = 'refused')",
        *("coalesce(sum(%s_tokens), 0)" % kind for kind in ("input", "output", "cached", "cache_write", "reasoning")),
        *("sum(iif(provenance = 'estimated', coalesce(estimated_%s_tokens, 0), 0))" % kind
          for kind in ("input", "output")))
HOURS = ("hour", "key", "model", "class", "upstream", "provenance", "calls", "completed", "refused", "input_tokens",
         "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "estimated_input_tokens",
         "estimated_output_tokens")


class Tables:
    """The ledger's database, read beside the gateway."""

    def __init__(self, path):
        self.db = sqlite3.connect("file:%s?mode=ro" % path, uri=True, timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.db.close()

    def ask(self, sql, *arguments):
        return self.db.execute(sql, arguments).fetchall()

    def rows(self, after=0):
        """The highest seq, and all rows beyond one, by request id."""
        found = {}
        for row in self.ask("SELECT %s FROM calls WHERE seq > ? ORDER BY seq" % ", ".join(ROW), after):
            row = dict(zip(ROW, row))
            found.setdefault(row["request_id"], []).append(row)
        return self.ask("SELECT coalesce(max(seq), 0) FROM calls")[0][0], found

    def problems(self):
        """Whatever must hold of the tables at any time, and does not."""
        problems = []
        for columns in ("id, attempt", "request_id"):
            twice = self.ask("SELECT %s FROM calls GROUP BY %s HAVING count(*) > 1 LIMIT 3" % (columns, columns))
            if twice:
                problems.append("rows with the same %s: %s" % (columns, twice))
        rows = set(self.ask("SELECT %s FROM calls GROUP BY 1, 2, 3, 4, 5, 6" % ", ".join((*GROUP, *SUMS))))
        hours = set(self.ask("SELECT %s FROM usage_hours" % ", ".join(HOURS)))
        if rows != hours:
            problems.append("hourly sums differ from the rows: %s of the rows, %s of the hours" % (
                sorted(rows - hours)[:3], sorted(hours - rows)[:3]))
        return problems

    def whole(self):
        """SQLite's own opinion of the file."""
        return lib.same("integrity_check", self.ask("PRAGMA integrity_check"), [("ok",)])
