// Who owns the history: edits, other answers and what comes back, with the `ai` packages 5, 6 and 7.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { MAJORS, chatOf, until } from "./chat.mjs";
import { Loomline } from "./loomline.mjs";
import { Wire } from "./wire.mjs";

const CONFIG = `
default_agent = "demo"
[models.m]
provider = "scripted"
[agents.demo]
model = "m"
tools = ["compute", "read_file"]
requires_approval = ["read_file"]
handoffs = ["closer"]
[[agents.demo.external]]
name = "locate"
description = "Where the user is."
parameters = { type = "object", properties = {} }
[[agents.demo.subagents]]
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

const SLOW = "slow 40ms say 60 words";

const server = await Loomline.forTests(CONFIG);
await mkdir(join(server.data, "files"), { recursive: true });
await writeFile(join(server.data, "files", "README.md"), "Read me.");

const texts = (message) =>
  message.parts.filter((part) => part.type === "text").map((part) => part.text);

const said = (messages) => messages.map((message) => texts(message).join(""));

const calls = (message) => message.parts.filter((part) => part.toolCallId !== undefined);

async function stored(id) {
  const response = await fetch(`${server.base}/api/chat/${id}/messages`);
  assert.equal(response.status, 200);
  return (await response.json()).messages;
}

const ready = (chat) => assert.equal(chat.status, "ready", chat.error?.message);

for (const major of [5, 6, 7]) {
  const Chat = chatOf(major);
  const { validateUIMessages } = MAJORS[major];
  const open = (id, options) => new Chat({ base: server.base, id: `${id}-${major}`, ...options });

  /** The server tells a page that is opened later the same. */
  const agrees = async (chat) => {
    const told = await stored(chat.id);
    assert.deepEqual(said(told), said(chat.plain));
    assert.deepEqual(
      told.map(({ id }) => id),
      chat.plain.map(({ id }) => id),
    );
  };

  describe(`ai ${major}`, () => {
    test("a message is edited, and the page goes on with and without a reload", async () => {
      const chat = open("edit");
      for (const text of ["one", "two", "three"]) {
        await chat.sendMessage({ text });
        ready(chat);
      }
      const question = chat.messages[2].id;
      await chat.sendMessage({ text: "other", messageId: question });
      ready(chat);
      assert.deepEqual(said(chat.plain), ["one", "You said: one", "other", "You said: other"]);
      assert.equal(chat.messages[2].id, question);
      await agrees(chat);
      await chat.sendMessage({ text: "four" });
      ready(chat);
      await chat.sendMessage({ text: "once more", messageId: question });
      ready(chat);
      await agrees(chat);

      const page = open("edit", { messages: await stored(chat.id) });
      await page.sendMessage({ text: "five" });
      ready(page);
      await agrees(page);

      // The page that was there before has not seen that, and says more all the same.
      await chat.sendMessage({ text: "six" });
      ready(chat);
      assert.deepEqual(said(await stored(chat.id)).slice(-4), ["five", "You said: five", "six", "You said: six"]);
    });

    test("a page that shows what was edited away is told so", async () => {
      const chat = open("stale");
      await chat.sendMessage({ text: "one" });
      const stale = open("stale", { messages: chat.plain });
      await chat.sendMessage({ text: "other", messageId: chat.messages[0].id });
      ready(chat);
      await stale.sendMessage({ text: "two" });
      assert.equal(stale.status, "error");
      assert.match(stale.error.message, /history_differs/);
      await agrees(chat);
    });

    test("an answer is made anew, the last one and an earlier one", async () => {
      const chat = open("anew");
      await chat.sendMessage({ text: "one" });
      await chat.sendMessage({ text: "two" });
      const [, first, , second] = chat.messages.map(({ id }) => id);
      await chat.regenerate();
      ready(chat);
      assert.equal(chat.messages.length, 4);
      assert.notEqual(chat.lastMessage.id, second);
      await agrees(chat);
      await chat.regenerate({ messageId: first });
      ready(chat);
      assert.deepEqual(said(chat.plain), ["one", "You said: one"]);
      await agrees(chat);
      await chat.sendMessage({ text: "go on" });
      ready(chat);
      await agrees(chat);
    });

    test("a question that never arrived is sent again, or said with the next one", async () => {
      let is_down = true;
      const flaky = (url, init) =>
        is_down ? Promise.reject(new TypeError("fetch failed")) : fetch(url, init);
      const chat = open("lost", { fetch: flaky });
      await chat.sendMessage({ text: "one" });
      assert.equal(chat.status, "error");
      is_down = false;
      await chat.regenerate();
      ready(chat);
      assert.deepEqual(said(chat.plain), ["one", "You said: one"]);
      is_down = true;
      await chat.sendMessage({ text: "two" });
      is_down = false;
      await chat.sendMessage({ text: "three" });
      ready(chat);
      await agrees(chat);
    });

    test("an answer that was left is followed by a new message, whether it was stopped or not", async () => {
      for (const stops of [false, true]) {
        const chat = open(`left-${stops}`);
        const asked = chat.sendMessage({ text: SLOW });
        await until("some words", () => chat.lastMessage?.role === "assistant" && said([chat.lastMessage])[0].length > 10);
        await chat.stop();
        await asked;
        if (stops) await fetch(`${server.base}/api/chat/${chat.id}/stop`, { method: "POST" });
        assert.ok(said([chat.lastMessage])[0].split(" ").length < 60);
        await chat.sendMessage({ text: "quick" });
        ready(chat);
        assert.equal(texts(chat.lastMessage).join(""), "You said: quick");
        await chat.sendMessage({ text: "again" });
        ready(chat);
        const page = open(`left-${stops}`, { messages: await stored(chat.id) });
        await page.sendMessage({ text: "reloaded" });
        ready(page);
        await agrees(page);
      }
    });

    test("an answer that runs gives way to the message that is edited", async () => {
      const chat = open("running");
      const asked = chat.sendMessage({ text: SLOW });
      await until("some words", () => chat.lastMessage?.role === "assistant" && said([chat.lastMessage])[0].length > 10);
      await chat.stop();
      await asked;
      await chat.sendMessage({ text: "quick", messageId: chat.messages[0].id });
      ready(chat);
      assert.deepEqual(said(chat.plain), ["quick", "You said: quick"]);
      await agrees(chat);
    });

    test("a broken connection is resumed, and the chat goes on", async () => {
      const wire = await Wire.to(server.base);
      try {
        const chat = new Chat({ base: wire.base, id: `broken-${major}` });
        const asked = chat.sendMessage({ text: SLOW });
        await until("some words", () => chat.lastMessage?.role === "assistant" && said([chat.lastMessage])[0].length > 10);
        wire.cut();
        await asked;
        assert.equal(chat.status, "error");
        await chat.resumeStream();
        ready(chat);
        await chat.sendMessage({ text: "go on" });
        ready(chat);
        assert.equal(texts(chat.lastMessage).join(""), "You said: go on");
      } finally {
        await wire.close();
      }
    });

    test("the client's own tool runs on the client, and fails there", async () => {
      const { lastAssistantMessageIsCompleteWithToolCalls } = MAJORS[major];
      for (const [name, result] of [
        ["works", { output: { city: "Ghent", at: 9007199254740993 } }],
        ["fails", { state: "output-error", errorText: "no permission" }],
      ]) {
        const chat = open(`tool-${name}`, {
          sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
          onToolCall: ({ toolCall }) => {
            if (toolCall.toolName !== "locate") return;
            const add = chat.addToolOutput ?? chat.addToolResult;
            void add.call(chat, { tool: "locate", toolCallId: toolCall.toolCallId, ...result });
          },
        });
        await chat.sendMessage({ text: "use locate" });
        await until("the answer", () => chat.status === "ready" && said([chat.lastMessage])[0] !== "");
        assert.match(said([chat.lastMessage])[0], /locate/);
        assert.equal(chat.messages.length, 2);
        await agrees(chat);
        await chat.sendMessage({ text: "thanks" });
        ready(chat);
        await agrees(chat);
      }
    });

    test("an answer says who made it, with what, and when", async () => {
      const chat = open("metadata");
      await chat.sendMessage({ text: "use compute 6 * 7" });
      ready(chat);
      const { metadata } = chat.plain.at(-1);
      assert.equal(metadata.agent, "demo");
      assert.equal(metadata.finishReason, "stop");
      assert.ok(metadata.model && metadata.usage.inputTokens > 0 && metadata.usage.outputTokens > 0);
      assert.ok(Date.parse(metadata.createdAt) <= Date.parse(metadata.finishedAt));
      const told = await stored(chat.id);
      assert.deepEqual(told.at(-1).metadata, metadata);
      await validateUIMessages({ messages: told });
    });

    test("a client that sends its last message only has the same conversation", async () => {
      const last = {
        prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
          body: { id, messages: messages.slice(-1), trigger, messageId },
        }),
      };
      const chat = open("last", { transport: last });
      await chat.sendMessage({ text: "one" });
      await chat.sendMessage({ text: "two" });
      await chat.regenerate();
      await chat.sendMessage({ text: "other", messageId: chat.messages[0].id });
      await chat.sendMessage({ text: "go on" });
      ready(chat);
      assert.deepEqual(said(chat.plain), ["other", "You said: other", "go on", "You said: go on"]);
      await agrees(chat);
    });

    if (major === 5) return;

    test("a call is allowed, and one is denied", async () => {
      const { lastAssistantMessageIsCompleteWithApprovalResponses } = MAJORS[major];
      for (const approved of [true, false]) {
        const chat = open(`approval-${approved}`, {
          sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
        });
        await chat.sendMessage({ text: 'use read_file {"path": "README.md"}' });
        ready(chat);
        const [call] = calls(chat.lastMessage);
        assert.equal(call.state, "approval-requested");
        await chat.addToolApprovalResponse({ id: call.approval.id, approved, reason: "because" });
        await until("the answer", () => chat.status === "ready" && said([chat.lastMessage])[0] !== "");
        const [answered] = calls(chat.lastMessage);
        assert.equal(answered.state, approved ? "output-available" : "output-denied");
        assert.deepEqual([answered.approval.id, answered.approval.approved], [call.approval.id, approved]);
        const usage = chat.plain.at(-1).metadata.usage;
        assert.deepEqual((await stored(chat.id)).at(-1).metadata.usage, usage);
        await agrees(chat);
        await chat.sendMessage({ text: "thanks" });
        ready(chat);
        await agrees(chat);
      }
    });

    test("a call of a sub-agent is allowed in the message that it came in, and one is denied", async () => {
      const { lastAssistantMessageIsCompleteWithApprovalResponses } = MAJORS[major];
      for (const approved of [true, false]) {
        const id = `beneath-${approved}`;
        const chat = open(id, {
          sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
        });
        await chat.sendMessage({ text: `delegate ${JSON.stringify({ task: "use compute 6 * 7" })}` });
        ready(chat);
        const asked = calls(chat.lastMessage).find((call) => call.type === "tool-compute");
        assert.equal(asked?.state, "approval-requested", JSON.stringify(chat.plain));
        assert.deepEqual(asked.input, { expression: "6 * 7" });
        // A page that is opened meanwhile can answer just so.
        const page = open(id, { messages: await stored(chat.id) });
        assert.deepEqual(calls(page.plain.at(-1)).map(({ toolCallId, state }) => [toolCallId, state]), calls(chat.plain.at(-1)).map(({ toolCallId, state }) => [toolCallId, state]));
        await chat.addToolApprovalResponse({ id: asked.approval.id, approved });
        await until("the answer", () => chat.status === "ready" && said([chat.lastMessage])[0] !== "");
        const now = Object.fromEntries(calls(chat.lastMessage).map((call) => [call.type, call]));
        assert.equal(now["tool-compute"].state, approved ? "output-available" : "output-denied");
        assert.equal(now["tool-delegate"].state, "output-available");
        if (approved) assert.match(now["tool-delegate"].output, /42/);
        assert.equal(chat.messages.length, 2);
        await chat.sendMessage({ text: "thanks" });
        ready(chat);
        const told = await stored(chat.id);
        assert.equal(told.length, 4);
        assert.deepEqual(said(told), said(chat.plain));
      }
    });

    test("what the agent and a sub-agent ask at once is sent when both are answered, whichever comes first", async () => {
      const { lastAssistantMessageIsCompleteWithApprovalResponses } = MAJORS[major];
      const task = JSON.stringify({ task: "use compute 6 * 7" });
      const text = `use read_file {"path": "README.md"} and delegate ${task}`;
      for (const [first, reload] of [["compute", false], ["read_file", false], ["compute", true]]) {
        const id = `both-${first}-${reload}`;
        const options = { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses };
        let chat = open(id, options);
        await chat.sendMessage({ text });
        ready(chat);
        const seen = calls(chat.plain.at(-1));
        await validateUIMessages({ messages: chat.plain });
        assert.deepEqual(calls((await stored(chat.id)).at(-1)).map(({ toolCallId, state }) => [toolCallId, state]), seen.map(({ toolCallId, state }) => [toolCallId, state]));
        if (reload) chat = open(id, { ...options, messages: await stored(chat.id) });
        for (const name of [first, first === "compute" ? "read_file" : "compute"]) {
          assert.equal(chat.status, "ready");
          assert.equal(chat.lastMessage.metadata?.finishReason, "tool-calls");
          const asked = calls(chat.lastMessage).find((call) => call.type === `tool-${name}`);
          await chat.addToolApprovalResponse({ id: asked.approval.id, approved: true });
        }
        await until("the answer", () => chat.status === "ready" && said([chat.lastMessage])[0] !== "");
        assert.deepEqual(new Set(calls(chat.lastMessage).map((call) => call.state)), new Set(["output-available"]));
        assert.equal(chat.messages.length, 2);
        await chat.sendMessage({ text: "thanks" });
        ready(chat);
        await agrees(chat);
      }
    });

    test("what was asked beside something that is answered elsewhere is sent from a page that is loaded then", async () => {
      const { lastAssistantMessageIsCompleteWithApprovalResponses } = MAJORS[major];
      const first = open("left");
      await first.sendMessage({ text: 'use read_file {"path": "README.md"} and read_file {"path": "README.md"}' });
      ready(first);
      const [one, two] = calls(first.plain.at(-1));
      const answers = [{ toolCallId: one.toolCallId, approved: true }];
      const response = await fetch(`${server.base}/api/v1/threads/${first.id}/answers`, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "text/event-stream" },
        body: JSON.stringify({ answers }),
      });
      assert.equal(response.status, 200);
      await response.text();
      const options = { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses };
      const chat = open("left", { ...options, messages: await stored(first.id) });
      await chat.addToolApprovalResponse({ id: two.approval.id, approved: true });
      await until("the answer", () => chat.status === "ready" && said([chat.lastMessage])[0] !== "");
      await agrees(chat);
    });

    test("an answer that goes on after an approval is resumed to the whole of it", async () => {
      const chat = open("resumed");
      await chat.sendMessage({ text: 'slow 40ms use read_file {"path": "README.md"} then say 60 words' });
      ready(chat);
      const [call] = calls(chat.lastMessage);
      await chat.addToolApprovalResponse({ id: call.approval.id, approved: true });
      const going = chat.sendMessage();
      await until("some words", () => said([chat.lastMessage])[0].length > 10);
      assert.equal(chat.status, "streaming");
      const page = open("resumed", { messages: await stored(chat.id) });
      await page.resumeStream();
      ready(page);
      await going;
      ready(chat);
      assert.equal(said([page.lastMessage])[0].split(" ").length, 60);
      // Clients of `ai` 6 are not told what was answered elsewhere.
      const parts = (messages) =>
        messages.map((message) =>
          message.parts.map((part) => (major === 6 ? { ...part, approval: undefined } : part)),
        );
      assert.deepEqual(parts(page.plain), parts(await stored(chat.id)));
      assert.deepEqual(said(page.plain), said(chat.plain));
    });
  });
}

test("a stream is resumed where a client stands that keeps what it has", async () => {
  const Chat = chatOf(7);
  const chat = new Chat({ base: server.base, id: "from" });
  const asked = chat.sendMessage({ text: SLOW });
  await until("some words", () => chat.lastMessage?.role === "assistant" && said([chat.lastMessage])[0].length > 10);
  const chunks = async (query) => {
    const response = await fetch(`${server.base}/api/chat/from/stream${query}`);
    const frames = (await response.text()).split("\n\n");
    return frames.filter((frame) => frame.startsWith("data: "));
  };
  const [whole, rest] = await Promise.all([chunks(""), chunks("?startIndex=5")]);
  await asked;
  assert.deepEqual(rest, whole.slice(5));
});

test("what happens in the thread meanwhile is told as transient data", async () => {
  const Chat = chatOf(7);
  const told = [];
  const begun = await fetch(`${server.base}/api/v1/threads`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  const { key } = await begun.json();
  const chat = new Chat({ base: server.base, id: key, onData: (part) => told.push(part) });
  const asked = chat.sendMessage({ text: SLOW });
  await until("some words", () => chat.lastMessage?.role === "assistant" && said([chat.lastMessage])[0].length > 10);
  const response = await fetch(`${server.base}/v1/threads/thread_${key.replaceAll("-", "")}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ metadata: { topic: "spring" } }),
  });
  assert.equal(response.status, 200, await response.text());
  await asked;
  ready(chat);
  const change = told.find((part) => part.type === "data-thread-updated");
  assert.equal(change?.data.metadata.topic, "spring");
  assert.ok(!JSON.stringify(chat.plain).includes("data-thread-updated"));
});
