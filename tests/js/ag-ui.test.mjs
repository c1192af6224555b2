// The real `@ag-ui/client` against the real binary: `POST /ag-ui`. The client verifies the order of all
// events itself, and fails the run where it is broken.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { randomUUID } from "node:crypto";
import { HttpAgent } from "@ag-ui/client";
import { plain } from "./chat.mjs";
import { Loomline } from "./loomline.mjs";

const SEAT = {
  $schema: "https://aitp.dev/v1/decisions/schema.json",
  request_decision: { id: "seat", title: "Which seat?", options: [{ id: "window" }, { id: "aisle" }] },
};
const script = join(mkdtempSync(join(tmpdir(), "ag-ui-")), "script.json");
const turns = [{ text: JSON.stringify(SEAT) }, { text: "It is booked." }];
writeFileSync(script, JSON.stringify({ turns, per_turn: false }));
after(() => rmSync(dirname(script), { recursive: true }));

const CONFIG = `
default_agent = "demo"

[models.demo]
provider = "scripted"

[models.rehearsed]
provider = "scripted"
script = "${script}"

[agents.clerk]
model = "rehearsed"

[agents.demo]
model = "demo"
tools = ["compute"]

[agents.careful]
model = "demo"
tools = ["compute"]
requires_approval = ["compute"]

[agents.lead]
model = "demo"
tools = ["compute"]

[[agents.lead.subagents]]
agent = "demo"
name = "delegate"
description = "Does a task."
parameters = { type = "object", properties = { task = { type = "string" } }, required = ["task"] }
prompt = "{task}"
`;

const LOOK_UP = {
  name: "look_up",
  description: "Looks something up in the client's cache.",
  parameters: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
};

const server = await Loomline.forTests(CONFIG);

/** An agent as a front-end has it, and all events it has seen. */
function front(path = "/ag-ui", threadId = randomUUID()) {
  const agent = new HttpAgent({ url: `${server.base}${path}`, threadId });
  const events = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  return { agent, events };
}

function say(agent, content) {
  agent.addMessage({ id: randomUUID(), role: "user", content });
}

const kinds = (events) => events.map((event) => event.type);

async function stored(threadId) {
  const response = await fetch(`${server.base}/ag-ui/threads/${threadId}/messages`);
  assert.equal(response.status, 200);
  return (await response.json()).messages;
}

/** What the client has is what the server tells a client that opens the thread anew. */
async function agrees(agent) {
  assert.deepEqual(plain(agent.messages), await stored(agent.threadId));
}

test("a run is streamed, and the client has what the server has", async () => {
  const { agent, events } = front();
  say(agent, "Good morning");
  const { newMessages } = await agent.runAgent();
  assert.equal(newMessages.length, 1);
  assert.equal(newMessages[0].content, "You said: Good morning");
  const seen = kinds(events);
  assert.equal(seen[0], "RUN_STARTED");
  assert.equal(seen.at(-1), "RUN_FINISHED");
  assert.ok(seen.includes("TEXT_MESSAGE_CONTENT"));
  await agrees(agent);
});

test("a thread goes on with what is added, and the server's tools run", async () => {
  const { agent, events } = front();
  for (const [said, answer] of [
    ["compute 2+3*4", "compute gave 14."],
    ["think of spring", "You said: think of spring"],
  ]) {
    say(agent, said);
    const { newMessages } = await agent.runAgent();
    assert.equal(newMessages.at(-1).content, answer);
  }
  assert.ok(kinds(events).includes("TOOL_CALL_RESULT"));
  assert.ok(kinds(events).includes("REASONING_MESSAGE_CONTENT"));
  await agrees(agent);
});

test("a tool of the client is called, and its result goes on with the thread", async () => {
  const { agent, events } = front();
  say(agent, 'use look_up {"key": "spring"}');
  await agent.runAgent({ tools: [LOOK_UP] });
  const finished = events.at(-1);
  assert.equal(finished.type, "RUN_FINISHED");
  const call = agent.messages.at(-1).toolCalls[0];
  assert.equal(call.function.name, "look_up");
  agent.addMessage({ id: randomUUID(), role: "tool", toolCallId: call.id, content: "March" });
  const { newMessages } = await agent.runAgent({ tools: [LOOK_UP] });
  assert.match(newMessages.at(-1).content, /look_up gave.*March/);
  await agrees(agent);
  const told = await stored(agent.threadId);
  assert.deepEqual(
    told.map((message) => message.role),
    ["user", "assistant", "tool", "assistant"],
  );
});

