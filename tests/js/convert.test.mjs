// `loomline convert` against the real clients of `ai` 5, 6 and 7: streams that the library writes
// here and now, read by its own client and by ours.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { z } from "zod";

const root = fileURLToPath(new URL("../..", import.meta.url));
const binary = process.env.LOOMLINE_BIN ?? join(root, "target/debug/loomline");
const STREAMS = 12;
globalThis.AI_SDK_LOG_WARNINGS = false;

/** Numbers that follow from a seed, so that a failure can be seen again. */
function dice(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function loomline(input, ...args) {
  assert.ok(existsSync(binary), `there is no ${binary}; build it first: cargo build`);
  const done = spawnSync(binary, args, { input, encoding: "utf8", maxBuffer: 1 << 28 });
  assert.equal(done.status, 0, `loomline ${args.join(" ")}: ${done.stderr}`);
  return done.stdout;
}

const WORDS = ["kelp", "naïve ", "日本", "😀", ' "quoted"', "\\", "\n\n", "data: x\n", "\u2028", "{}", ""];

/** What a model streams in one step; the first steps of a run call tools. */
function step(roll, place, last) {
  const parts = [{ type: "stream-start", warnings: [] }];
  const block = (kind, id) => {
    parts.push({ type: `${kind}-start`, id });
    for (let n = roll(6); n > 0; n--) parts.push({ type: `${kind}-delta`, id, delta: WORDS[roll(WORDS.length)] });
    parts.push({ type: `${kind}-end`, id });
  };
  if (roll(2)) block("reasoning", `r${place}`);
  for (let n = roll(3); n > 0; n--) block("text", `t${place}-${n}`);
  if (!last) {
    for (let n = 1 + roll(2); n > 0; n--) {
      const id = `call-${place}-${n}`;
      const input =
        roll(5) === 0 ? '{"city": "Ber' : JSON.stringify({ city: WORDS[roll(4)], days: roll(9), at: [1.5, null, true] });
      parts.push({ type: "tool-input-start", id, toolName: "weather" });
      for (let at = 0; at < input.length; ) {
        const to = at + 1 + roll(9);
        parts.push({ type: "tool-input-delta", id, delta: input.slice(at, to) });
        at = to;
      }
      parts.push({ type: "tool-input-end", id });
      parts.push({ type: "tool-call", toolCallId: id, toolName: "weather", input });
    }
  }
  return parts;
}

const VERSIONS = [
  {
    major: 5,
    package: "ai5",
    model: "MockLanguageModelV2",
    finish: (reason) => ({
      finishReason: reason,
      usage: { inputTokens: 7, outputTokens: 3, totalTokens: 10 },
    }),
  },
  {
    major: 6,
    package: "ai6",
    model: "MockLanguageModelV3",
    finish: (reason) => ({
      finishReason: { unified: reason, raw: reason },
      usage: { inputTokens: { total: 7 }, outputTokens: { total: 3 } },
    }),
  },
  {
    major: 7,
    package: "ai",
    model: "MockLanguageModelV4",
    finish: (reason) => ({
      finishReason: { unified: reason, raw: reason },
      usage: { inputTokens: { total: 7 }, outputTokens: { total: 3 } },
    }),
  },
];

/** The bytes of a stream as the library's server sends them. */
async function written(version, seed) {
  const ai = await import(version.package);
  const mocks = await import(`${version.package}/test`);
  const roll = dice(seed);
  const steps = 1 + roll(3);
  const scripts = Array.from({ length: steps }, (_, place) => {
    const last = place === steps - 1;
    const parts = step(roll, place, last);
    parts.push({ type: "finish", ...version.finish(last ? "stop" : "tool-calls") });
    return parts;
  });
  let place = 0;
  const model = new mocks[version.model]({
    doStream: async () => ({ stream: mocks.convertArrayToReadableStream(scripts[place++] ?? []) }),
  });
  const weather = ai.tool({
    inputSchema: z.object({ city: z.string(), days: z.number(), at: z.array(z.any()) }),
    execute: async ({ days }) => {
      if (days === 8) throw new Error("no weather that far");
      return { days, rows: [{ t: 1.5 }, null], text: "☀" };
    },
  });
  const result = ai.streamText({
    model,
    prompt: "Weather?",
    tools: { weather },
    stopWhen: ai.stepCountIs(steps),
    onError: () => {},
  });
  const response = result.toUIMessageStreamResponse({
    generateMessageId: () => `msg-${seed}`,
    originalMessages: [],
    messageMetadata: ({ part }) => (part.type === "start" ? { seed, deep: { a: 1 } } : part.type === "finish" ? { deep: { b: [seed] } } : undefined),
    sendReasoning: true,
    sendSources: true,
  });
  return await response.text();
}

/** The message that the library's client builds, and what it could not read. */
async function read(version, sse) {
  const ai = await import(version.package);
  const bad = [];
  const bytes = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(sse));
      controller.close();
    },
  });
  const chunks = ai
    .parseJsonEventStream({ stream: bytes, schema: ai.uiMessageChunkSchema })
    .pipeThrough(
      new TransformStream({
        transform(result, controller) {
          if (result.success) controller.enqueue(result.value);
          else bad.push(result.error);
        },
      }),
    );
  let message;
  for await (const snapshot of ai.readUIMessageStream({ stream: chunks, onError: (error) => bad.push(error) })) {
    message = snapshot;
  }
  return { message: message && JSON.parse(JSON.stringify(message)), bad };
}

