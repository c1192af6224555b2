// The official `openai` package against the real binary: `client.beta.threads`, `client.beta.assistants`, `client.files`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import OpenAI, { toFile } from "openai";
import { Loomline } from "./loomline.mjs";
import { openai } from "./openai.mjs";

const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

const { version } = JSON.parse(
  readFileSync(new URL("node_modules/openai/package.json", import.meta.url), "utf8"),
);
console.log(`openai ${version} on node ${process.version}`);
const server = await Loomline.forTests();
const client = openai(server);

const thread = (...said) =>
  client.beta.threads.create({ messages: said.map((content) => ({ role: "user", content })) });

const newest = async (id) => {
  const page = await client.beta.threads.messages.list(id, { limit: 1 });
  return page.data[0].content[0].text.value;
};

test("the official client makes an assistant, says something, polls the run and reads the answer", async () => {
  const assistant = await client.beta.assistants.create({
    model: "scripted",
    instructions: "Be brief.",
  });
  const { id } = await thread();
  await client.beta.threads.messages.create(id, { role: "user", content: "Good morning" });
  const run = await client.beta.threads.runs.createAndPoll(
    id,
    { assistant_id: assistant.id },
    { pollIntervalMs: 20 },
  );
  assert.equal(run.status, "completed");
  assert.equal(run.instructions, "Be brief.");
  assert.equal(await newest(id), "You said: Good morning");
  const steps = await client.beta.threads.runs.steps.list(run.id, { thread_id: id });
  assert.deepEqual(
    steps.data.map((step) => step.type),
    ["message_creation"],
  );
  const step = await client.beta.threads.runs.steps.retrieve(steps.data[0].id, {
    thread_id: id,
    run_id: run.id,
  });
  assert.deepEqual(step, steps.data[0]);
  await client.beta.assistants.delete(assistant.id);
  await assert.rejects(client.beta.assistants.retrieve(assistant.id), OpenAI.NotFoundError);
});

test("the official client's stream builds the messages and the calls that are read afterwards", async () => {
  const { id } = await thread("use get_weather on Oslo");
  const seen = [];
  const stream = client.beta.threads.runs
    .stream(id, { assistant_id: "demo", tools: [WEATHER] })
    .on("event", ({ event }) => seen.push(event))
    .on("toolCallDone", (call) => seen.push(call.function.arguments));
  const run = await stream.finalRun();
  assert.equal(run.status, "requires_action");
  assert.deepEqual(seen.slice(0, 3), [
    "thread.run.created",
    "thread.run.queued",
    "thread.run.in_progress",
  ]);
  const [call] = run.required_action.submit_tool_outputs.tool_calls;
  assert.deepEqual(JSON.parse(call.function.arguments), { city: "Oslo" });
  assert.ok(seen.includes(call.function.arguments));

  let text = "";
  const rest = client.beta.threads.runs
    .submitToolOutputsStream(run.id, {
      thread_id: id,
      tool_outputs: [{ tool_call_id: call.id, output: "sunny" }],
    })
    .on("textDelta", ({ value }) => (text += value ?? ""));
  const done = await rest.finalRun();
  assert.equal(done.status, "completed");
  assert.equal(done.id, run.id);
  assert.match(text, /sunny/);
  const messages = await rest.finalMessages();
  assert.equal(messages.at(-1).content[0].text.value, text);
  assert.equal(await newest(id), text);
  const steps = await rest.finalRunSteps();
  assert.equal(steps.at(-1).status, "completed");
});

test("the official client makes a thread and streams its run in one request", async () => {
  const stream = client.beta.threads.createAndRunStream({
    assistant_id: "demo",
    thread: { messages: [{ role: "user", content: "Good morning" }] },
  });
  const run = await stream.finalRun();
  assert.equal(run.status, "completed");
  assert.equal(await newest(run.thread_id), "You said: Good morning");
});

