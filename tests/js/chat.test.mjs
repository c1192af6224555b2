// The real `ai` package against the real binary: `POST /api/chat` and its resume.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readUIMessageStream, validateUIMessages } from "ai";
import { Chat, plain, until } from "./chat.mjs";
import { Loomline } from "./loomline.mjs";
import { Wire } from "./wire.mjs";

// Some three seconds of streaming, so that there is a middle.
const SLOW = "slow 40ms say 60 words";

const { version } = JSON.parse(
  readFileSync(new URL("node_modules/ai/package.json", import.meta.url), "utf8"),
);
console.log(`ai ${version} on node ${process.version}`);
const server = await Loomline.forTests();

const texts = (message) =>
  message.parts.filter((part) => part.type === "text").map((part) => part.text);

const words = (message) => texts(message).join(" ").split(/\s+/).filter(Boolean).length;

/** The thread as the server tells it to a page that is opened. */
async function stored(id) {
  const response = await fetch(`${server.base}/api/chat/${id}/messages`);
  assert.equal(response.status, 200);
  return (await response.json()).messages;
}

/** A client of the same chat that asked nothing itself and is never disturbed. */
async function bystander(id, messages) {
  const chat = new Chat({ base: server.base, id, messages });
  const done = chat.resumeStream();
  await until("the bystander streams", () => chat.status === "streaming");
  return { chat, done };
}

/** The message that a bare reader of the replayed stream builds. */
async function replayed(id) {
  const chat = new Chat({ base: server.base, id });
  const stream = await chat.transportUsed.reconnectToStream({ chatId: id });
  assert.ok(stream, "there is a stream to replay");
  let last;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) {
    last = message;
  }
  return plain(last);
}

/** The server's messages are the client's; the answers down to their ids. */
async function agrees(chat) {
  const told = await stored(chat.id);
  assert.deepEqual(
    told.map(({ role, parts }) => ({ role, parts })),
    chat.plain.map(({ role, parts }) => ({ role, parts })),
  );
  const answers = (messages) => messages.filter((message) => message.role === "assistant");
  assert.deepEqual(answers(told), answers(chat.plain));
  await validateUIMessages({ messages: told });
}

test("a chat of two turns calls a tool and answers", async () => {
  const chat = new Chat({ base: server.base, id: "two-turns" });

  await chat.sendMessage({ text: "compute 2+3*4" });
  assert.equal(chat.status, "ready", chat.error?.message);
  const answer = chat.plain.at(-1);
  const call = answer.parts.find((part) => part.type === "tool-compute");
  assert.equal(call?.state, "output-available");
  assert.match(JSON.stringify(call.input), /2\+3\*4/);
  assert.match(JSON.stringify(call.output), /14/);
  assert.match(texts(answer).join(""), /14/);

  await chat.sendMessage({ text: "Good morning" });
  assert.equal(chat.status, "ready", chat.error?.message);
  assert.deepEqual(texts(chat.plain.at(-1)), ["You said: Good morning"]);
  assert.deepEqual(
    chat.messages.map((message) => message.role),
    ["user", "assistant", "user", "assistant"],
  );
  assert.equal(new Set(chat.messages.map((message) => message.id)).size, 4);
  await agrees(chat);
});

/** Asks, loses the connection in the middle, resumes; beside it two clients that lose nothing. */
async function brokenAndResumed(id, options) {
  const wire = await Wire.to(server.base);
  try {
    const chat = new Chat({ base: wire.base, id, ...options });
    const asked = chat.sendMessage({ text: SLOW });
    await until("some words", () => chat.lastMessage?.role === "assistant" && words(chat.lastMessage) > 5);
    const question = chat.plain[0];
    const watching = await bystander(id, [question]);
    const replay = replayed(id);

    wire.cut();
    await asked;
    assert.equal(chat.status, "error");
    assert.ok(words(chat.lastMessage) < 60, "the connection broke in the middle");

    await chat.resumeStream();
    assert.equal(chat.status, "ready", chat.error?.message);
    await watching.done;
    assert.equal(watching.chat.status, "ready", watching.chat.error?.message);

    assert.equal(words(chat.lastMessage), 60);
    assert.equal(chat.messages.length, 2);
    assert.deepEqual(chat.plain, watching.chat.plain);
    assert.deepEqual(chat.plain.at(-1), await replay);
    await agrees(chat);
  } finally {
    await wire.close();
  }
}

test("a broken connection is resumed to the message that an undisturbed client has", () =>
  brokenAndResumed("broken"));

// A browser says so in other words, and the client then keeps what it had.
const asBrowsersSay = async (url, init) => {
  const response = await fetch(url, init);
  if (!response.body) return response;
  const reader = response.body.getReader();
  const body = new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch {
        controller.error(new TypeError("network error"));
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
};

test("a broken connection is resumed as a browser resumes it", () =>
  brokenAndResumed("broken-browser", { fetch: asBrowsersSay }));

test("a page that is opened again in the middle of an answer gets the whole of it", async () => {
  const first = new Chat({ base: server.base, id: "reopened" });
  const asked = first.sendMessage({ text: SLOW });
  await until("some words", () => first.lastMessage?.role === "assistant" && words(first.lastMessage) > 5);

  const second = new Chat({ base: server.base, id: "reopened", messages: [first.plain[0]] });
  await second.resumeStream();
  await asked;
  assert.deepEqual(second.plain, first.plain);
  assert.equal(words(second.lastMessage), 60);
});

test("a server that was killed goes on, and its client resumes", async () => {
  const chat = new Chat({ base: server.base, id: "killed" });
  const asked = chat.sendMessage({ text: "slow 40ms compute 1+1 then say 60 words" });
  await until("some words", () => chat.lastMessage?.role === "assistant" && words(chat.lastMessage) > 2);

  await server.kill("SIGKILL");
  await asked;
  assert.equal(chat.status, "error");
  await server.restart();

  await chat.resumeStream();
  assert.equal(chat.status, "ready", chat.error?.message);
  assert.equal(chat.messages.length, 2);
  const calls = chat.lastMessage.parts.filter((part) => part.type === "tool-compute");
  assert.deepEqual(calls.map((part) => part.state), ["output-available"]);
  assert.equal(words(chat.lastMessage), 60);
  await agrees(chat);
});

test("there is nothing to resume when nothing runs", async () => {
  const chat = new Chat({ base: server.base, id: "at-rest" });
  const unknown = await fetch(`${server.base}/api/chat/at-rest/stream`);
  assert.equal(unknown.status, 204);

  await chat.sendMessage({ text: "Good morning" });
  const finished = await fetch(`${server.base}/api/chat/at-rest/stream`);
  assert.equal(finished.status, 204);
  assert.equal(await finished.text(), "");

  const seen = chat.plain;
  await chat.resumeStream();
  assert.equal(chat.status, "ready", chat.error?.message);
  assert.deepEqual(chat.plain, seen);
});

test("the stream says what it is", async () => {
  const response = await fetch(`${server.base}/api/chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      id: "headers",
      trigger: "submit-message",
      messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "Good morning" }] }],
    }),
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  assert.equal(response.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  assert.equal(response.headers.get("x-accel-buffering"), "no");
  assert.match(await response.text(), /data: \[DONE\]\n\n$/);
});