for (const version of VERSIONS) {
  test(`what ai ${version.major} streams becomes the message that its client builds`, async () => {
    for (let seed = 1; seed <= STREAMS; seed++) {
      const sse = await written(version, seed);
      const theirs = await read(version, sse);
      assert.deepEqual(theirs.bad, [], `seed ${seed}`);
      const ours = loomline(sse, "convert", "--from", "ai-sdk-stream", "--to", "ai-sdk-ui", "--ai-sdk", `${version.major}`);
      assert.deepEqual(JSON.parse(ours), [theirs.message], `seed ${seed}`);
    }
  });

  test(`what we stream of a message is the message again for the client of ai ${version.major}`, async () => {
    const ai = await import(version.package);
    const major = ["--ai-sdk", `${version.major}`];
    for (let seed = 1; seed <= STREAMS; seed++) {
      const { message } = await read(version, await written(version, seed));
      const ui = JSON.stringify([message]);
      const sse = loomline(ui, "convert", "--from", "ai-sdk-ui", "--to", "ai-sdk-stream", ...major);
      const again = await read(version, sse);
      assert.deepEqual(again.bad, [], `seed ${seed}`);
      assert.deepEqual(again.message, message, `seed ${seed}`);
      await ai.validateUIMessages({ messages: [again.message] });
    }
  });
}

test("a history of Pydantic AI is shown by the client as messages and as a stream alike", async () => {
  const ai = await import("ai");
  const history = JSON.stringify([
    { parts: [{ content: "You are brief.", part_kind: "system-prompt" }, { content: "Weather?", part_kind: "user-prompt" }], kind: "request" },
    {
      parts: [
        { content: "Look.", signature: "sig", provider_name: "anthropic", part_kind: "thinking" },
        { tool_name: "weather", args: '{"city":"Ber', tool_call_id: "c1", part_kind: "tool-call" },
      ],
      kind: "response",
    },
    { parts: [{ tool_name: "weather", content: "no such city", tool_call_id: "c1", outcome: "failed", part_kind: "tool-return" }], kind: "request" },
    { parts: [{ content: "I can't tell.", part_kind: "text" }], kind: "response" },
  ]);
  const messages = JSON.parse(loomline(history, "convert", "--from", "pydantic-ai", "--to", "ai-sdk-ui"));
  await ai.validateUIMessages({ messages });
  assert.deepEqual(messages.map((message) => message.role), ["user", "assistant"]);
  const sse = loomline(history, "convert", "--from", "pydantic-ai", "--to", "ai-sdk-stream");
  const { message, bad } = await read(VERSIONS[2], sse);
  assert.deepEqual(bad, []);
  assert.deepEqual(message, messages[1]);
  const back = loomline(JSON.stringify(messages), "convert", "--from", "ai-sdk-ui", "--to", "pydantic-ai", "--trust-namespace");
  assert.equal(back.trim(), history);
});
