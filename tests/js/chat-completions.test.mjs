// OpenAI's own package and the AI SDK's `openai-compatible` provider against the real binary: `/v1/chat/completions`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, jsonSchema, Output, streamText, tool } from "ai";
import { Loomline } from "./loomline.mjs";
import { openai } from "./openai.mjs";

const PARAMETERS = {
  type: "object",
  properties: { location: { type: "string" } },
  required: ["location"],
};
const WEATHER = { type: "function", function: { name: "get_weather", parameters: PARAMETERS } };
const ASKS = 'use get_weather {"location": "Paris"}';
const IMAGE = "data:image/png;base64,iVBORw0KGgo=";
const SCHEMA = {
  type: "object",
  properties: { n: { type: "integer" } },
  required: ["n"],
  additionalProperties: false,
};

const server = await Loomline.forTests();
const client = openai(server);
const user = (content) => ({ role: "user", content });
const create = (messages, more, options) =>
  client.chat.completions.create({ model: "demo", messages, ...more }, options);

test("the OpenAI package is answered, and streams the same completion with its usage", async () => {
  const whole = await create([user("compute 6*7")]);
  const stream = client.chat.completions.stream({
    model: "demo",
    messages: [user("compute 6*7")],
    stream_options: { include_usage: true },
  });
  const final = await stream.finalChatCompletion();
  assert.equal(final.choices[0].message.content, whole.choices[0].message.content);
  assert.equal(final.choices[0].finish_reason, "stop");
  assert.deepEqual(final.usage, whole.usage);
});

test("the OpenAI package runs its tools over chat completions", async () => {
  const asked = await create([user(ASKS)], { tools: [WEATHER] });
  const { message, finish_reason } = asked.choices[0];
  assert.equal(finish_reason, "tool_calls");
  const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "rain" };
  const said = await create([user(ASKS), message, result], { tools: [WEATHER] });
  assert.equal(said.choices[0].message.content, "get_weather gave rain.");
});

test("the OpenAI package sends an image and asks for a schema over chat completions", async () => {
  const content = [
    { type: "text", text: "What is it?" },
    { type: "image_url", image_url: { url: IMAGE } },
  ];
  assert.ok((await create([user(content)])).choices[0].message.content);
  const json_schema = { name: "number", schema: SCHEMA, strict: true };
  const made = await create([user("x")], { response_format: { type: "json_schema", json_schema } });
  assert.ok(Number.isInteger(JSON.parse(made.choices[0].message.content).n));
});

test("the OpenAI package resends its history on a durable thread, and another one is refused", async () => {
  const on = { headers: { "Loomline-Thread": "openai" } };
  const messages = [user("one")];
  messages.push((await create(messages, {}, on)).choices[0].message, user("two"));
  const second = (await create(messages, {}, on)).choices[0].message;
  assert.equal(second.content, "You said: two");
  const other = [user("other"), ...messages.slice(1), second, user("three")];
  await assert.rejects(create(other, {}, on), (error) => {
    assert.deepEqual([error.status, error.code, error.param], [409, "history_differs", "messages[0]"]);
    return true;
  });
});

const provider = (headers) =>
  createOpenAICompatible({
    name: "loomline",
    baseURL: `${server.base}/v1`,
    apiKey: "llk_none",
    includeUsage: true,
    supportsStructuredOutputs: true,
    headers,
  });

test("the AI SDK's provider is answered, and streams the same text with its usage", async () => {
  const model = provider()("demo");
  const whole = await generateText({ model, prompt: "say 20 words" });
  const streamed = streamText({ model, prompt: "say 20 words" });
  assert.equal(await streamed.text, whole.text);
  assert.equal((await streamed.usage).outputTokens, whole.usage.outputTokens);
});

test("the AI SDK's provider runs its tools on a durable thread", async () => {
  const model = provider({ "Loomline-Thread": "ai-sdk" })("demo");
  const get_weather = tool({
    description: "The weather of a place",
    inputSchema: jsonSchema(PARAMETERS),
    execute: async ({ location }) => `rain in ${location}`,
  });
  const stopWhen = isStepCount(3);
  const tools = { get_weather };
  const messages = [user(ASKS)];
  const done = await generateText({ model, messages, tools, stopWhen });
  assert.equal(done.text, "get_weather gave rain in Paris.");
  const after = done.responseMessages ?? done.response.messages;
  const next = [...messages, ...after, user("thanks")];
  const last = await generateText({ model, messages: next, tools, stopWhen });
  assert.equal(last.text, "You said: thanks");
  const other = [user("other"), ...next.slice(1), user("x")];
  await assert.rejects(generateText({ model, messages: other, tools, maxRetries: 0 }), (error) => {
    assert.equal(error.statusCode, 409);
    return true;
  });
});

test("the AI SDK's provider sends an image and asks for a schema", async () => {
  const model = provider()("demo");
  const content = [
    { type: "text", text: "What is it?" },
    { type: "image", image: IMAGE },
  ];
  assert.ok((await generateText({ model, messages: [user(content)] })).text);
  const output = Output.object({ schema: jsonSchema(SCHEMA) });
  const made = await generateText({ model, prompt: "x", output });
  assert.ok(Number.isInteger(made.output.n));
});
