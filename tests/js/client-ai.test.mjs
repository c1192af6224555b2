// The AI SDK persistence of @loomline/client: what is saved is loaded again, unchanged.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as ai7 from "ai";
import * as ai6 from "ai6";
import { ChatDiffersError, chatPersistence } from "../../clients/typescript/dist/ai.js";
import { ConflictError, ConnectionError, Loomline } from "../../clients/typescript/dist/index.js";
import { plain } from "./chat.mjs";
import { Loomline as Server } from "./loomline.mjs";

const server = await Server.forTests();
const client = new Loomline({ baseUrl: server.base });
const { createChat, loadChat, saveChat } = chatPersistence({ client, agent: "demo" });

const user = (id, text) => ({ id, role: "user", parts: [{ type: "text", text }] });
const RICH = [
  {
    id: "u1",
    role: "user",
    metadata: { who: "ada", n: 1 },
    parts: [
      { type: "text", text: "What is the weather in Oslo?" },
      { type: "file", mediaType: "image/png", filename: "a.png", url: "data:image/png;base64,iVBORw0KGgo=" },
    ],
  },
  {
    id: "a1",
    role: "assistant",
    metadata: { model: "m-1" },
    parts: [
      { type: "step-start" },
      { type: "reasoning", text: "Hm", state: "done", providerMetadata: { p: { signature: "s" } } },
      { type: "tool-weather", toolCallId: "c1", state: "output-available", input: { city: "Oslo" }, output: { degrees: 3 } },
      { type: "step-start" },
      { type: "text", text: "3 degrees.", state: "done" },
      { type: "source-url", sourceId: "s1", url: "https://example.org", title: "Weather" },
      { type: "data-chart", id: "d1", data: { x: [1, 2] } },
    ],
  },
];

/** The messages of a chat whose model streams an answer, as `onFinish` of the AI SDK gives them. */
async function answered({ createUIMessageStream, readUIMessageStream }, originalMessages, text) {
  const finished = Promise.withResolvers();
  const stream = createUIMessageStream({
    originalMessages,
    generateId: () => `answer-${originalMessages.length}`,
    execute: ({ writer }) => {
      const written = [{ type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: text }, { type: "text-end", id: "t" }];
      const ends = [{ type: "finish-step" }, { type: "finish" }];
      for (const chunk of [{ type: "start" }, { type: "start-step" }, ...written, ...ends]) writer.write(chunk);
    },
    onFinish: ({ messages }) => finished.resolve(messages),
  });
  for await (const message of readUIMessageStream({ stream })) assert.ok(message);
  return plain(await finished.promise);
}

for (const [major, ai] of Object.entries({ 6: ai6, 7: ai7 })) {
  test(`ai ${major} loads the messages that it saved`, async () => {
    const chatId = await createChat();
    assert.deepEqual(await loadChat(chatId), []);
    let messages = [];
    for (const text of ["One", "Two", "Three"]) {
      messages = [...(await loadChat(chatId)), user(`${text}-${major}`, text)];
      messages = await answered(ai, messages, `You said: ${text}`);
      await saveChat({ chatId, messages });
      assert.deepEqual(await loadChat(chatId), messages);
    }
    assert.equal(messages.length, 6);
    await ai.validateUIMessages({ messages: await loadChat(chatId) });
  });
}

test("every kind of part is loaded as it was saved", async () => {
  await saveChat({ chatId: "rich", messages: RICH });
  assert.deepEqual(await loadChat("rich"), RICH);
  const messages = [...RICH, user("u2", "Thanks")];
  await saveChat({ chatId: "rich", messages });
  assert.deepEqual(await loadChat("rich"), messages);
  await saveChat({ chatId: "rich", messages });
  assert.equal((await client.thread("rich").messages()).messages.filter(({ role }) => role === "user").length, 2);
});

