"""Reads what a llama.cpp server says of a call in its own answer."""
import json
import re


def events(body):
    """The JSON events of a stream, each with the offset of its end; a plain JSON body is one event."""
    if body.lstrip()[:1] == b"{":
        return [(len(body), json.loads(body))]
    found, at = [], 0
    for block in re.split(rb"(?<=\n\n)", body):
        at += len(block)
        for line in block.split(b"\n"):
            if line.startswith(b"data:") and line[5:].strip()[:1] == b"{":
                found.append((at, json.loads(line[5:])))
    return found


def has_output(event):
    """Whether an event of this server carries text of the model."""
    if "choices" in event:
        return any(c.get("text") or (c.get("delta") or {}).get("content") or (c.get("delta") or {}).get("reasoning_content")
                   for c in event["choices"])
    kind = event.get("type", "")
    if kind == "content_block_delta":
        return bool(event["delta"].get("text") or event["delta"].get("thinking"))
    return bool(event.get("delta") if kind.endswith(".delta") else "type" not in event and event.get("content"))


class Told:
    """What the server itself says of a call in its answer; None is what it does not say."""

    def __init__(self, answer):
        self.input = self.output = self.prefill_ms = self.decode_ms = self.finish = self.ttft_ms = None
        self.cached, self.content_events = None, 0
        usage_came = False  # it counts; timings, which may come with every event, stand in for it
        for end, event in events(answer.body):
            if has_output(event):
                self.content_events += 1
                if self.ttft_ms is None:
                    self.ttft_ms = answer.read_at(end)
            inner = event.get("message") or event.get("response") or event
            usage = (inner if isinstance(inner, dict) else event).get("usage") or {}
            apart = usage.get("cache_read_input_tokens") or 0  # not in the input that stands beside it
            details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
            read = usage.get("prompt_tokens", usage.get("input_tokens"))
            if read is not None:
                self.input, self.cached, usage_came = read + apart, apart or details.get("cached_tokens", 0), True
            self.output = usage.get("completion_tokens", usage.get("output_tokens", self.output))
            timings = event.get("timings") or (inner.get("timings") if isinstance(inner, dict) else None) or {}
            if timings:
                self.prefill_ms, self.decode_ms = timings["prompt_ms"], timings["predicted_ms"]
                if not usage_came:
                    self.input, self.cached = timings["prompt_n"] + timings["cache_n"], timings["cache_n"]
                    self.output = timings["predicted_n"]
            for choice in event.get("choices") or []:
                self.finish = choice.get("finish_reason") or self.finish