test("results of parallel calls have one order, whichever comes first", async () => {
  const { agent } = front("/ag-ui/agents/lead");
  say(agent, 'use delegate {"task": "slow 20ms say 10 words"} and compute {"expression": "1+1"}');
  await agent.runAgent();
  const results = agent.messages.filter((message) => message.role === "tool");
  assert.deepEqual(
    results.map((message) => message.toolCallId),
    agent.messages[1].toolCalls.map((call) => call.id),
  );
  await agrees(agent);
});

test("an interrupt asks whether a call may run, and is answered", async () => {
  for (const approved of [true, false]) {
    const { agent } = front("/ag-ui/agents/careful");
    say(agent, "compute 1+1");
    await agent.runAgent();
    assert.equal(agent.pendingInterrupts.length, 1);
    const [interrupt] = agent.pendingInterrupts;
    const resume = [{ interruptId: interrupt.id, status: "resolved", payload: { approved } }];
    await agent.runAgent({ resume });
    assert.equal(agent.pendingInterrupts.length, 0);
    const last = agent.messages.at(-1);
    assert.match(last.content, approved ? /compute gave 2/ : /denied/i);
  }
});

test("what an agent asks by AITP is an interrupt with a form, and its answer comes back", async () => {
  const { agent } = front("/ag-ui/agents/clerk");
  say(agent, "A seat, please");
  await agent.runAgent();
  const [interrupt, ...others] = agent.pendingInterrupts;
  assert.equal(others.length, 0);
  assert.equal(interrupt.id, "decision:seat");
  assert.deepEqual(interrupt.metadata, SEAT);
  assert.ok(interrupt.responseSchema.properties.option);
  const resume = [{ interruptId: interrupt.id, status: "resolved", payload: { option: "aisle" } }];
  await agent.runAgent({ resume });
  assert.equal(agent.pendingInterrupts.length, 0);
  assert.equal(agent.messages.at(-1).content, "It is booked.");
  await agrees(agent);
});

test("a run that fails ends with an error that says why", async () => {
  const { agent, events } = front();
  say(agent, "fail rate_limited");
  await agent.runAgent().catch(() => {});
  assert.equal(kinds(events).at(-1), "RUN_ERROR");
});

test("the same run asked for again is shown again, and begun once", async () => {
  const threadId = randomUUID();
  const body = {
    threadId,
    runId: randomUUID(),
    state: {},
    messages: [{ id: randomUUID(), role: "user", content: "Good morning" }],
    tools: [],
    context: [],
    forwardedProps: {},
  };
  const post = async () => {
    const response = await fetch(`${server.base}/ag-ui`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify(body),
    });
    assert.equal(response.status, 200);
    return response.text();
  };
  const first = await post();
  assert.equal(await post(), first);
  assert.equal((await stored(threadId)).length, 2);
  // A run under another name with nothing new said goes on with what there is.
  body.runId = randomUUID();
  assert.notEqual(await post(), first);
  assert.equal((await stored(threadId)).length, 3);
});

test("a thread begun by the AI SDK goes on through AG-UI", async () => {
  const id = randomUUID();
  const message = { id: randomUUID(), role: "user", parts: [{ type: "text", text: "Hello" }] };
  const chat = await fetch(`${server.base}/api/chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ id, messages: [message], trigger: "submit-message" }),
  });
  await chat.text();
  const { agent } = front("/ag-ui", id);
  agent.setMessages(await stored(id));
  assert.equal(agent.messages.length, 2);
  say(agent, "Good evening");
  await agent.runAgent();
  await agrees(agent);
  const told = await fetch(`${server.base}/api/chat/${id}/messages`);
  assert.equal((await told.json()).messages.length, 4);
});
