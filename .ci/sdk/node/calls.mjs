// Makes every scenario with the official Node SDKs and tells, one JSON line each, what they saw.
// Environment: BASE_URL, ERROR_URL, SIDE. The lines are compared by ../check.py. SIDE=refusals makes the calls of
// refusals.mjs instead.
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { refusals } from "./refusals.mjs";

const { BASE_URL, ERROR_URL, SIDE } = process.env;
const model = "model-a";
const messages = [{ role: "user", content: "Name three rivers." }];
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

// Seen is what the SDK handed over in one call.
class Seen {
  fields = { text: "", reasoning: "", tools: [], input: null, output: null, finish: null };
  start = performance.now();
  token() {
    this.fields.ttft_ms ??= performance.now() - this.start;
  }
  add(field, text) {
    if (!text) return;
    this.token();
    this.fields[field] += text;
  }
  tool(name, args) {
    if (name) this.fields.tools.push([name, ""]);
    if (args) this.fields.tools.at(-1)[1] += args;
    if (name || args) this.token();
  }
  usage(input, output) {
    Object.assign(this.fields, { input, output });
  }
  finish(reason) {
    this.fields.finish = reason ?? this.fields.finish;
  }
}

async function chatStream(client, seen, { usage = false, tools = false } = {}) {
  const stream = await client.chat.completions.create({
    model, messages, max_tokens: tools ? 400 : 24, temperature: 0, seed: 7, stream: true,
    ...(usage && { stream_options: { include_usage: true } }),
    ...(tools && { tools: [{ type: "function", function: { name: "weather", parameters } }], tool_choice: "required" }),
  });
  for await (const chunk of stream) {
    for (const { delta, finish_reason } of chunk.choices) {
      seen.add("reasoning", delta.reasoning || delta.reasoning_content);
      seen.add("text", delta.content);
      for (const call of delta.tool_calls ?? []) seen.tool(call.function?.name, call.function?.arguments);
      seen.finish(finish_reason);
    }
    if (chunk.usage) seen.usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens);
  }
}

async function chatJSON(client, seen) {
  const answer = await client.chat.completions.create({ model, messages, max_tokens: 24, temperature: 0, seed: 7 });
  seen.fields.text = answer.choices[0].message.content;
  seen.finish(answer.choices[0].finish_reason);
  seen.usage(answer.usage.prompt_tokens, answer.usage.completion_tokens);
}

async function completionsStream(client, seen) {
  const stream = await client.completions.create({
    model, prompt: "Once upon", max_tokens: 24, temperature: 0, seed: 7, stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    for (const choice of chunk.choices) {
      seen.add("text", choice.text);
      seen.finish(choice.finish_reason);
    }
    if (chunk.usage) seen.usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens);
  }
}

async function completionsJSON(client, seen) {
  const answer = await client.completions.create({ model, prompt: "Once upon", max_tokens: 24, temperature: 0, seed: 7 });
  seen.fields.text = answer.choices[0].text;
  seen.finish(answer.choices[0].finish_reason);
  seen.usage(answer.usage.prompt_tokens, answer.usage.completion_tokens);
}

async function responsesStream(client, seen) {
  const stream = await client.responses.create({
    model, input: "Name three rivers.", max_output_tokens: 24, temperature: 0, stream: true,
  });
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") seen.add("text", event.delta);
    else if (event.type.startsWith("response.reasoning") && event.type.endsWith(".delta")) seen.add("reasoning", event.delta);
    else if (event.type === "response.completed" || event.type === "response.incomplete")
      seen.usage(event.response.usage.input_tokens, event.response.usage.output_tokens);
  }
}

async function embeddings(client, seen) {
  const answer = await client.embeddings.create({ model, input: ["a river", "a weir"] });
  seen.fields.text = JSON.stringify([answer.data.length, answer.data[0].embedding.slice(0, 4)]);
  seen.usage(answer.usage.prompt_tokens, null);
}

async function openaiEarlyClose(client, seen) {
  const stream = await client.chat.completions.create({ model, messages, max_tokens: 2000, stream: true });
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta.content) {
      seen.token();
      break;
    }
  }
  stream.controller.abort();
}

