#!/usr/bin/env python3
"""Holds what weir rules writes against the programs that read it: promtool, amtool, a real Prometheus, a real Alertmanager.

usage: check.py BINARY DRILL PROMETHEUS PROMTOOL ALERTMANAGER AMTOOL

DRILL is the Go program of this folder. The rules are checked, tested with the examples of the SRE workbook, and run in a
Prometheus beside the gateway's own alerts (unit.py, drill.py). Alertmanager is told all alerts at once and says which
are silent. Every expression of the dashboard is asked.
"""
import datetime
import json
import os
import re
import subprocess
import sys
import time
import urllib.request

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import drill  # noqa: E402
import lib  # noqa: E402
import unit  # noqa: E402

CALLS = 12


def ran(arguments, **more):
    return subprocess.run(arguments, capture_output=True, text=True, timeout=1200, **more)


def problem(done):
    return "status %d: %s" % (done.returncode, (done.stdout + done.stderr)[-800:]) if done.returncode else None


class Rules:
    """What weir rules writes, into files of a directory."""

    def __init__(self, binary, program, directory):
        self.binary, self.program, self.directory = binary, program, directory

    def write(self, name, *arguments):
        path = os.path.join(self.directory, name)
        done = ran([self.binary, "rules", "--out", path, *arguments])
        if done.returncode:
            raise RuntimeError("weir rules %s: %s" % (" ".join(arguments), problem(done)))
        return path

    def of(self, config, *arguments):
        """The path of the rules of one of the drill program's configurations."""
        path = os.path.join(self.directory, config + ".json")
        with open(path, "w") as f:
            f.write(subprocess.run([self.program, "config", config], check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout)
        return self.write(config + ".yml", "--prometheus", "--from", path, *arguments)


def live(checks, binary, directory):
    """A gateway with objectives: it tells of them, counts calls for them, and weir rules reads them from it."""
    port = lib.free_port()
    with lib.Process("sim", [binary, "sim", "--listen", "%s:%d" % (lib.HOST, port)], directory, {"HOME": directory}) as sim:
        sim.wait_for(lambda: lib.listening(port), 60)
        with lib.Gateway(binary, {"site": (port, "weir {\n\t\tclass interactive\n\t}")}, directory) as gateway:
            for n in range(CALLS):
                answer = lib.post(gateway.ports["site"], "/v1/chat/completions", {
                    "model": "m", "messages": [{"role": "user", "content": str(n)}], "max_tokens": 3, "stream": True})
                checks.add("call", [answer.error or lib.same("status", answer.status, 200)])
            admin = ["--admin", "http://%s:%d" % (lib.HOST, gateway.admin)]
            rules = Rules(binary, None, directory)
            paths = [rules.write("live." + form, "--" + form, *admin) for form in ("prometheus", "alertmanager", "grafana")]
            counted = lambda: sum(int(n) for n in re.findall(
                r'(?m)^weir_slo_calls_total\{class="interactive",.*objective="success",.*\} (\d+)$', gateway.get("/metrics").decode()))
            deadline = time.monotonic() + 10
            while counted() != CALLS and time.monotonic() < deadline:
                time.sleep(0.2)
            page = gateway.get("/metrics").decode()
            checks.add("live, metrics", [
                lib.same("calls counted", counted(), CALLS),
                None if 'weir_slo_target_ratio{class="interactive",objective="ttft_p99"} 0.99\n' in page else "no target of ttft_p99",
                None if re.search(r"(?m)^weir_slo_data_since_timestamp_seconds \d", page) else "no time since when there are counts"])
    return paths


def rules_are_right(checks, rules, promtool):
    """promtool reads the rules, and its unit tests hold."""
    for name in ("presets", "unit", "rolling", "monthly"):
        path = rules.of(name)
        done = ran([promtool, "check", "rules", path])
        checks.add("promtool check rules, " + name, [problem(done), "it warns: " + done.stderr[-400:] if done.stderr.strip() else None])
    for name, tests, interval in (("unit", unit.everything(), "1m"), ("unit", unit.tickets(), "10m"), ("unit", unit.outage(), "15s"),
                                  ("rolling", unit.budgets(), "1h"), ("monthly", unit.monthly(), "1m")):
        with open(os.path.join(rules.directory, name + ".yml")) as f:
            # Groups depend on each other; by themselves they come in the order of their names.
            order = re.findall(r"- name: (\S+)", f.read())
        path = os.path.join(rules.directory, "test.yml")
        with open(path, "w") as f:
            json.dump({"rule_files": [name + ".yml"], "evaluation_interval": interval, "group_eval_order": order, "tests": tests}, f)
        begun = time.monotonic()
        done = ran([promtool, "test", "rules", path])
        print("promtool test rules: %d tests evaluated each %s, status %d, %.0f s" % (len(tests), interval, done.returncode, time.monotonic() - begun))
        for test in tests:
            print("    " + test["name"])
        checks.add("promtool test rules, %s each %s" % (name, interval), [problem(done)])


def routes_are_right(checks, path, alertmanager, amtool, directory):
    """amtool reads the routes, and Alertmanager keeps silent what the gateway keeps silent itself."""
    done = ran([amtool, "check-config", path])
    checks.add("amtool check-config", [problem(done)])
    for labels, want in ((["service=weir", "severity=page"], "weir-pages"), (["service=weir", "severity=freeze"], "weir-tickets"), (["severity=page"], "nobody")):
        done = ran([amtool, "config", "routes", "test", "--config.file=" + path, *labels])
        checks.add("amtool routes, " + " ".join(labels), [problem(done), lib.same("receiver", done.stdout.strip(), want)])
    port = lib.free_port()
    with lib.Process("alertmanager", [alertmanager, "--config.file=" + path, "--storage.path=" + os.path.join(directory, "am"), "--cluster.listen-address=",
                                      "--web.listen-address=%s:%d" % (lib.HOST, port)], directory) as server:
        server.wait_for(lambda: lib.listening(port) and lib.get(port, "/-/ready")[0] == 200, 60)
        inhibitions(checks, port)


SEVERITIES = ["warning", "ticket", "freeze", "exhausted", "page"]
LOUDER = {"ticket": ["page"], "warning": ["page", "exhausted", "freeze"], "freeze": ["exhausted"]}


def inhibitions(checks, port):
    """Tells Alertmanager of two alerts at a time, each pair in a class of its own."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    alerts, want = [], {}
    for source in SEVERITIES:
        for target in SEVERITIES:
            for models in (("", ""), ("", "a"), ("a", ""), ("a", "a"), ("a", "b")):
                if source == target and models[0] == models[1]:
                    continue
                name = "%s-%s-%s-%s" % (source, models[0] or "all", target, models[1] or "all")
                for role, severity, model in (("source", source, models[0]), ("target", target, models[1])):
                    alerts.append({"startsAt": now, "labels": {"alertname": "Weir", "service": "weir", "class": name, "objective": "o",
                                                               "severity": severity, "role": role, **({"model": model} if model else {})}})
                want[name] = (models[0] == models[1] and source in LOUDER.get(target, []) or
                              not models[0] and models[1] != "" and SEVERITIES.index(source) >= SEVERITIES.index(target))
    request = urllib.request.Request("http://%s:%d/api/v2/alerts" % (lib.HOST, port), json.dumps(alerts).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        checks.add("alerts taken", [lib.same("status", answer.status, 200)])
    deadline = time.monotonic() + 20
    while True:
        states = {a["labels"]["class"]: a["status"]["state"] for a in json.loads(lib.get(port, "/api/v2/alerts")[1]) if a["labels"]["role"] == "target"}
        wrong = ["%s is %s" % (name, states.get(name)) for name, silent in want.items() if states.get(name) != ("suppressed" if silent else "active")]
        if not wrong or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    print("Alertmanager: of %d pairs of alerts %d keep the second silent" % (len(want), sum(want.values())))
    checks.add("inhibitions", wrong[:5])


def dashboard_is_right(checks, path, server):
    """Prometheus understands every expression of the dashboard; those of objectives have an answer."""
    with open(path) as f:
        board = json.load(f)
    asked, answered, wrong = 0, set(), []
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            expr = target["expr"]
            for name, value in (("$__rate_interval", "1m"), ("$__range", "1m"), ("$class", ".*"), ("$model", ".*"), ("$objective", ".*")):
                expr = expr.replace(name, value)
            status, answer = server.ask("query", query=expr)
            asked += 1
            if status != 200:
                wrong.append("%s: %s: %s" % (panel["title"], expr, answer.get("error")))
            elif answer["data"]["result"]:
                answered.add(panel["title"])
    print("dashboard: %d expressions asked; with an answer: %s" % (asked, ", ".join(sorted(answered))))
    checks.add("dashboard", wrong[:5] + ["only %d expressions" % asked if asked < 40 else None])
    missing = {"Objectives", "Error budget left", "Burn rate over 1h and 5m", "Burn rate over 6h and 30m", "Burn rate over 3d and 6h",
               "Calls that await their first token", "Time to first token"} - answered
    checks.add("dashboard, answers", ["none of %s" % ", ".join(sorted(missing)) if missing else None])


def main():
    lib.exit_on_signals()
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    binary, program, prometheus, promtool, alertmanager, amtool = (os.path.abspath(a) for a in sys.argv[1:])
    checks = lib.Checks()
    with lib.temporary_directory() as directory:
        rules = Rules(binary, program, directory)
        written, routes, board = live(checks, binary, directory)
        done = ran([promtool, "check", "rules", written])
        checks.add("promtool check rules, live", [problem(done)])
        rules_are_right(checks, rules, promtool)
        routes_are_right(checks, routes, alertmanager, amtool, directory)
        drill.run(checks, program, prometheus, rules.of("drill", "--scale", str(drill.SCALE)), directory,
                  lambda server: dashboard_is_right(checks, board, server))
    return checks.close()


if __name__ == "__main__":
    sys.exit(main())
