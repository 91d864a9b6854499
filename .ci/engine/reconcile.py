"""Holds the ledger against a real llama.cpp server's own counters: 500 calls of several keys, to the last token.

Three parts, each compared by `weir usage reconcile` from a snapshot before it: 300 calls that end by themselves, many
with a prefix that the server's cache holds, beside some that it or a limit refuses; 140 of which most are broken off by
the client after some tokens of a stream; 60 of which most are broken off before an answer. Then one goes around the
gateway, which reconcile must find.

What reconcile says is computed here once more, from what the clients were told and the server's metrics alone. A call
that broke off is known too, as far as it can be: the length of its prompt from an equal one that ended, and its output to
lie between the events that came and max_tokens.
"""
import concurrent.futures
import http.client
import json
import os
import random
import re
import socket
import sqlite3
import subprocess
import time

import lib
from told import Told, events, has_output

WHOLE, BROKEN, UNANSWERED = 300, 140, 60  # calls in the parts
AT_ONCE = 4  # on two slots, so that calls also wait in the server
ALIASES = ["alpha", "beta", "gamma", "running", "narrow"]
LONG = 400  # tokens of calls that are broken off, more than any server writes before that
NARROW = 5  # requests per minute of the key that meets a limit
NARROW_CALLS, TOO_LONG = 12, 3  # calls beside those of the first part, most of which or all of which are refused
COUNTERS = {"prompt": "prompt_tokens_total", "cached": "prompt_tokens_cached_total", "generated": "tokens_predicted_total"}

RIVERS = ["Rhine", "Danube", "Elbe", "Loire", "Ebro", "Tagus"]
SHARED = "You answer in one short sentence about the rivers of Europe, their sources, their mouths and the towns on them. " * 3


def chat(prompt):
    return {"messages": [{"role": "user", "content": prompt}]}


# The APIs: path, what asks for a prompt, the field that bounds the output, and more that the request needs.
APIS = {
    "chat": ("/v1/chat/completions", chat, "max_tokens", {}),
    "chat usage": ("/v1/chat/completions", chat, "max_tokens", {"stream_options": {"include_usage": True}}),
    "completions": ("/v1/completions", lambda p: {"prompt": p}, "max_tokens", {}),
    "native": ("/completion", lambda p: {"prompt": p}, "n_predict", {}),
    "messages": ("/v1/messages", chat, "max_tokens", {}),
    "responses": ("/v1/responses", lambda p: {"input": p}, "max_output_tokens", {}),
}
PROMPTS = [(SHARED if n % 2 else "") + "Where does the %s end?" % river for n, river in enumerate(RIVERS)]


class Call:
    """One call: what is asked for, and what its client then knows."""

    def __init__(self, alias, api, prompt, stream, most, cache=True, broken=None, running=False):
        self.alias, self.api, self.prompt, self.stream, self.most, self.broken = alias, api, prompt, stream, most, broken
        self.path, body, bound, more = APIS[api]
        # Every call writes all that it may, so that breaking it off finds it at work.
        self.request = {"model": "gemma-%d" % (len(alias) % 2), **body(prompt), bound: most, "stream": stream, "temperature": 0,
                        "seed": 7, "ignore_eos": True, "cache_prompt": cache, **(more if stream else {})}
        if running:
            self.request["timings_per_token"] = True
        self.status, self.told, self.seen, self.error = 0, None, 0, None

    def make(self, port, key, run):
        headers = {"Authorization": "Bearer " + key, "X-Weir-Run": run}
        if self.broken is None:
            answer = lib.post(port, self.path, self.request, headers, timeout=300)
            self.status, self.error = answer.status, answer.error
            if answer.status == 200 and not answer.error:
                self.told = Told(answer)
        elif self.stream:
            self.break_off(port, headers)
        else:
            self.leave(port, headers)
        return self

    def break_off(self, port, headers):
        """Reads a stream until as many events with output have come as are asked for, and goes."""
        c = http.client.HTTPConnection(lib.HOST, port, timeout=300)
        try:
            c.request("POST", self.path, json.dumps(self.request), {"Content-Type": "application/json", **headers})
            connection = c.sock
            answer = c.getresponse()
            self.status, body = answer.status, b""
            while self.seen < self.broken:
                data = answer.read1(1 << 16)
                if not data:
                    raise OSError("the stream ended after %d events" % self.seen)
                body += data
                whole = body[:body.rfind(b"\n\n") + 2]
                self.seen = sum(has_output(event) for _, event in events(whole))
            connection.shutdown(socket.SHUT_RDWR)
            answer.close()
        except (OSError, http.client.HTTPException) as e:
            self.error = repr(e)
        finally:
            c.close()

    def leave(self, port, headers):
        """Sends a request and goes before its answer, after as many seconds as are asked for."""
        c = http.client.HTTPConnection(lib.HOST, port, timeout=300)
        try:
            c.request("POST", self.path, json.dumps(self.request), {"Content-Type": "application/json", **headers})
            time.sleep(self.broken)
            c.sock.shutdown(socket.SHUT_RDWR)
        except OSError as e:
            self.error = repr(e)
        finally:
            c.close()


