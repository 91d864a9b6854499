"""What the black-box checks share: child processes, a gateway, an HTTP client that notes when bytes came, and the count.

Everything listens on loopback and waits no longer than it says. Only the standard library is used.
"""
import datetime
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

HOST = "127.0.0.1"

# The gateway stamps a token after the write that carries it, so that a client on the same machine may read it a
# moment before the stamp. More than this is not scheduling any more but a wrong order.
ORDER_SLACK_MS = 5.0

PHASE_SUM_SLACK_MS = 0.001


class Checks:
    """Counts checks; each is a name and a list of what is wrong with it."""

    def __init__(self):
        self.passed = self.failed = 0

    def add(self, name, problems):
        problems = [p for p in problems if p]
        if problems:
            self.failed += 1
            print("FAIL %s: %s" % (name, "; ".join(problems)), flush=True)
        else:
            self.passed += 1
        return not problems

    def close(self):
        """Prints the count that .ci/run adds up, and returns the exit status."""
        print("%d passed, %d failed" % (self.passed, self.failed), flush=True)
        return 1 if self.failed or not self.passed else 0


def exit_on_signals():
    """Turns SIGTERM and SIGHUP into SystemExit, so that 'finally' ends the children."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, frame: sys.exit(128 + n))


given_ports = set()


def free_port():
    """A port on which nobody listens, another one each time, and none of those that the system gives to whoever
    asks for any: those may be somebody else's before this one is used."""
    for _ in range(1000):
        port = random.randrange(10_000, 30_000)
        with socket.socket() as s:
            try:
                s.bind((HOST, port))
            except OSError:
                continue
        if port not in given_ports:
            given_ports.add(port)
            return port
    raise OSError("every port that was tried is taken")


class Process:
    """A child of ours whose output goes to a file, ended when the block is left."""

    def __init__(self, name, arguments, directory, environment=None):
        self.name, self.path = name, os.path.join(directory, name + ".log")
        with open(self.path, "wb") as log:
            self.child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory,
                                          env=dict(os.environ, **(environment or {})))

    def wait_for(self, ready, seconds):
        """Waits until ready() is true; a child that ends first, or the time, is an error."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if ready():
                return self
            if self.child.poll() is not None:
                raise RuntimeError("%s ended with status %s: %s" % (self.name, self.child.returncode, self.tail()))
            time.sleep(0.05)
        raise RuntimeError("%s was not ready after %d s: %s" % (self.name, seconds, self.tail()))

    def tail(self):
        with open(self.path, errors="replace") as log:
            return log.read()[-1500:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


def listening(port):
    try:
        socket.create_connection((HOST, port), 0.5).close()
        return True
    except OSError:
        return False


def get(port, path, headers=None, seconds=10):
    """Status and body of a GET."""
    c = http.client.HTTPConnection(HOST, port, timeout=seconds)
    try:
        c.request("GET", path, headers=headers or {})
        answer = c.getresponse()
        return answer.status, answer.read()
    finally:
        c.close()


class Gateway(Process):
    """The built binary with one site for each upstream.

    sites maps a name to (upstream port, lines of the site before reverse_proxy): "weir" for a measured site, "" for
    bare Caddy beside it. After the start, ports maps the names to the sites' own ports. options are lines of the
    global block, such as those of a block "weir". environment is added to that of the process.
    """

    def __init__(self, binary, sites, directory, options=(), environment=None):
        self.admin = free_port()
        self.ports = {name: free_port() for name in sites}
        lines = ["{", "\tadmin %s:%d" % (HOST, self.admin), "\tauto_https off", "\tpersist_config off",
                 *("\t" + line for line in options), "}"]
        for name, (upstream, directives) in sites.items():
            lines += ["http://%s:%d {" % (HOST, self.ports[name]), "\t" + directives,
                      "\treverse_proxy %s:%d" % (HOST, upstream), "}"]
        config = os.path.join(directory, "Caddyfile")
        with open(config, "w") as f:
            f.write("\n".join(lines) + "\n")
        super().__init__("gateway", [binary, "run", "--config", config, "--adapter", "caddyfile"], directory,
                         {"XDG_DATA_HOME": directory, "XDG_CONFIG_HOME": directory, "HOME": directory,
                          **(environment or {})})

    def __enter__(self):
        try:
            self.wait_for(lambda: all(listening(p) for p in [self.admin, *self.ports.values()]), 60)
        except BaseException:
            self.__exit__()
            raise
        return self

    def get(self, path):
        """The body of an answer of the admin endpoint."""
        status, body = get(self.admin, path)
        if status != 200:
            raise RuntimeError("admin endpoint answered %d: %s" % (status, body[:200]))
        return body

    def calls(self, **query):
        """The records that the admin endpoint has, newest first."""
        found = json.loads(self.get("/weir/calls?" + "&".join("%s=%s" % kv for kv in query.items())))
        return found["calls"] if isinstance(found, dict) else found

    def record(self, run, seconds=10):
        """The record of the only call of a run, and what is wrong with getting it."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.calls(run=run, limit=10)
            if found or time.monotonic() > deadline:
                break
        if len(found) != 1:
            return {}, ["%d records instead of 1" % len(found)]
        return found[0], []


