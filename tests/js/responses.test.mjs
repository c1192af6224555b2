// OpenAI's own package against the real binary: `/v1/responses`, over HTTP and over a WebSocket.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Loomline } from "./loomline.mjs";
import { openai } from "./openai.mjs";

const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "The weather of a place",
  strict: false,
  parameters: {
    type: "object",
    properties: { location: { type: "string" } },
    required: ["location"],
  },
};
const ASKS = 'use get_weather {"location": "Paris"}';

const server = await Loomline.forTests();
const client = openai(server);

test("the OpenAI package is answered, and streams the same response", async () => {
  const made = await client.responses.create({ model: "demo", input: "Hello" });
  assert.equal(made.output_text, "You said: Hello");
  const stream = client.responses.stream({ model: "demo", input: "compute 6*7" });
  let text = "";
  stream.on("response.output_text.delta", (event) => (text += event.delta));
  const final = await stream.finalResponse();
  assert.equal(final.status, "completed");
  assert.equal(final.output_text, text);
  const read = await client.responses.retrieve(final.id);
  assert.deepEqual(read.output, final.output.map(({ parsed, parsed_arguments, ...item }) => unparsed(item)));
});

/** An item without what the package has added to it. */
function unparsed(item) {
  const { content } = item;
  return content ? { ...item, content: content.map(({ parsed, ...part }) => part) } : item;
}

test("the OpenAI package's tools are called, and their results go back", async () => {
  const asked = await client.responses.create({ model: "scripted", input: ASKS, tools: [WEATHER] });
  const [call] = asked.output;
  assert.deepEqual(JSON.parse(call.arguments), { location: "Paris" });
  const said = await client.responses.create({
    model: "scripted",
    previous_response_id: asked.id,
    input: [{ type: "function_call_output", call_id: call.call_id, output: "rain" }],
    tools: [WEATHER],
  });
  assert.equal(said.output_text, "get_weather gave rain.");
});

test("the OpenAI package keeps a conversation, and runs in the background", async () => {
  const conversation = await client.conversations.create({ metadata: { topic: "demo" } });
  await client.responses.create({ model: "demo", input: "Hello", conversation: conversation.id });
  const running = await client.responses.create({
    model: "demo",
    input: "slow 20ms say 2000 words",
    conversation: conversation.id,
    background: true,
  });
  await assert.rejects(
    client.responses.create({ model: "demo", input: "x", conversation: conversation.id }),
    { status: 400, code: "conversation_locked" },
  );
  const numbers = [];
  for await (const event of await client.responses.retrieve(running.id, { stream: true })) {
    numbers.push(event.sequence_number);
    if (event.type === "response.output_text.delta") break;
  }
  assert.equal((await client.responses.cancel(running.id)).status, "cancelled");
  const rest = await client.responses.retrieve(running.id, {
    stream: true,
    starting_after: numbers.at(-1),
  });
  for await (const event of rest) numbers.push(event.sequence_number);
  assert.deepEqual(numbers, [...numbers.keys()]);
  const roles = [];
  for await (const item of client.conversations.items.list(conversation.id, { order: "asc", limit: 1 })) {
    roles.push(item.role);
  }
  assert.deepEqual(roles.slice(0, 3), ["user", "assistant", "user"]);
  assert.equal((await client.conversations.delete(conversation.id)).deleted, true);
});

test("the OpenAI package finds nothing of what was deleted or never stored", async () => {
  const kept = await client.responses.create({ model: "demo", input: "kept" });
  await client.responses.delete(kept.id);
  const passing = await client.responses.create({ model: "demo", input: "passing", store: false });
  for (const { id } of [kept, passing]) {
    await assert.rejects(client.responses.retrieve(id), { status: 404 });
  }
});

test("a response survives the server that made it, and one in the background goes on", async () => {
  const done = await client.responses.create({ model: "demo", input: "Hello" });
  const running = await client.responses.create({
    model: "demo",
    input: "slow 20ms say 60 words",
    background: true,
  });
  await server.kill();
  await server.restart();
  assert.deepEqual((await client.responses.retrieve(done.id)).output, done.output);
  let last;
  for await (const event of await client.responses.retrieve(running.id, { stream: true })) last = event;
  assert.equal(last.type, "response.completed");
  assert.equal(last.response.output_text ?? last.response.output.at(-1).content[0].text.split(" ").length, 60);
});

test("responses are made over a WebSocket, one after the other", async () => {
  const socket = new WebSocket(`${server.base.replace("http", "ws")}/v1/responses`);
  const waiting = [];
  const heard = [];
  socket.addEventListener("message", ({ data }) => {
    const event = JSON.parse(data);
    if (waiting.length) waiting.shift()(event);
    else heard.push(event);
  });
  const next = () =>
    heard.length ? heard.shift() : new Promise((resolve) => waiting.push(resolve));
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", reject);
  });
  const respond = async (body) => {
    socket.send(JSON.stringify({ type: "response.create", model: "demo", store: false, ...body }));
    for (;;) {
      const event = await next();
      if (event.type === "error") return event.error;
      if (event.type === "response.completed") return event.response;
    }
  };
  const one = await respond({ input: "one" });
  const two = await respond({ input: "two", previous_response_id: one.id });
  assert.equal(two.output[0].content[0].text, "You said: two");
  const lost = await respond({ input: "x", previous_response_id: one.id });
  assert.equal(lost.code, "previous_response_not_found");
  const ahead = await respond({ input: "three", generate: false });
  assert.deepEqual(ahead.output, []);
  const three = await respond({ input: [], previous_response_id: ahead.id });
  assert.equal(three.output[0].content[0].text, "You said: three");
  socket.close();
});