def whole_calls():
    """Each API with each prompt, streamed or not, with the server's cache or without."""
    kinds = [(api, prompt, stream) for api in APIS for prompt in PROMPTS for stream in (True, False)]
    made = [Call(ALIASES[n % 4], *kinds[n % len(kinds)], most=4 + n % 7, cache=n % 5 > 0, running=n % 4 == 3)
            for n in range(WHOLE)]
    made += [Call("narrow", "chat", PROMPTS[0], False, 4) for _ in range(NARROW_CALLS)]
    return made + [Call("alpha", "completions", "a river " * 3000, n > 0, 4) for n in range(TOO_LONG)]


def broken_calls(rng):
    """Streams, five of seven of which are broken off; those of one key carry running figures."""
    apis = [api for api in APIS if api != "responses"]
    return [Call(ALIASES[n % 4], apis[n % len(apis)], rng.choice(PROMPTS), True, LONG if n % 7 < 5 else 6,
                 broken=1 + n % 6 if n % 7 < 5 else None, running=n % 4 == 3) for n in range(BROKEN)]


def unanswered_calls(rng):
    """Calls that are not streamed, two of three of which are left within 0.4 s."""
    apis = list(APIS)
    return [Call(ALIASES[n % 4], apis[n % len(apis)], rng.choice(PROMPTS), False, LONG if n % 3 < 2 else 6,
                 broken=rng.uniform(0, 0.4) if n % 3 < 2 else None) for n in range(UNANSWERED)]


def metrics(port):
    """The server's own figures by their names."""
    c = http.client.HTTPConnection(lib.HOST, port, timeout=30)
    try:
        c.request("GET", "/metrics")
        text = c.getresponse().read().decode()
    finally:
        c.close()
    return {name: float(value) for name, value in re.findall(r"(?m)^llamacpp:(\w+) (\S+)$", text)}


def counters(port):
    """The server's counts of tokens, once it has nothing to do any more."""
    deadline, idle = time.monotonic() + 120, 0
    while idle < 3:
        m = metrics(port)
        idle = idle + 1 if m["requests_processing"] == m["requests_deferred"] == 0 else 0
        if time.monotonic() > deadline:
            raise RuntimeError("the server is still busy after 120 s: %s" % m)
        time.sleep(0.1)
    if max(m[name] for name in COUNTERS.values()) >= 1e6:
        raise RuntimeError("the server's counters are rounded from a million on; take a fresh one: %s" % m)
    return {kind: int(m[name]) for kind, name in COUNTERS.items()}