test("a chat that does not exist has no messages", async () => {
  assert.deepEqual(await loadChat("never"), []);
  await assert.rejects(client.thread("never").read());
});

test("a chat can be saved under an id that was never created", async () => {
  await saveChat({ chatId: "new/one", messages: [user("u1", "Hello")] });
  assert.deepEqual(await loadChat("new/one"), [user("u1", "Hello")]);
});

test("a stored message that differs is refused, and nothing is written", async () => {
  const messages = [user("u1", "Hello"), user("u2", "Bye")];
  await saveChat({ chatId: "differs", messages });
  const changed = [user("u1", "Hello"), user("u2", "Good night"), user("u3", "More")];
  await assert.rejects(saveChat({ chatId: "differs", messages: changed }), { name: "ChatDiffersError", index: 1 });
  await assert.rejects(saveChat({ chatId: "differs", messages: messages.slice(0, 1) }), ChatDiffersError);
  assert.deepEqual(await loadChat("differs"), messages);
});

test("a chat is written anew where that was chosen", async () => {
  const rewriting = chatPersistence({ client, onDifference: "rewrite" });
  await rewriting.saveChat({ chatId: "rewritten", messages: [user("u1", "Hello"), user("u2", "Bye")] });
  await rewriting.saveChat({ chatId: "rewritten", messages: [user("u1", "Good morning")] });
  assert.deepEqual(await loadChat("rewritten"), [user("u1", "Good morning")]);
});

test("a rewrite that ends after any of its requests loses no message", async () => {
  const [old, anew] = [[user("u1", "Hello"), user("u2", "Bye")], [user("u1", "Good morning")]];
  for (let nAllowed = 0, isDone = false; !isDone; nAllowed += 1) {
    const chatId = `crashed-${nAllowed}`;
    await saveChat({ chatId, messages: old });
    let nChanges = 0;
    const crashing = async (url, init) => {
      if (init.method !== "GET" && !url.endsWith("/threads") && (nChanges += 1) > nAllowed) throw new TypeError("crashed");
      return fetch(url, init);
    };
    const options = { baseUrl: server.base, fetch: crashing, maxRetries: 0 };
    const rewriting = (client) => chatPersistence({ client, onDifference: "rewrite" });
    await rewriting(new Loomline(options)).saveChat({ chatId, messages: anew }).then(
      () => (isDone = true),
      (error) => assert.ok(error instanceof ConnectionError, error),
    );
    assert.deepEqual(await loadChat(chatId), nAllowed < 3 ? old : anew);
    const more = [...anew, user("u3", "More")];
    await rewriting(client).saveChat({ chatId, messages: more });
    assert.deepEqual(await loadChat(chatId), more);
    if (isDone) assert.equal(nAllowed, 5);
  }
});

test("two processes that save at once do not write a message twice", async () => {
  const chatId = await createChat();
  const messages = [user("u1", "Hello"), user("u2", "Bye")];
  const saved = await Promise.allSettled([1, 2, 3].map(() => saveChat({ chatId, messages })));
  for (const { reason } of saved) assert.ok(reason === undefined || reason instanceof ConflictError, reason);
  assert.ok(saved.some(({ status }) => status === "fulfilled"));
  assert.deepEqual(await loadChat(chatId), messages);
});

test("an agent of the server goes on with a saved chat", async () => {
  await saveChat({ chatId: "mixed", messages: RICH });
  const { text } = await client.thread("mixed").run("compute 1+1");
  assert.equal(text, "compute gave 2.");
  const messages = await loadChat("mixed");
  assert.deepEqual(messages.slice(0, 2), RICH);
  assert.equal(messages.at(-1).parts.at(-1).text, "compute gave 2.");
  await client.thread("mixed").run("Good morning");
  await saveChat({ chatId: "mixed", messages: [...(await loadChat("mixed")), user("u9", "Bye")] });
  assert.equal((await loadChat("mixed")).at(-1).id, "u9");
});