test("the official client submits outputs and polls, and pages through everything", async () => {
  const { id } = await thread("one", "two", "use get_weather on Oslo");
  const waits = await client.beta.threads.runs.createAndPoll(
    id,
    { assistant_id: "demo", tools: [WEATHER] },
    { pollIntervalMs: 20 },
  );
  const [call] = waits.required_action.submit_tool_outputs.tool_calls;
  const done = await client.beta.threads.runs.submitToolOutputsAndPoll(
    waits.id,
    { thread_id: id, tool_outputs: [{ tool_call_id: call.id, output: "sunny" }] },
    { pollIntervalMs: 20 },
  );
  assert.equal(done.status, "completed");
  const said = [];
  for await (const message of client.beta.threads.messages.list(id, { limit: 1, order: "asc" })) {
    said.push(message.content[0].text.value);
  }
  assert.deepEqual(said.slice(0, 3), ["one", "two", "use get_weather on Oslo"]);
  assert.equal(said.length, 4);
});

test("the official client cancels a run, and is told what the lock forbids", async () => {
  const { id } = await thread("slow 50ms say 500 words");
  const run = await client.beta.threads.runs.create(id, { assistant_id: "demo" });
  await assert.rejects(
    client.beta.threads.messages.create(id, { role: "user", content: "more" }),
    (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.ok(error.requestID);
      assert.match(error.message, /Can't add messages to thread_\w+ while a run run_\w+ is active\./);
      return true;
    },
  );
  await client.beta.threads.runs.cancel(run.id, { thread_id: id });
  const after = await client.beta.threads.runs.poll(run.id, { thread_id: id });
  assert.equal(after.status, "cancelled");
});

test("the official client uploads a file, shows it to the model and gets it back", async () => {
  const png = Buffer.from("iVBORw0KGgoAAAANSUhEUg==", "base64");
  const file = await client.files.create({
    file: await toFile(png, "a.png"),
    purpose: "vision",
  });
  assert.equal(file.bytes, png.length);
  const content = await client.files.content(file.id);
  assert.deepEqual(Buffer.from(await content.arrayBuffer()), png);
  const { id } = await client.beta.threads.create({
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "image_file", image_file: { file_id: file.id } },
        ],
      },
    ],
  });
  const run = await client.beta.threads.runs.createAndPoll(
    id,
    { assistant_id: "demo" },
    { pollIntervalMs: 20 },
  );
  assert.equal(run.status, "completed");
  const files = [];
  for await (const found of client.files.list({ purpose: "vision" })) files.push(found.id);
  assert.deepEqual(files, [file.id]);
  assert.equal((await client.files.delete(file.id)).deleted, true);
});

test("the official client changes and deletes a thread and its messages", async () => {
  const { id } = await thread("one", "two");
  const changed = await client.beta.threads.update(id, { metadata: { a: "b" } });
  assert.deepEqual(changed.metadata, { a: "b" });
  const { data } = await client.beta.threads.messages.list(id);
  const noted = await client.beta.threads.messages.update(data[0].id, {
    thread_id: id,
    metadata: { n: "1" },
  });
  assert.deepEqual(noted.metadata, { n: "1" });
  await client.beta.threads.messages.delete(data[0].id, { thread_id: id });
  const left = await client.beta.threads.messages.list(id);
  assert.deepEqual(
    left.data.map((message) => message.content[0].text.value),
    ["one"],
  );
  await client.beta.threads.delete(id);
  await assert.rejects(client.beta.threads.retrieve(id), OpenAI.NotFoundError);
});

test("a stream that a crash of the server broke off is read to its end when it is asked for again", async () => {
  const server = await Loomline.start();
  try {
    const client = openai(server);
    const content = "slow 20ms say 100 words";
    const { id } = await client.beta.threads.create({ messages: [{ role: "user", content }] });
    const ask = () =>
      client.beta.threads.runs.stream(
        id,
        { assistant_id: "demo" },
        { headers: { "idempotency-key": "crash" } },
      );
    const broken = ask();
    const began = Promise.withResolvers();
    broken.on("textDelta", began.resolve);
    broken.on("error", began.reject);
    await began.promise;
    // A reading stores what the stream has shown; the crash loses what comes after it.
    await client.beta.threads.messages.list(id);
    await server.kill();
    await assert.rejects(broken.done());
    await server.restart();

    const again = ask();
    const final = await again.finalRun();
    assert.equal(final.status, "completed");
    const said = await again.finalMessages();
    assert.deepEqual(
      said.map((message) => message.status),
      ["incomplete", "completed"],
    );
    const { data } = await client.beta.threads.messages.list(id, { order: "desc", limit: 1 });
    assert.deepEqual(said[1], data[0]);
    assert.equal(data[0].content[0].text.value.split(" ").length, 100);
  } finally {
    await server.stop();
  }
});
