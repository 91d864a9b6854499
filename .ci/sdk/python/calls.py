"""Makes every scenario with the official Python SDKs and tells, one JSON line each, what they saw.

Environment: BASE_URL, ERROR_URL, SIDE. The lines are compared by ../check.py, which explains the fields. SIDE=refusals
makes those of refusals.py instead.
"""
import json
import os
import time

import anthropic
import openai

import refusals

BASE, ERRORS, SIDE = os.environ["BASE_URL"], os.environ["ERROR_URL"], os.environ["SIDE"]
TURNS = [{"role": "user", "content": "Name three rivers."}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MODEL = "model-a"


class Seen:
    """What the SDK handed over in one call."""

    def __init__(self):
        self.fields = {"text": "", "reasoning": "", "tools": [], "input": None, "output": None, "finish": None}
        self.start = time.monotonic()

    def token(self):
        self.fields.setdefault("ttft_ms", (time.monotonic() - self.start) * 1000)

    def add(self, field, text):
        if text:
            self.token()
            self.fields[field] += text

    def tool(self, name, arguments):
        if name:
            self.fields["tools"].append([name, ""])
        if arguments:
            self.fields["tools"][-1][1] += arguments
        if name or arguments:
            self.token()

    def usage(self, read, written):
        self.fields["input"], self.fields["output"] = read, written

    def finish(self, reason):
        self.fields["finish"] = reason or self.fields["finish"]


def chat_stream(client, seen, usage=False, tools=False):
    options = {"max_tokens": 24}
    if usage:
        options["stream_options"] = {"include_usage": True}
    if tools:
        options["max_tokens"] = 400  # room for whole arguments
        options["tools"] = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
        options["tool_choice"] = "required"
    with client.chat.completions.create(model=MODEL, messages=TURNS, temperature=0, seed=7, stream=True,
                                        **options) as stream:
        for chunk in stream:
            for choice in chunk.choices:
                seen.add("reasoning", getattr(choice.delta, "reasoning", None)
                         or getattr(choice.delta, "reasoning_content", None))
                seen.add("text", choice.delta.content)
                for call in choice.delta.tool_calls or []:
                    seen.tool(call.function.name, call.function.arguments)
                seen.finish(choice.finish_reason)
            if chunk.usage:
                seen.usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)


def chat_json(client, seen):
    answer = client.chat.completions.create(model=MODEL, messages=TURNS, max_tokens=24, temperature=0, seed=7)
    seen.fields["text"] = answer.choices[0].message.content
    seen.finish(answer.choices[0].finish_reason)
    seen.usage(answer.usage.prompt_tokens, answer.usage.completion_tokens)


def completions_stream(client, seen):
    for chunk in client.completions.create(model=MODEL, prompt="Once upon", max_tokens=24, temperature=0, seed=7,
                                           stream=True, stream_options={"include_usage": True}):
        for choice in chunk.choices:
            seen.add("text", choice.text)
            seen.finish(choice.finish_reason)
        if chunk.usage:
            seen.usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)


def completions_json(client, seen):
    answer = client.completions.create(model=MODEL, prompt="Once upon", max_tokens=24, temperature=0, seed=7)
    seen.fields["text"] = answer.choices[0].text
    seen.finish(answer.choices[0].finish_reason)
    seen.usage(answer.usage.prompt_tokens, answer.usage.completion_tokens)


def responses_stream(client, seen):
    for event in client.responses.create(model=MODEL, input="Name three rivers.", max_output_tokens=24,
                                         temperature=0, stream=True):
        if event.type == "response.output_text.delta":
            seen.add("text", event.delta)
        elif event.type.startswith("response.reasoning") and event.type.endswith(".delta"):
            seen.add("reasoning", event.delta)
        elif event.type in ("response.completed", "response.incomplete"):
            seen.usage(event.response.usage.input_tokens, event.response.usage.output_tokens)


def embeddings(client, seen):
    answer = client.embeddings.create(model=MODEL, input=["a river", "a weir"])
    seen.fields["text"] = repr([len(answer.data), [round(x, 6) for x in answer.data[0].embedding[:4]]])
    seen.usage(answer.usage.prompt_tokens, None)


def openai_early_close(client, seen):
    stream = client.chat.completions.create(model=MODEL, messages=TURNS, max_tokens=2000, stream=True)
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            seen.token()
            break
    stream.close()


