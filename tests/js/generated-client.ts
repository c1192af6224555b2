// A conversation with a client that openapi-typescript and openapi-fetch make of the server's document.
// `generated-client.test.mjs` writes `openapi.d.ts` beside a copy of this file, checks the types and runs it.
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./openapi.d.ts";

type EventRecord = components["schemas"]["EventRecord"];

const client = createClient<paths>({ baseUrl: process.argv[2] });
const params = { path: { key: "talk" } };

/** The events of a stream, each with its type. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<EventRecord> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      const data = frame.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice("data: ".length)) as EventRecord;
    }
  }
}

/** Posts a message and reads the events until its run ends. */
async function say(content: string): Promise<EventRecord[]> {
  const { data, error } = await client.POST("/api/v1/threads/{key}/messages", {
    params,
    body: { content, stream: true },
    parseAs: "stream",
  });
  assert.equal(error, undefined);
  const events: EventRecord[] = [];
  for await (const event of eventsOf(data as unknown as ReadableStream<Uint8Array>)) {
    events.push(event);
  }
  return events;
}

const events = await say("Good morning");
const deltas = events.map((event) => (event.type === "chunk.emitted" ? event.chunkType : undefined));
assert.ok(deltas.includes("text-delta"), `${deltas}`);
const last = events.at(-1);
assert.ok(last?.type === "thread.finished" && last.executionId.length > 0, JSON.stringify(last));

await say("compute expression=6*7");
const pending = await client.GET("/api/v1/threads/{key}/pending", { params });
const call = pending.data?.calls[0];
assert.equal(call?.kind, "approval");
const answered = await client.POST("/api/v1/threads/{key}/answers", {
  params,
  body: { answers: [{ toolCallId: call!.toolCallId, approved: true }] },
});
assert.equal(answered.response.status, 202);
const deadline = Date.now() + 60_000;
for (;;) {
  const { data } = await client.GET("/api/v1/threads/{key}", { params });
  if (data?.status !== "streaming") break;
  assert.ok(Date.now() < deadline, "the run does not end");
  await setTimeout(20);
}
const { data: messages } = await client.GET("/api/v1/threads/{key}/messages", { params });
assert.deepEqual(
  messages?.messages.slice(0, 4).map((message) => message.role),
  ["user", "assistant", "user", "assistant"],
);
assert.match(JSON.stringify(messages?.messages.at(-1)?.content), /42/);

const missing = await client.GET("/api/v1/threads/{key}", { params: { path: { key: "none" } } });
assert.equal(missing.error?.error.code, "thread_not_found");
console.log(`${events.length} events`);
