"""The drill: a real Prometheus with every window scaled 1:300 fires the alerts of the gateway's own rules, at the same time.

The program beside this file makes the calls of a day in minutes. It judges them with the real tracker, raises alerts as
the gateway does, and shows the same counts to Prometheus, which scrapes and evaluates five times a second: once in a
minute of the drill's time.
"""
import json
import os
import subprocess
import sys
import time
from urllib.parse import urlencode

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib  # noqa: E402

SCALE = 300
EVERY = 0.2  # seconds between scrapes, and between evaluations: a minute of the drill

# How far the two may be apart, in minutes of the drill. Prometheus sees a call after up to one scrape and one
# evaluation, the slow groups after two more (tickets) or four (budgets); its windows end at the last scrape and not at a
# whole minute, and a window of five minutes has five scrapes. An outage is looked for in half a minute by the gateway, and
# here in the shortest window that rules have, a second, which is five minutes.
APART = {"WeirSLOPage": 6, "WeirSLOTicket": 8}
BUDGET_APART = 10


class Prometheus(lib.Process):
    """A server with these rules and one target."""

    def __init__(self, program, rules, target, directory):
        self.port, data = lib.free_port(), os.path.join(directory, "prometheus")
        os.mkdir(data)
        config = os.path.join(data, "prometheus.yml")
        interval = "%dms" % (EVERY * 1000)
        with open(config, "w") as f:
            json.dump({"global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
                       "rule_files": [rules], "scrape_configs": [{
                           "job_name": "weir", "static_configs": [{"targets": ["%s:%d" % (lib.HOST, target)]}],
                           "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": "weir_slo_.*", "action": "keep"}]}]}, f)
        super().__init__("prometheus", [program, "--config.file=" + config, "--storage.tsdb.path=" + os.path.join(data, "tsdb"),
                                        "--web.listen-address=%s:%d" % (lib.HOST, self.port)], data)

    def __enter__(self):
        try:
            return self.wait_for(lambda: lib.listening(self.port) and lib.get(self.port, "/-/ready")[0] == 200, 60)
        except BaseException:
            self.__exit__()
            raise

    def ask(self, path, **query):
        """Status and answer of the API."""
        status, body = lib.get(self.port, "/api/v1/" + path + "?" + urlencode(query), seconds=30)
        return status, json.loads(body)

    def intervals(self, query, start, end):
        """For each series of a query: its labels, and from when to when it was there."""
        found = []
        # At most 11,000 points are answered at once.
        status, answer = self.ask("query_range", query=query, start=start, end=end, step=EVERY)
        if status != 200:
            raise RuntimeError("Prometheus answered %d: %s" % (status, answer))
        for series in answer["data"]["result"]:
            spans, last = [], None
            for at, _ in series["values"]:
                if last is None or at - last > 1.5 * EVERY:
                    spans.append([at, at])
                spans[-1][1] = last = at
            found.append((series["metric"], spans))
        return found


class Play:
    """The program's run."""

    def __init__(self, program, port, directory):
        self.path = os.path.join(directory, "drill.jsonl")
        with open(self.path, "wb") as out:
            self.child = subprocess.Popen([program, "drill", "%s:%d" % (lib.HOST, port), str(SCALE)], stdin=subprocess.PIPE, stdout=out)

    def lines(self):
        with open(self.path) as f:
            return [json.loads(line) for line in f.read().split("\n")[:-1]]

    def wait(self, name, seconds):
        """The first line with a field of this name."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for line in self.lines():
                if name in line:
                    return line
            if self.child.poll() is not None:
                raise RuntimeError("the drill ended with status %s" % self.child.returncode)
            time.sleep(0.2)
        raise RuntimeError("the drill did not tell of its %s within %d s" % (name, seconds))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def intervals(self, end):
        """For each alert from when to when it stood, in minutes of the drill."""
        found = {}
        for line in self.lines():
            if "begins" in line:
                found.setdefault(line["begins"], []).append([line["at"] / 60, end / 60])
            elif "ends" in line:
                found[line["ends"]][-1][1] = line["at"] / 60
        return found


def compare(checks, own, theirs, end):
    """own and theirs have the intervals of each alert."""
    for name in sorted(set(own) | set(theirs)):
        alert = name.split(" ")[0]
        apart = APART.get(alert, BUDGET_APART)
        mine, other = own.get(name, []), theirs.get(name, [])
        say = lambda spans: " ".join("%.1f–%.1f" % tuple(s) for s in spans) or "never"
        print("%-48s gateway %s, Prometheus %s" % (name, say(mine), say(other)))
        problems = [lib.same("how often", len(other), len(mine))]
        for a, b in zip(mine, other):
            problems.append(lib.near("begins", b[0], a[0], apart))
            # How a budget's alert ends is the gateway's own: it waits for the budget to be clearly below.
            if alert in APART and a[1] < end / 60 - apart:
                problems.append(lib.near("ends", b[1], a[1], apart))
        checks.add("drill, " + name, problems)


def run(checks, program, prometheus, rules, directory, then):
    """Plays the drill; then is called with the server before it ends."""
    port = lib.free_port()
    # The server is there first, so that it sees the first call.
    with Prometheus(prometheus, rules, port, directory) as server, Play(program, port, directory) as play:
        start = play.wait("start", 30)["start"]
        end = play.wait("end", 900)
        time.sleep(5 * EVERY)
        own = play.intervals(end["end"])
        theirs = {}
        for labels, spans in server.intervals('ALERTS{alertstate="firing"}', start, start + end["end"] / SCALE):
            name = "%s %s %s" % (labels["alertname"], labels.get("objective", ""), labels.get("model", ""))
            theirs[name] = [[(t - start) * SCALE / 60 for t in span] for span in spans]
        # The server was there before the gateway: it said so, and stopped when the gateway came.
        down = theirs.pop("WeirDown  ", [])
        checks.add("drill, WeirDown", ["not before the gateway came: %r" % down if len(down) != 1 or down[0][1] > 60 else None])
        print("drill: %d calls in %.1f h of its time, at most %.2f s behind" % (end["calls"], end["end"] / 3600, end["behind"]))
        checks.add("drill, in time", ["%.2f s behind: the machine is too slow for it" % end["behind"] if end["behind"] > 2 * EVERY else None])
        compare(checks, own, theirs, end["end"])
        kinds = {name.split(" ")[0] for name in own}
        checks.add("drill, every kind of alert", [lib.same("kinds", sorted(kinds), sorted(
            ["WeirSLOPage", "WeirSLOTicket", "WeirErrorBudgetWarning", "WeirErrorBudgetFreeze", "WeirErrorBudgetExhausted"]))])
        then(server)
