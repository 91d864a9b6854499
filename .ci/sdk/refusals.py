"""Holds what the SDKs do with the gateway's own refusals against what they were told, and against the records.

The calls are the language's own (SIDE=refusals), each with a key of its own, with the SDK's default retries unless a
scenario is about the error alone. They print a JSON line for each scenario: sdk, scenario, run, attempts (of the last
call: status, the headers that say when to retry and how limits stand), text, input and output tokens, and error (type,
status, code, message). What was told is what the SDK got; how long it waited is the gateway's own clock.
"""
import concurrent.futures
import datetime
import json
import math
import os
import subprocess
import time

import lib

# Requests of these scenarios are refused for 3 s at most, and those of the queue for 1 s, which is more than the half
# second after which the SDKs try again when they are told nothing.
PER_MINUTE = 20
LONGEST_MS = 60_000 / PER_MINUTE
QUEUE_MS = 1000

# Limits of a key by its scenario. own_json has its limit from the file of keys, whose burst is the limit itself.
RULES = {
    "rate_json": "requests_per_minute %d burst 1" % PER_MINUTE,
    "rate_stream": "requests_per_minute %d burst 1" % PER_MINUTE,
    "rate_raised": "requests_per_minute %d burst 1" % PER_MINUTE,
    "tokens_stream": "tokens_per_minute 600 burst 80",
    "too_large": "tokens_per_minute 600",
}
FLAGS = {"own_json": ["--rpm", str(PER_MINUTE)], "quota": ["--budget-tokens", "1"], "model": ["--model", "model-a"]}
SDKS = ("openai", "anthropic")
KEYS = sorted({*RULES, *FLAGS, "queue", "holder"})

# Scenarios that are refused once and then pass: the status of the refusal and the record's refused_by.
RETRIED = {
    "rate_json": (429, "key requests_per_minute"),
    "rate_stream": (429, "key requests_per_minute"),
    "own_json": (429, "key requests_per_minute"),
    "tokens_stream": (429, "key tokens_per_minute"),
    "queue_json": (503, "queue full"),
    "queue_stream": (503, "queue full"),
}
# Scenarios that end in an error: its status, refused_by (None: no record, the path is no inference call's), whether
# trying again is of use, the SDK's own classes for it, the code by OpenAI, the type by Anthropic, and words of its
# message. The Go SDKs have one class, which is judged by its status.
FINAL = {
    "rate_raised": (429, "key requests_per_minute", True, ["RateLimitError"], "rate_limit_exceeded", "rate_limit_error",
                    "limit %d, used 1, requested 1; try again in " % PER_MINUTE),
    "queue_raised": (503, "queue full", True, ["InternalServerError", "ServiceUnavailableError"], "overloaded", "overloaded_error",
                     "at its capacity"),
    "too_large": (429, "key tokens_per_minute", False, ["RateLimitError"], "rate_limit_exceeded", "rate_limit_error",
                  "too large for the limit of tokens per minute"),
    "quota": (429, "budget", False, ["RateLimitError"], "insufficient_quota", "rate_limit_error", "has spent its budget"),
    "unknown_key": (401, "key", False, ["AuthenticationError"], "invalid_api_key", "authentication_error", "is not known here"),
    "model": (403, "model", False, ["PermissionDeniedError"], "model_not_allowed", "permission_error",
              'may not use the model "model-b"'),
    "path": (403, None, False, ["PermissionDeniedError"], "path_not_allowed", "permission_error", "allow_paths"),
}


def site(pool, lines):
    return "\n\t".join(["weir {", "\tpool " + pool, "\trequire_key", *("\t" + line for line in lines), "}"])


def sites(engine):
    """One site whose keys are limited, and one that takes one call at a time and lets none wait."""
    limits = []
    for sdk in SDKS:
        for scenario, rule in RULES.items():
            limits += ["limit key %s-%s {" % (sdk, scenario), "\t" + rule, "}"]
    return {"limits": (engine, site("limits", limits)),
            "queue": (engine, site("queue", ["queue {", "\tcalls 1", "\tmax_waiting 0", "}"]))}


