// The real `ai` package and agents that call, ask and follow others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readUIMessageStream, validateUIMessages } from "ai";
import { Chat, until } from "./chat.mjs";
import { Loomline } from "./loomline.mjs";

const TEAM = `
default_agent = "lead"
[models.m]
provider = "scripted"
[agents.lead]
model = "m"
handoffs = ["closer"]
[[agents.lead.subagents]]
agent = "helper"
name = "delegate"
description = "Does something."
parameters = { type = "object", properties = { task = { type = "string" } }, required = ["task"] }
prompt = "{task}"
[agents.helper]
model = "m"
tools = ["compute"]
requires_approval = ["compute"]
[agents.closer]
model = "m"
`;

const server = await Loomline.forTests(TEAM);

const delegate = (task) => `delegate ${JSON.stringify({ task })}`;

const callOf = (chat) => chat.lastMessage?.parts.find((part) => part.type === "tool-delegate");

/** What a chat is told beneath it. */
const nested = (told) => told.filter((part) => part.type === "data-subagent");

/** The server tells a page that is opened later the same. */
async function agrees(chat) {
  const response = await fetch(`${server.base}/api/chat/${chat.id}/messages`);
  const { messages } = await response.json();
  assert.deepEqual(
    messages.map(({ role, parts }) => ({ role, parts })),
    chat.plain.map(({ role, parts }) => ({ role, parts })),
  );
  await validateUIMessages({ messages });
}

test("a client sees what a sub-agent says while it says it, and then its result", async () => {
  const told = [];
  const chat = new Chat({ base: server.base, id: "sub", onData: (part) => told.push(part) });
  const asked = chat.sendMessage({ text: delegate("slow 20ms say 60 words") });
  await until("a preliminary output", () => callOf(chat)?.preliminary === true);
  const early = callOf(chat).output;
  assert.ok(early.length > 0);
  await asked;
  assert.equal(chat.status, "ready", chat.error?.message);
  const call = callOf(chat);
  assert.equal(call.state, "output-available");
  assert.ok(!call.preliminary);
  assert.ok(call.output.startsWith(early) && call.output.length > early.length);
  await agrees(chat);

  // The chunks of the sub-agent make its own message.
  const stream = ReadableStream.from(nested(told).map((part) => part.data.chunk));
  let message;
  for await (const next of readUIMessageStream({ stream, terminateOnError: true })) message = next;
  const texts = message.parts.filter((part) => part.type === "text").map((part) => part.text);
  assert.equal(texts.join(""), call.output);
});

test("a broken connection in the middle of a sub-agent is resumed to the whole of it", async () => {
  const first = new Chat({ base: server.base, id: "resumed" });
  const asked = first.sendMessage({ text: delegate("slow 40ms say 60 words") });
  await until("a preliminary output", () => callOf(first)?.preliminary === true);
  const second = new Chat({ base: server.base, id: "resumed", messages: [first.plain[0]] });
  await second.resumeStream();
  await asked;
  assert.deepEqual(second.plain, first.plain);
  await agrees(second);
});

test("a chat goes on over a handoff as one message", async () => {
  const chat = new Chat({ base: server.base, id: "handoff" });
  await chat.sendMessage({ text: "transfer_to_closer" });
  assert.equal(chat.status, "ready", chat.error?.message);
  assert.equal(chat.messages.length, 2);
  const kinds = chat.lastMessage.parts.map((part) => part.type);
  assert.ok(kinds.includes("data-tp-agent_handoff") && kinds.at(-1) === "text", kinds.join());
  await agrees(chat);
});

test("what a sub-agent asks leaves its call open, and its answer goes on with the message", async () => {
  const told = [];
  const chat = new Chat({ base: server.base, id: "asks", onData: (part) => told.push(part) });
  await chat.sendMessage({ text: delegate("use compute 6 * 7") });
  assert.equal(chat.status, "ready", chat.error?.message);
  assert.equal(callOf(chat).state, "input-available");
  const question = nested(told).find((part) => part.data.chunk.type === "tool-approval-request");
  const { threadKey, chunk } = question.data;
  const response = await fetch(`${server.base}/api/v1/threads/asks/answers`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ answers: [{ toolCallId: chunk.toolCallId, threadKey, approved: true }] }),
  });
  assert.equal(response.status, 200);
  assert.match(await response.text(), /thread\.finished/);
  const stored = await fetch(`${server.base}/api/chat/asks/messages`);
  const { messages } = await stored.json();
  assert.equal(messages.length, 2);
  const call = messages[1].parts.find((part) => part.type === "tool-delegate");
  assert.match(call.output, /compute gave 42/);
  await validateUIMessages({ messages });
});