class Books:
    """The gateway, its keys and its ledger, and the commands that read it."""

    def __init__(self, binary, engine, directory):
        self.binary, self.engine, self.directory, self.made = binary, engine, directory, 0
        self.db = os.path.join(directory, "usage.db")
        self.keys = {}
        for alias in ALIASES:
            more = ["--rpm", str(NARROW)] if alias == "narrow" else []
            done = self.weir("keys", "add", alias, "--file", "keys.json", *more)
            if done.returncode:
                raise RuntimeError("weir keys add: " + done.stderr)
            self.keys[alias] = done.stdout.strip()
        self.gateway = lib.Gateway(binary, {"engine": (engine, "weir {\n\t\trequire_key\n\t}")}, directory,
                                   ["weir {", "\tkeys keys.json", "\tledger sqlite usage.db", "}"])

    def weir(self, *arguments):
        return subprocess.run([self.binary, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                              cwd=self.directory)

    def make(self, calls, run):
        """Makes calls, a few at once, and waits until the ledger has them all; gives what went wrong."""
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda c: c.make(self.gateway.ports["engine"], self.keys[c.alias], run), calls))
        print("%s: %d calls in %.0f s" % (run, len(calls), time.monotonic() - begun), flush=True)
        self.made += len(calls)
        deadline, known = time.monotonic() + 60, -1
        while known != self.made and time.monotonic() < deadline:
            time.sleep(0.5)
            known = self.usage("--by", "key")["total"]["calls"]
        return [lib.same("calls in the ledger", known, self.made)]

    def usage(self, *arguments):
        done = self.weir("usage", "--db", self.db, "--since", "all", "--json", *arguments)
        if done.returncode:
            raise RuntimeError("weir usage: " + done.stderr)
        return json.loads(done.stdout)

    def reconcile(self, *arguments):
        """Exit status and JSON of a comparison; without --from there is only text. An error before it is raised."""
        done = self.weir("usage", "reconcile", "--engine", "http://%s:%d" % (lib.HOST, self.engine), "--db", self.db, *arguments)
        if not done.stdout:
            raise RuntimeError("weir usage reconcile: " + done.stderr)
        return done.returncode, json.loads(done.stdout) if "--json" in arguments else done.stdout, done.stderr.strip()


def grown(before, after):
    return {kind: after[kind] - before[kind] for kind in COUNTERS}


def sides(found):
    """The problems of a comparison that does not add up within itself."""
    problems = []
    for name in ("prompt", "generated"):
        s = found[name]
        problems += [lib.same(name + " difference", s["difference"], s["engine"] + s["cached"] - s["reported"]),
                     lib.same(name + " parts", s["estimated"] + s["missed_by_estimates"] + s["broken_off"] + s["rounding"]
                              + s["unexplained"], s["difference"]),
                     lib.same(name + " rounding", s["rounding"], 0)]
    return problems


def compared(books, checks, name, part, engine, reported, exact):
    """Compares a part of the calls from its snapshot, and holds the answer against what is known here."""
    status, found, said = books.reconcile("--json", "--from", "%d.json" % part, "--save", "%d.json" % (part + 1))
    p, g = found["prompt"], found["generated"]
    print("%s: engine %d + %d cached prompt, %d generated; reported %d and %d; estimated %d and %d; unexplained %d and %d"
          % (name, p["engine"], p["cached"], g["engine"], p["reported"], g["reported"], p["estimated"], g["estimated"],
             p["unexplained"], g["unexplained"]), flush=True)
    checks.add(name + ", reconcile's figures", sides(found) + [
        lib.same("engine", found["engine"], "llamacpp"), lib.same("prompt", p["engine"], engine["prompt"]),
        lib.same("cached", p["cached"], engine["cached"]), lib.same("generated", g["engine"], engine["generated"]),
        lib.same("reported prompt", p["reported"], reported[0]), lib.same("reported generated", g["reported"], reported[1])])
    problems = [lib.same("exit status", status, 0), lib.same("explained", found["explained"], True),
                lib.same("unexplained prompt tokens", p["unexplained"], 0),
                lib.same("unexplained generated tokens", g["unexplained"], 0)]
    if exact:
        problems += [lib.same("exact", found["exact"], True), lib.same("prompt difference", p["difference"], 0),
                     lib.same("generated difference", g["difference"], 0)]
    checks.add(name + ", explained", [*problems, said if any(problems) else None])


def lengths(calls):
    """The length of each prompt by path, as the calls that ended were told; and prompts with more than one."""
    told = {}
    for c in calls:
        if c.told:
            told.setdefault((c.path, c.prompt), set()).add(c.told.input)
    return {k: min(v) for k, v in told.items()}, ["%r is %s long" % (k, sorted(v)) for k, v in told.items() if len(v) != 1]


def ended(calls):
    """Input, output and cached tokens of the calls that ended, as their clients were told."""
    told = [c.told for c in calls if c.told]
    return [sum(getattr(t, what) for t in told) for what in ("input", "output", "cached")]