def make_keys(binary, directory, checks, language):
    """Makes all keys at once, as people would; gives them by alias."""
    file = os.path.join(directory, "keys.json")

    def make(alias):
        done = subprocess.run([binary, "keys", "add", alias, "--file", file, *FLAGS.get(alias.split("-", 1)[1], [])],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        return done.stdout.strip(), done.stderr.strip(), done.returncode

    aliases = ["%s-%s" % (sdk, name) for sdk in SDKS for name in KEYS]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        made = dict(zip(aliases, pool.map(make, aliases)))
    with open(file) as f:
        text = f.read()
    checks.add(language + ": keys made", [
        *("%s: status %d: %s" % (alias, status, err) for alias, (_, err, status) in made.items() if status),
        lib.same("different keys", len({key for key, _, _ in made.values() if key}), len(aliases)),
        lib.same("aliases in the file", sum('"%s"' % alias in text for alias in aliases), len(aliases)),
        "a key itself is in the file" if any(key and key in text for key, _, _ in made.values()) else None,
    ])
    return file, {alias: key for alias, (key, _, _) in made.items()}


def calls(command, gateway, keys):
    """Runs the calls; gives the lines by (sdk, scenario), and what went wrong."""
    url = lambda name: "http://%s:%d" % (lib.HOST, gateway.ports[name])
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("OPENAI_", "ANTHROPIC_")) and not name.upper().endswith("_PROXY")}
    environment.update(SIDE="refusals", BASE_URL=url("limits"), QUEUE_URL=url("queue"), ERROR_URL="", KEYS=json.dumps(keys))
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return {}, ["refused calls not done after 300 s"]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    want = {(sdk, scenario) for sdk in SDKS for scenario in [*RETRIED, *FINAL]}
    problems = ["status %d: %s" % (done.returncode, done.stderr[-800:]) if done.returncode else None,
                lib.same("scenarios", sorted((l["sdk"], l["scenario"]) for l in lines), sorted(want))]
    return {(l["sdk"], l["scenario"]): l for l in lines}, problems


def instant_ms(record):
    """When the gateway received a call, in ms."""
    text = record["time"].rstrip("Z")
    whole, _, fraction = text.partition(".")
    at = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc).timestamp()
    return at * 1000 + float("0." + (fraction or "0")) * 1000


def header_problems(seen, refusal, status, again):
    """The headers that SDKs read of a refusal, and those that tell how the limits stand."""
    seconds, ms = refusal["retry_after"], refusal["retry_after_ms"]
    problems = [lib.same("status", refusal["status"], status)]
    if not again:
        return problems + [lib.same("x-should-retry", refusal["should_retry"], "false"), lib.same("Retry-After", seconds, None),
                           lib.same("Retry-After-Ms", ms, None)]
    if seconds is None or ms is None:
        return problems + ["Retry-After=%r, Retry-After-Ms=%r" % (seconds, ms)]
    problems += [lib.same("Retry-After", seconds, str(math.ceil(int(ms) / 1000))), lib.same("x-should-retry", refusal["should_retry"], None)]
    if status == 503:
        problems.append(lib.same("Retry-After-Ms", ms, str(QUEUE_MS)))
    elif "tokens" not in seen["scenario"]:
        if not 0 < int(ms) <= LONGEST_MS:
            problems.append("Retry-After-Ms=%s, and a request comes free every %d ms" % (ms, LONGEST_MS))
        problems += [lib.same("limit of requests", refusal["limit"], str(PER_MINUTE)), lib.same("remaining requests", refusal["remaining"], "0")]
    return problems


def refused_problems(record, status, by):
    return [lib.same("outcome", record.get("outcome"), "refused"), lib.same("status", record.get("status"), status),
            lib.same("refused_by", record.get("refused_by"), by), lib.same("attempts", record.get("attempts"), 0),
            lib.same("client_retries", record.get("client_retries"), None),
            *(lib.same(f, record.get(f), None) for f in ("input_tokens", "output_tokens", "upstream", "ttft_ms"))]