async function openaiError(client, seen, status) {
  try {
    await client.chat.completions.create({ model, messages, stream: true }, { headers: { "X-Answer-Status": `${status}` } });
  } catch (e) {
    if (!(e instanceof OpenAI.APIError)) throw e;
    seen.fields.error = [e.constructor.name, e.status, e.code];
  }
}

function messagesEnd({ usage, stop_reason }, seen) {
  seen.usage(usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0),
    usage.output_tokens);
  seen.finish(stop_reason);
}

async function messagesStream(client, seen, { tools = false } = {}) {
  const stream = client.messages.stream({
    model, messages, max_tokens: tools ? 400 : 24,
    ...(tools && { tools: [{ name: "weather", input_schema: parameters }], tool_choice: { type: "any" } }),
  });
  for await (const event of stream) {
    if (event.type === "content_block_start" && event.content_block.type === "tool_use")
      seen.tool(event.content_block.name);
    if (event.type === "content_block_delta") {
      seen.add("text", event.delta.text);
      seen.add("reasoning", event.delta.thinking);
      if (event.delta.type === "input_json_delta") seen.tool(undefined, event.delta.partial_json);
    }
  }
  messagesEnd(await stream.finalMessage(), seen);
}

async function messagesJSON(client, seen) {
  const message = await client.messages.create({ model, messages, max_tokens: 24 });
  seen.fields.text = message.content.filter((b) => b.type === "text").map((b) => b.text).join("");
  messagesEnd(message, seen);
}

async function anthropicEarlyClose(client, seen) {
  const stream = await client.messages.create({ model, messages, max_tokens: 2000, stream: true });
  for await (const event of stream) {
    if (event.type === "content_block_delta") {
      seen.token();
      break;
    }
  }
  stream.controller.abort();
}

async function anthropicError(client, seen, status) {
  try {
    await client.messages.create({ model, messages, max_tokens: 24, stream: true }, { headers: { "X-Answer-Status": `${status}` } });
  } catch (e) {
    if (!(e instanceof Anthropic.APIError)) throw e;
    seen.fields.error = [e.constructor.name, e.status, e.error?.error?.type];
  }
}

if (SIDE === "refusals") {
  await refusals();
  process.exit();
}

const scenarios = [
  ["openai", "chat_stream", chatStream],
  ["openai", "chat_stream_usage", (c, s) => chatStream(c, s, { usage: true })],
  ["openai", "chat_stream_tools", (c, s) => chatStream(c, s, { usage: true, tools: true })],
  ["openai", "chat_json", chatJSON],
  ["openai", "completions_stream", completionsStream],
  ["openai", "completions_json", completionsJSON],
  ["openai", "responses_stream", responsesStream],
  ["openai", "embeddings", embeddings],
  ["openai", "early_close", openaiEarlyClose],
  ["openai", "error_400", (c, s) => openaiError(c, s, 400)],
  ["openai", "error_429", (c, s) => openaiError(c, s, 429)],
  ["openai", "error_500", (c, s) => openaiError(c, s, 500)],
  ["anthropic", "messages_stream", messagesStream],
  ["anthropic", "messages_stream_tools", (c, s) => messagesStream(c, s, { tools: true })],
  ["anthropic", "messages_json", messagesJSON],
  ["anthropic", "early_close", anthropicEarlyClose],
  ["anthropic", "error_400", (c, s) => anthropicError(c, s, 400)],
  ["anthropic", "error_529", (c, s) => anthropicError(c, s, 529)],
];

for (const [sdk, scenario, call] of scenarios) {
  const run = `node-${sdk}-${scenario}-${SIDE}`;
  const url = scenario.startsWith("error") ? ERROR_URL : BASE_URL;
  const options = { apiKey: "sk-check", maxRetries: 0, timeout: 60_000, defaultHeaders: { "X-Weir-Run": run } };
  const client = sdk === "openai" ? new OpenAI({ ...options, baseURL: url + "/v1" }) : new Anthropic({ ...options, baseURL: url });
  const seen = new Seen();
  try {
    await call(client, seen);
  } catch (e) {
    seen.fields.failure = `${e?.stack ?? e}`; // told, and judged by check.py
  }
  console.log(JSON.stringify({ sdk, scenario, run, ...seen.fields }));
}