# What streams say while they run: the native one counts in every event, that of messages tells the input at its start,
# and the others have figures where timings are asked for with each token.
def runs(c):
    return c.stream and (c.api in ("native", "messages") or "timings_per_token" in c.request)


def running(books, calls, run, length):
    """The running figures of the calls that broke off, by key, as their records have them, and what is wrong with them.

    The gateway may have seen more of a stream than its client, so that only the record has what it saw last.
    """
    broken = [c for c in calls if c.broken is not None and runs(c)]
    records = [r for r in books.gateway.calls(run=run, limit=1000) if r.get("usage_source") == "partial"]
    problems, by_key = [], {}
    for alias in ALIASES:
        mine, had = [c for c in broken if c.alias == alias], [r for r in records if r.get("key") == alias]
        by_key[alias] = [sum(r.get(f, 0) for r in had) for f in ("input_tokens", "output_tokens", "cached_tokens")]
        problems += [lib.same("running figures of " + alias, len(had), len(mine)),
                     lib.same("their input", by_key[alias][0], sum(length[c.path, c.prompt] for c in mine)),
                     *("record %s: %r output tokens" % (r["id"], r["output_tokens"]) for r in had if r.get("output_tokens", 0) > LONG)]
    return by_key, problems


def check(checks, binary, engine):
    """Adds the checks; engine is the port of a server with --metrics."""
    rng = random.Random(7)
    with lib.temporary_directory() as directory:
        books = Books(os.path.abspath(binary), engine, directory)
        with books.gateway:
            whole, partial = parts(checks, books, rng)
            by_key(checks, books, whole, partial)
            around(checks, books)
        stored(checks, books, whole, partial)


def parts(checks, books, rng):
    """Makes all calls, part by part; gives them, and the running figures of those that broke off, by key."""
    opening = [Call("alpha", "chat", PROMPTS[0], False, 4)]  # the ledger's file begins with the first call
    problems = books.make(opening, "reconcile-opening")
    before = counters(books.engine)
    status, _, said = books.reconcile("--save", "0.json")
    checks.add("snapshot", problems + [lib.same("exit status", status, 0), said if status else None])

    first = whole_calls()
    problems = books.make(first, "reconcile-whole")
    refused = [c for c in first if c.status == 429]
    longer = [c for c in first if c.status == 400]
    length, several = lengths(first)
    told = ended(first)
    after = counters(books.engine)
    engine = grown(before, after)
    checks.add("whole calls", problems + several + [
        *(c.error for c in first), lib.same("ended", sum(c.told is not None for c in first), WHOLE + NARROW_CALLS - len(refused)),
        lib.same("refused by the server", len(longer), TOO_LONG),
        None if 0 < len(refused) <= NARROW_CALLS - NARROW else "%d of %d calls met the limit" % (len(refused), NARROW_CALLS),
        lib.same("keys that met it", {c.alias for c in refused}, {"narrow"}),
        "nothing came from the cache" if not told[2] else None,
        lib.same("cached, as the server counts and as it told", engine["cached"], told[2]),
        lib.same("input, as the server counts and as it told", engine["prompt"] + engine["cached"], told[0]),
        lib.same("output, as the server counts and as it told", engine["generated"], told[1])])
    compared(books, checks, "whole calls", 0, engine, told, exact=True)

    second = broken_calls(rng)
    before, problems = after, books.make(second, "reconcile-broken")
    broken = [c for c in second if c.broken is not None]
    told, (partial, wrong) = ended(second), running(books, second, "reconcile-broken", length)
    after = counters(books.engine)
    engine = grown(before, after)
    checks.add("streams that broke off", problems + wrong + [
        *(c.error for c in second), lib.same("ended", sum(c.told is not None for c in second), BROKEN - len(broken)),
        # Each had its first token, so that the server had read all of its prompt.
        lib.same("input, as the server counts and as prompts are long", engine["prompt"] + engine["cached"],
                 told[0] + sum(length[c.path, c.prompt] for c in broken)),
        within("output", engine["generated"], told[1] + sum(c.seen for c in broken), told[1] + sum(c.most for c in broken))])
    compared(books, checks, "streams that broke off", 1, engine, plus(told, *partial.values()), exact=False)

    third = unanswered_calls(rng)
    before, problems = after, books.make(third, "reconcile-unanswered")
    left = [c for c in third if c.broken is not None]
    told = ended(third)
    engine = grown(before, counters(books.engine))
    checks.add("calls that were left", problems + [
        *(c.error for c in third), lib.same("ended", sum(c.told is not None for c in third), UNANSWERED - len(left)),
        within("input", engine["prompt"] + engine["cached"], told[0], told[0] + sum(length[c.path, c.prompt] for c in left)),
        within("output", engine["generated"], told[1], told[1] + sum(c.most for c in left))])
    compared(books, checks, "calls that were left", 2, engine, told, exact=False)
    return opening + first + second + third, partial


