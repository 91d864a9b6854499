// Makes the calls that the gateway refuses with the official Node SDKs and tells, one JSON line a scenario, what they met.
// Environment: BASE_URL (keys are limited), QUEUE_URL (one call at a time), KEYS (by alias). The lines are judged by
// ../refusals.py, which explains the fields.
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";

const { BASE_URL, QUEUE_URL, KEYS = "{}" } = process.env;
const messages = [{ role: "user", content: "Name three rivers." }];
const most = 60; // calls until one is refused

// Caller is one scenario: a client whose answers are watched, and what was seen of its last call.
class Caller {
  number = 0;
  onRefusal = undefined;
  constructor(sdk, scenario, key, { retries = true, queue = false } = {}) {
    const alias = `${sdk}-${key}`;
    this.sdk = sdk;
    this.fields = { sdk, scenario, key: alias, attempts: [] };
    const url = queue ? QUEUE_URL : BASE_URL;
    const options = {
      apiKey: JSON.parse(KEYS)[alias] ?? "sk-nobody-has-this-key-0123456789", timeout: 60_000,
      fetch: async (...request) => this.answered(await fetch(...request)), ...(!retries && { maxRetries: 0 }),
    };
    this.client = sdk === "openai" ? new OpenAI({ ...options, baseURL: url + "/v1" }) : new Anthropic({ ...options, baseURL: url });
  }

  answered(response) {
    const h = response.headers;
    const limit = (what) => h.get(this.sdk === "openai" ? `x-ratelimit-${what}-requests` : `anthropic-ratelimit-requests-${what}`);
    this.fields.attempts.push({
      status: response.status, retry_after: h.get("retry-after"), retry_after_ms: h.get("retry-after-ms"),
      should_retry: h.get("x-should-retry"), limit: limit("limit"), remaining: limit("remaining"),
    });
    if (response.status >= 400) this.onRefusal?.();
    return response;
  }

  // watched makes one call; its error is kept, and what was seen of the one before is forgotten.
  async watched(call) {
    const run = `node-${this.sdk}-${this.fields.scenario}-${this.number++}`;
    Object.assign(this.fields, { run, attempts: [], text: "", input: null, output: null, error: null });
    try {
      await call({ headers: { "X-Weir-Run": run } });
    } catch (e) {
      if (!(e instanceof (this.sdk === "openai" ? OpenAI : Anthropic).APIError)) throw e;
      const said = this.sdk === "openai" ? [e.code, e.message] : [e.type, e.apiMessage];
      this.fields.error = [e.constructor.name, e.status, ...said];
    }
  }

  call({ stream = false, model = "model-a", max_tokens = 24 } = {}) {
    const one = this.sdk === "openai" ? openaiCall : anthropicCall;
    return this.watched((options) => one(this.client, this.fields, stream, { model, messages, max_tokens }, options));
  }

  async untilRefused(options) {
    for (let i = 0; i < most; i++) {
      await this.call(options);
      if (this.fields.attempts[0].status !== 200) return;
    }
  }

  // hold takes the queue's only place, and returns what gives it back.
  async hold() {
    const request = { model: "model-a", messages, max_tokens: 20_000, stream: true };
    const stream = await (this.sdk === "openai" ? this.client.chat.completions : this.client.messages).create(request);
    await stream[Symbol.asyncIterator]().next();
    return () => stream.controller.abort();
  }
}

async function openaiCall(client, seen, stream, request, options) {
  if (!stream) {
    const { choices, usage } = await client.chat.completions.create(request, options);
    Object.assign(seen, { text: choices[0].message.content, input: usage.prompt_tokens, output: usage.completion_tokens });
    return;
  }
  const streamed = { ...request, stream: true, stream_options: { include_usage: true } };
  for await (const { choices, usage } of await client.chat.completions.create(streamed, options)) {
    for (const { delta } of choices) seen.text += delta.content ?? "";
    if (usage) Object.assign(seen, { input: usage.prompt_tokens, output: usage.completion_tokens });
  }
}

async function anthropicCall(client, seen, stream, request, options) {
  const { content, usage } = stream
    ? await client.messages.stream(request, options).finalMessage()
    : await client.messages.create(request, options);
  seen.text = content.filter((block) => block.type === "text").map((block) => block.text).join("");
  seen.input = usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0);
  seen.output = usage.output_tokens;
}

// held calls while the only place is taken, which comes free when the call is refused.
const held = (stream) => async (c) => {
  c.onRefusal = await new Caller(c.sdk, "holder", "holder", { queue: true }).hold();
  await c.call({ stream });
};

// What is done in each scenario. All have a key of their own name, but for those of the queue.
const scenarios = {
  rate_json: (c) => c.untilRefused(),
  rate_stream: (c) => c.untilRefused({ stream: true }),
  rate_raised: (c) => c.untilRefused(),
  own_json: (c) => c.untilRefused({ max_tokens: 1 }),
  tokens_stream: (c) => c.untilRefused({ stream: true }),
  too_large: (c) => c.call({ max_tokens: 5000 }),
  quota: (c) => c.untilRefused(),
  unknown_key: (c) => c.call({ stream: true }),
  model: (c) => c.call({ model: "model-b" }),
  path: (c) => c.watched((options) => c.client.models.list(c.sdk === "openai" ? options : {}, options)),
  queue_json: held(false),
  queue_stream: held(true),
  queue_raised: held(false),
};

export async function refusals() {
  for (const sdk of ["openai", "anthropic"]) {
    for (const [scenario, go] of Object.entries(scenarios)) {
      const queue = scenario.startsWith("queue");
      const c = new Caller(sdk, scenario, queue || scenario === "path" ? "queue" : scenario,
        { queue, retries: !scenario.endsWith("_raised") });
      try {
        await go(c);
      } catch (e) {
        c.fields.failure = `${e?.stack ?? e}`; // told, and judged by ../refusals.py
      }
      console.log(JSON.stringify(c.fields));
    }
  }
}