def temporary_directory():
    return tempfile.TemporaryDirectory(prefix="weir-ci-")


class Answer:
    """A response whose body remembers when its bytes were read. Times are milliseconds since the call began."""

    def __init__(self, status, headers, reads, ended_ms, error):
        self.status, self.headers, self.reads, self.ended_ms, self.error = status, headers, reads, ended_ms, error
        self.body = b"".join(data for _, data in reads)

    def read_at(self, offset):
        """When the read came that carries the byte before offset."""
        seen = 0
        for at, data in self.reads:
            seen += len(data)
            if seen >= offset:
                return at
        return None


def post(port, path, payload, headers=None, connection=None, timeout=120):
    """Sends one call and reads its answer as it comes. payload is bytes, or an object sent as JSON.

    A connection passed in stays open; what goes wrong is told in the answer's error, never raised.
    """
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    c = connection or http.client.HTTPConnection(HOST, port, timeout=timeout)
    status, got, reads, error = 0, [], [], None
    start = time.monotonic()
    now = lambda: (time.monotonic() - start) * 1000
    try:
        c.request("POST", path, body, {"Content-Type": "application/json", **(headers or {})})
        answer = c.getresponse()
        status, got = answer.status, answer.getheaders()
        while True:
            data = answer.read1(1 << 16)
            if not data:
                break
            reads.append((now(), data))
    except (OSError, http.client.HTTPException) as e:
        error = repr(e)
        c.close()
    ended = now()
    if connection is None:
        c.close()
    return Answer(status, got, reads, ended, error)


def near(name, got, want, slack):
    """The problem of a number that is not within slack of the wanted one, else None."""
    if got is None or want is None or abs(got - want) > slack:
        return "%s=%r want %r" % (name, got, want)
    return None


def seconds(text):
    """The seconds since 1970 of a time as records have it (RFC 3339, up to nanoseconds)."""
    day, rest = text.split("T")
    clock, fraction = rest.rstrip("Z"), "0"
    for sign in "+-":
        if sign in clock:
            raise ValueError("not in UTC: " + text)
    if "." in clock:
        clock, fraction = clock.split(".")
    whole = datetime.datetime.fromisoformat(day + "T" + clock + "+00:00").timestamp()
    return whole + int(fraction) / 10 ** len(fraction)


def same(name, got, want):
    return None if got == want else "%s=%r want %r" % (name, got, want)


def phase_problems(record):
    """Phases partition the call: where its end is known, they add up to it."""
    phases, e2e = record.get("phases") or {}, record.get("e2e_ms")
    problems = ["phase %s is negative" % name for name, ms in phases.items() if ms < 0]
    if e2e is not None:
        problems.append(near("sum of phases", sum(phases.values()), e2e, PHASE_SUM_SLACK_MS))
    missing = {name[:-len("_ms")] for name in phases} ^ set(record.get("phase_sources") or {})
    problems.append("phases and their sources differ: %s" % sorted(missing) if missing else None)
    return problems


def order_problems(record, observed_ttft_ms):
    """The instants of a streamed call in the only possible order, the client's own observation included."""
    ttft, e2e = record.get("ttft_ms"), record.get("e2e_ms")
    if ttft is None:
        return ["ttft_ms is absent"]
    problems = ["ttft_ms is not positive" if ttft <= 0 else None]
    if observed_ttft_ms is not None and ttft > observed_ttft_ms + ORDER_SLACK_MS:
        problems.append("ttft_ms=%.3f but the client had its first token at %.3f" % (ttft, observed_ttft_ms))
    for earlier, later in (("ttft_upstream_ms", "ttft_ms"), ("ttfb_ms", "ttft_ms"), ("ttft_ms", "ttft_visible_ms"),
                           ("ttft_ms", "e2e_ms")):
        a, b = record.get(earlier), record.get(later)
        if a is not None and b is not None and a > b:
            problems.append("%s=%.3f is after %s=%.3f" % (earlier, a, later, b))
    return problems
