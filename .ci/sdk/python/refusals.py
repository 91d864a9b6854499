"""Makes the calls that the gateway refuses with the official Python SDKs and tells, one JSON line a scenario, what they met.

Environment: BASE_URL (keys are limited), QUEUE_URL (one call at a time), KEYS (by alias). The lines are judged by
../refusals.py, which explains the fields.
"""
import json
import os

import anthropic
import openai

TURNS = [{"role": "user", "content": "Name three rivers."}]
MOST = 60  # calls until one is refused


class Caller:
    """One scenario: a client whose answers are watched, and what was seen of its last call."""

    def __init__(self, sdk, scenario, key, retries=True, queue=False):
        self.sdk, self.attempts, self.on_refusal, self.number = sdk, [], None, 0
        alias = "%s-%s" % (sdk, key)
        self.fields = {"sdk": sdk, "scenario": scenario, "key": alias, "attempts": self.attempts}
        module = openai if sdk == "openai" else anthropic
        url = os.environ["QUEUE_URL" if queue else "BASE_URL"]
        options = {} if retries else {"max_retries": 0}
        kind = module.OpenAI if sdk == "openai" else module.Anthropic
        self.client = kind(base_url=url + "/v1" if sdk == "openai" else url, timeout=60,
                           api_key=json.loads(os.environ["KEYS"]).get(alias, "sk-nobody-has-this-key-0123456789"),
                           http_client=module.DefaultHttpxClient(event_hooks={"response": [self.answered]}), **options)
        self.error = module.APIStatusError

    def answered(self, response):
        h = response.headers
        kind = "x-ratelimit-%s-requests" if self.sdk == "openai" else "anthropic-ratelimit-requests-%s"
        self.attempts.append({"status": response.status_code, "retry_after": h.get("retry-after"),
                              "retry_after_ms": h.get("retry-after-ms"), "should_retry": h.get("x-should-retry"),
                              "limit": h.get(kind % "limit"), "remaining": h.get(kind % "remaining")})
        if response.status_code >= 400 and self.on_refusal:
            self.on_refusal()

    def watch(self):
        """Begins a call: what was seen of the one before is forgotten."""
        del self.attempts[:]
        run = "python-%s-%s-%d" % (self.sdk, self.fields["scenario"], self.number)
        self.fields.update(run=run, text="", input=None, output=None, error=None)
        self.number += 1

    def failed(self, e):
        said = (e.code, e.message) if self.sdk == "openai" else (e.type, e.api_message)
        self.fields["error"] = [type(e).__name__, e.status_code, *said]

    def call(self, stream=False, model="model-a", max_tokens=24):
        """One call; its error, text and usage are kept."""
        self.watch()
        one = openai_call if self.sdk == "openai" else anthropic_call
        try:
            one(self.client, self.fields, stream, {"model": model, "messages": TURNS, "max_tokens": max_tokens,
                                                   "extra_headers": {"X-Weir-Run": self.fields["run"]}})
        except self.error as e:
            self.failed(e)

    def until_refused(self, **options):
        for _ in range(MOST):
            self.call(**options)
            if self.attempts[0]["status"] != 200:
                return

    def hold(self):
        """Takes the queue's only place, and returns what gives it back."""
        request = {"model": "model-a", "messages": TURNS, "max_tokens": 20_000, "stream": True}
        create = self.client.chat.completions.create if self.sdk == "openai" else self.client.messages.create
        stream = create(**request)
        next(iter(stream))
        return stream.close


def openai_call(client, seen, stream, request):
    if not stream:
        answer = client.chat.completions.create(**request)
        seen["text"] = answer.choices[0].message.content
        seen["input"], seen["output"] = answer.usage.prompt_tokens, answer.usage.completion_tokens
        return
    for chunk in client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}):
        for choice in chunk.choices:
            seen["text"] += choice.delta.content or ""
        if chunk.usage:
            seen["input"], seen["output"] = chunk.usage.prompt_tokens, chunk.usage.completion_tokens


def anthropic_call(client, seen, stream, request):
    if not stream:
        message = client.messages.create(**request)
    else:
        with client.messages.stream(**request) as events:
            message = events.get_final_message()
    u = message.usage
    seen["text"] = "".join(block.text for block in message.content if block.type == "text")
    seen["input"] = u.input_tokens + (u.cache_read_input_tokens or 0) + (u.cache_creation_input_tokens or 0)
    seen["output"] = u.output_tokens


def list_models(c):
    c.watch()
    try:
        c.client.models.list(extra_headers={"X-Weir-Run": c.fields["run"]})
    except c.error as e:
        c.failed(e)


def held(stream):
    """Calls while the only place is taken, which comes free when the call is refused."""
    def go(c):
        c.on_refusal = Caller(c.sdk, "holder", "holder", queue=True).hold()
        c.call(stream=stream)
    return go


# What is done in each scenario. All have a key of their own name, but for those of the queue.
SCENARIOS = {
    "rate_json": lambda c: c.until_refused(),
    "rate_stream": lambda c: c.until_refused(stream=True),
    "rate_raised": lambda c: c.until_refused(),
    "own_json": lambda c: c.until_refused(max_tokens=1),
    "tokens_stream": lambda c: c.until_refused(stream=True),
    "too_large": lambda c: c.call(max_tokens=5000),
    "quota": lambda c: c.until_refused(),
    "unknown_key": lambda c: c.call(stream=True),
    "model": lambda c: c.call(model="model-b"),
    "path": list_models,
    "queue_json": held(stream=False),
    "queue_stream": held(stream=True),
    "queue_raised": held(stream=False),
}


def main():
    for sdk in ("openai", "anthropic"):
        for scenario, go in SCENARIOS.items():
            queue = scenario.startswith("queue")
            c = Caller(sdk, scenario, "queue" if queue or scenario == "path" else scenario, queue=queue,
                       retries=not scenario.endswith("_raised"))
            try:
                go(c)
            except Exception as e:  # told, and judged by ../refusals.py
                c.fields["failure"] = repr(e)
            c.client.close()
            print(json.dumps(c.fields), flush=True)