def openai_error(client, seen, status):
    try:
        client.chat.completions.create(model=MODEL, messages=TURNS, stream=True,
                                       extra_headers={"X-Answer-Status": str(status)})
    except openai.APIStatusError as e:
        seen.fields["error"] = [type(e).__name__, e.status_code, e.code]


def messages_stream(client, seen, tools=False):
    options = {"max_tokens": 24}
    if tools:
        options = {"max_tokens": 400, "tools": [{"name": "weather", "input_schema": PARAMETERS}], "tool_choice": {"type": "any"}}
    with client.messages.stream(model=MODEL, messages=TURNS, **options) as stream:
        for event in stream:
            if event.type == "content_block_start" and event.content_block.type == "tool_use":
                seen.tool(event.content_block.name, None)
            if event.type == "content_block_delta":
                seen.add("text", getattr(event.delta, "text", None))
                seen.add("reasoning", getattr(event.delta, "thinking", None))
                if event.delta.type == "input_json_delta":
                    seen.tool(None, event.delta.partial_json)
        messages_end(stream.get_final_message(), seen)


def messages_end(message, seen):
    u = message.usage
    seen.usage(u.input_tokens + (u.cache_read_input_tokens or 0) + (u.cache_creation_input_tokens or 0),
               u.output_tokens)
    seen.finish(message.stop_reason)


def messages_json(client, seen):
    message = client.messages.create(model=MODEL, messages=TURNS, max_tokens=24)
    seen.fields["text"] = "".join(block.text for block in message.content if block.type == "text")
    messages_end(message, seen)


def anthropic_early_close(client, seen):
    stream = client.messages.create(model=MODEL, messages=TURNS, max_tokens=2000, stream=True)
    for event in stream:
        if event.type == "content_block_delta":
            seen.token()
            break
    stream.close()


def anthropic_error(client, seen, status):
    try:
        client.messages.create(model=MODEL, messages=TURNS, max_tokens=24, stream=True,
                               extra_headers={"X-Answer-Status": str(status)})
    except anthropic.APIStatusError as e:
        seen.fields["error"] = [type(e).__name__, e.status_code, (e.body or {}).get("error", {}).get("type")]


def main():
    def client(kind, url, run):
        path = "/v1" if kind is openai.OpenAI else ""
        return kind(base_url=url + path, api_key="sk-check", max_retries=0, timeout=60,
                    default_headers={"X-Weir-Run": run})

    scenarios = [
        ("openai", "chat_stream", lambda c, s: chat_stream(c, s)),
        ("openai", "chat_stream_usage", lambda c, s: chat_stream(c, s, usage=True)),
        ("openai", "chat_stream_tools", lambda c, s: chat_stream(c, s, usage=True, tools=True)),
        ("openai", "chat_json", chat_json),
        ("openai", "completions_stream", completions_stream),
        ("openai", "completions_json", completions_json),
        ("openai", "responses_stream", responses_stream),
        ("openai", "embeddings", embeddings),
        ("openai", "early_close", openai_early_close),
        ("openai", "error_400", lambda c, s: openai_error(c, s, 400)),
        ("openai", "error_429", lambda c, s: openai_error(c, s, 429)),
        ("openai", "error_500", lambda c, s: openai_error(c, s, 500)),
        ("anthropic", "messages_stream", lambda c, s: messages_stream(c, s)),
        ("anthropic", "messages_stream_tools", lambda c, s: messages_stream(c, s, tools=True)),
        ("anthropic", "messages_json", messages_json),
        ("anthropic", "early_close", anthropic_early_close),
        ("anthropic", "error_400", lambda c, s: anthropic_error(c, s, 400)),
        ("anthropic", "error_529", lambda c, s: anthropic_error(c, s, 529)),
    ]
    for sdk, scenario, call in scenarios:
        run = "python-%s-%s-%s" % (sdk, scenario, SIDE)
        c = client(openai.OpenAI if sdk == "openai" else anthropic.Anthropic,
                   ERRORS if scenario.startswith("error") else BASE, run)
        seen = Seen()
        try:
            call(c, seen)
        except Exception as e:  # told, and judged by check.py
            seen.fields["failure"] = repr(e)
        c.close()
        print(json.dumps({"sdk": sdk, "scenario": scenario, "run": run, **seen.fields}), flush=True)


if __name__ == "__main__":
    if SIDE == "refusals":
        main = refusals.main
    main()