def retried_problems(seen, records):
    """A call that was refused once, waited as told, and passed; and how long it waited beyond."""
    status, by = RETRIED[seen["scenario"]]
    attempts = seen["attempts"]
    problems = ["failed: " + seen["failure"] if "failure" in seen else None, lib.same("error", seen.get("error"), None),
                lib.same("statuses that the SDK met", [a["status"] for a in attempts], [status, 200]),
                "no text" if not seen["text"] else None,
                lib.same("records", [r.get("outcome") for r in records], ["refused", "completed"])]
    if any(problems):
        return problems, None
    first, passed = records
    problems = header_problems(seen, attempts[0], status, True) + refused_problems(first, status, by)
    problems += [lib.same("client_retries of the second", passed.get("client_retries"), 1),
                 lib.same("attempts of the second", passed.get("attempts"), 1), lib.same("key", passed.get("key"), seen["key"]),
                 lib.same("stream", passed.get("stream"), seen["scenario"].endswith("stream")),
                 lib.same("input_tokens", passed.get("input_tokens"), seen["input"]),
                 lib.same("output_tokens", passed.get("output_tokens"), seen["output"])]
    waited, told = instant_ms(passed) - instant_ms(first), float(attempts[0]["retry_after_ms"] or 0)
    if waited < told:
        problems.append("came back after %.3f ms, and was told %g" % (waited, told))
    return problems, (told, waited)


def final_problems(language, seen, records):
    """A call whose error the SDK raised: at once where trying again is of no use, or not asked for."""
    status, by, again, classes, code, kind, words = FINAL[seen["scenario"]]
    error = seen.get("error")
    problems = ["failed: " + seen["failure"] if "failure" in seen else None, "no error" if not error else None,
                lib.same("requests that the SDK sent", len(seen["attempts"]), 1),
                lib.same("records", len(records), 0 if by is None else 1)]
    if any(problems):
        return problems
    got_class, got_status, got_code, message = error
    # Who asks for a path that no dialect knows is answered in OpenAI's form.
    want_code = code if seen["sdk"] == "openai" else kind
    problems += [lib.same("error's status", got_status, status), lib.same("error's code", got_code, want_code),
                 None if words in (message or "") else "message %r does not say %r" % (message, words)]
    if language != "go" and got_class not in classes:
        problems.append("%s instead of %s" % (got_class, " or ".join(classes)))
    problems += header_problems(seen, seen["attempts"][0], status, again)
    for record in records:
        problems += refused_problems(record, status, by)
        named = record.get("key") == seen["key"]
        problems.append("key=%r" % record.get("key") if named != (seen["scenario"] != "unknown_key") else None)
    return problems


def check(checks, binary, language, command, engine):
    """Adds the checks of one language; engine is the port of an upstream."""
    with lib.temporary_directory() as directory:
        file, keys = make_keys(binary, directory, checks, language)
        with lib.Gateway(binary, sites(engine), directory, ["weir {", "\tkeys " + file, "}"]) as gateway:
            lines, problems = calls(command, gateway, keys)
            checks.add(language + ": calls to be refused", problems)
            waits = {}
            for key, seen in lines.items():
                name = "%s %s %s, refused" % (language, *key)
                records = settled(gateway, seen)
                if seen["scenario"] in RETRIED:
                    problems, waits[key] = retried_problems(seen, records)
                    checks.add(name + " and passed", problems)
                else:
                    checks.add(name, final_problems(language, seen, records))
    print("%-34s %12s %12s %9s" % ("refused, then passed", "told_ms", "waited_ms", "beyond"))
    for (sdk, scenario), wait in waits.items():
        if wait:
            print("%-34s %12.0f %12.3f %9.3f" % (sdk + " " + scenario, wait[0], wait[1], wait[1] - wait[0]))


def settled(gateway, seen):
    """The records of a scenario's last call, oldest first, once there are as many as the SDK made requests."""
    want = 0 if seen["scenario"] == "path" else len(seen["attempts"])
    deadline = time.monotonic() + 10
    while True:
        found = gateway.calls(run=seen["run"], limit=10)
        if len(found) >= want or time.monotonic() > deadline:
            return sorted(found, key=instant_ms)
        time.sleep(0.05)