def plus(*rows):
    return [sum(column) for column in zip(*rows)]


def within(name, got, least, most):
    return None if least <= got <= most else "%s=%d is not within %d and %d" % (name, got, least, most)


def known_by_key(calls, partial):
    """What the clients know, by key: calls, completed, refused, input, output and cached tokens."""
    rows = {}
    for alias in ALIASES:
        mine = [c for c in calls if c.alias == alias]
        rows[alias] = [len(mine), sum(c.told is not None for c in mine), sum(c.status == 429 for c in mine),
                       *plus(ended(mine), partial[alias])]
    return rows


def reported(answer):
    return {l["key"]: [l["calls"], l["completed"], l["refused"],
                       *(l["reported"][f] for f in ("input_tokens", "output_tokens", "cached_tokens"))] for l in answer["lines"]}


def by_key(checks, books, calls, partial):
    """What clients were told adds up to what weir usage says, by the command and by the admin endpoint."""
    want, answer = known_by_key(calls, partial), books.usage("--by", "key")
    print("by key: " + json.dumps(want))
    checks.add("usage by key", [lib.same(alias, reported(answer).get(alias), row) for alias, row in want.items()]
               + [lib.same("keys", sorted(reported(answer)), sorted(want))])
    broken = {c.alias for c in calls if c.broken is not None}
    estimated = {l["key"] for l in answer["lines"] if l["estimated"]["input_tokens"]}
    checks.add("estimates by key", [lib.same("keys with estimates", sorted(estimated), sorted(broken))])
    c = http.client.HTTPConnection(lib.HOST, books.gateway.admin, timeout=30)
    try:
        c.request("GET", "/weir/usage?by=key&since=all")
        asked = json.loads(c.getresponse().read())
    finally:
        c.close()
    checks.add("usage by key, asked of the gateway", [lib.same("lines", asked.get("lines"), answer["lines"])])


def around(checks, books):
    """A call that does not come through the gateway is found, to the token."""
    call = Call("alpha", "chat", PROMPTS[1], False, 5)
    call.make(books.engine, "none", "around")
    counters(books.engine)
    status, found, said = books.reconcile("--json", "--from", "3.json")
    checks.add("a call around the gateway", [
        call.error, lib.same("exit status", status, 1), lib.same("explained", found["explained"], False),
        lib.same("prompt", found["prompt"]["unexplained"], call.told.input if call.told else None),
        lib.same("generated", found["generated"]["unexplained"], call.told.output if call.told else None),
        None if "unexplained" in said else "says %r" % said])
    status, _, _ = books.reconcile("--json", "--from", "3.json", "--tolerance", "1k")
    checks.add("a call around the gateway, tolerated", [lib.same("exit status", status, 0)])


def stored(checks, books, calls, partial):
    """The same sums by plain SQL, which is public, once the gateway has ended."""
    with sqlite3.connect("file:%s?mode=ro" % books.db, uri=True) as db:
        rows = {row[0]: list(row[1:]) for row in db.execute(
            "SELECT key, count(*), sum(outcome = 'completed'), sum(outcome = 'refused'), coalesce(sum(input_tokens), 0),"
            " coalesce(sum(output_tokens), 0), coalesce(sum(cached_tokens), 0) FROM calls GROUP BY key")}
        twice = db.execute("SELECT count(*) - count(DISTINCT id) FROM calls").fetchone()[0]
    checks.add("usage by key, in the ledger's file", [lib.same("rows", rows, known_by_key(calls, partial)),
                                                      lib.same("calls recorded twice", twice, 0)])
