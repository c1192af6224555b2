// The streams of @loomline/client over connections that break: each event once, in order.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { after, test } from "node:test";
import { ConnectionError, Loomline, NotFoundError, ServerError, textOf } from "../../clients/typescript/dist/index.js";
import { until } from "./chat.mjs";
import { Loomline as Server } from "./loomline.mjs";
import { Wire } from "./wire.mjs";

const server = await Server.forTests(`
default_agent = "demo"
[models.m]
provider = "scripted"
[agents.demo]
model = "m"
tools = ["compute"]
[agents.front]
model = "m"
handoffs = ["demo"]
[agents.lead]
model = "m"
[[agents.lead.subagents]]
agent = "demo"
name = "delegate"
description = "Does something."
parameters = { type = "object", properties = { task = { type = "string" } }, required = ["task"] }
prompt = "{task}"
`);
const clientOf = ({ base }, options) => new Loomline({ baseUrl: base, ...options });
const client = clientOf(server);
const SLOW = "slow 5ms say 200 words";

async function all(iterable) {
  const entries = [];
  for await (const entry of iterable) entries.push(entry);
  return entries;
}

/** Numbers that look random and are the same each time. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** Passes bytes on to a server, and cuts each connection after a number of bytes. */
async function brittle(bytes) {
  const sockets = new Set();
  const wire = { nCuts: 0, sockets };
  const listener = createServer((near) => {
    const far = connect(Number(new URL(server.base).port), "127.0.0.1");
    let left = bytes();
    for (const [socket, other] of [[near, far], [far, near]]) {
      sockets.add(socket);
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    near.pipe(far);
    far.on("data", (chunk) => {
      near.write(chunk.subarray(0, left));
      left -= chunk.length;
      if (left > 0) return;
      wire.nCuts += 1;
      // What was written arrives; then the connection breaks.
      setTimeout(() => near.resetAndDestroy(), 5);
      far.destroy();
    });
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  after(() => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  wire.base = `http://127.0.0.1:${listener.address().port}`;
  return wire;
}

/** Events without their ids: the id of a chunk changes when it is stored. */
const bare = (events) => events.map(({ id, ...event }) => event);

/** The events of a run as an undisturbed client reads them. */
const undisturbed = async (key, content, options) => bare(await all(client.thread(key).stream(content, options)));

test("a stream over a breaking wire gives each event once, in order", async () => {
  const random = numbers(7);
  const wire = await brittle(() => 400 + Math.floor(random() * 4_000));
  const request = { idempotencyKey: "once" };
  const events = await all(clientOf(wire).thread("brittle").stream(SLOW, request));
  assert.ok(wire.nCuts >= 5, `${wire.nCuts} cuts`);
  assert.deepEqual(bare(events), await undisturbed("brittle", SLOW, request));
  assert.equal((await client.thread("brittle").messages()).messages.length, 2);
});

test("a stream cut before its first event posts its message once", async () => {
  let nPosts = 0;
  const cutOnce = async (url, init) => {
    const response = await fetch(url, init);
    if (init.method !== "POST" || (nPosts += 1) > 1) return response;
    await response.body.cancel();
    return new Response(new ReadableStream({ start: (controller) => controller.error(new TypeError("terminated")) }));
  };
  const { text } = await clientOf(server, { fetch: cutOnce }).thread("early").run("compute 6*7");
  assert.deepEqual([text, nPosts], ["compute gave 42.", 2]);
  assert.equal((await client.thread("early").messages()).messages.length, 2);
});

test("a follower over a breaking wire gets each event once, in order", async () => {
  const random = numbers(11);
  const wire = await brittle(() => 400 + Math.floor(random() * 4_000));
  const thread = client.thread("followed");
  await thread.post(SLOW);
  const events = await all(clientOf(wire).thread("followed").follow({ until: "rest" }));
  assert.ok(wire.nCuts >= 5, `${wire.nCuts} cuts`);
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index + 1));
  assert.deepEqual(bare(events), bare(await all(thread.follow({ until: "rest" }))));
});

test("a queued message's stream, cut while it waits, has its own run", async () => {
  const wire = await Wire.to(server.base);
  try {
    await client.thread("queued").post("slow 5ms say 100 words");
    const [question, request] = ["slow 5ms say 20 words", { idempotencyKey: "second" }];
    const events = [];
    for await (const event of clientOf(wire).thread("queued").stream(question, request)) {
      events.push(event);
      if (events.length === 1) wire.cut();
    }
    assert.deepEqual(bare(events), await undisturbed("queued", question, request));
    assert.equal(events.filter(({ type }) => type === "execution.created").length, 1);
  } finally {
    await wire.close();
  }
});

test("a stream over a breaking wire goes on after a handoff", async () => {
  const wire = await brittle(() => 3_000);
  const request = { agent: "front", idempotencyKey: "handed" };
  const events = await all(clientOf(wire).thread("handed").stream("transfer_to_demo", request));
  assert.ok(wire.nCuts >= 2, `${wire.nCuts} cuts`);
  assert.deepEqual(bare(events), await undisturbed("handed", "transfer_to_demo", request));
  assert.equal(events.filter(({ type }) => type === "thread.finished").length, 2);
});

test("events of sub-agents arrive once over a breaking wire", async () => {
  const wire = await brittle(() => 5_000);
  const options = { agent: "lead", subagents: true };
  const events = await all(clientOf(wire).thread("team").stream('delegate "slow 5ms say 60 words"', options));
  assert.ok(wire.nCuts >= 2, `${wire.nCuts} cuts`);
  const own = events.filter(({ type }) => type !== "subagent");
  const below = events.filter(({ type }) => type === "subagent");
  const { threadKey, path } = below[0];
  assert.deepEqual(path.map((call) => call.threadKey), ["team"]);
  assert.deepEqual(own.map(({ seq }) => seq), [...new Set(own.map(({ seq }) => seq))].sort((a, b) => a - b));
  const log = await all(client.thread(threadKey).follow({ until: "rest" }));
  assert.deepEqual(below.map(({ event }) => event.seq), log.map(({ seq }) => seq));
  assert.equal(own.at(-1).type, "thread.finished");
});

test("a stream goes on after the server was killed in an answer", async () => {
  const crashing = await Server.start();
  try {
    const thread = clientOf(crashing).thread("killed");
    const events = [];
    for await (const event of thread.stream("slow 20ms say 60 words")) {
      events.push(event);
      if (events.length === 20) {
        await crashing.kill("SIGKILL");
        await crashing.restart();
      }
    }
    const ids = events.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    const log = await all(thread.follow({ until: "rest" }));
    // Chunks that were shown and not stored are void. Ids of chunks change when they are stored.
    const reset = events.find(({ chunkType }) => chunkType === "data-step-reset");
    const shown = bare(events.slice(events.indexOf(reset)));
    assert.deepEqual(shown, bare(log.filter(({ seq }) => seq >= reset.seq)));
    assert.equal(shown.at(-1).type, "thread.finished");
    assert.ok(events.some(({ chunkType }) => chunkType === "data-execution-resumed"));
    const { messages } = await thread.messages();
    assert.equal(textOf(messages.at(-1).content).split(" ").length, 60);
    assert.equal(messages.length, 2);
  } finally {
    await crashing.stop();
  }
});

test("a server that stops in good order does not end a stream", async () => {
  const stopping = await Server.start();
  try {
    const thread = clientOf(stopping).thread("stopped");
    const run = thread.run("slow 20ms say 60 words");
    await until("the run executes", async () => (await thread.read().catch(() => ({}))).status === "streaming");
    await stopping.kill("SIGTERM");
    await stopping.restart();
    assert.equal((await run).text.split(" ").length, 60);
  } finally {
    await stopping.stop();
  }
});

test("a consumer that leaves the loop leaves no connection", async () => {
  const wire = await Wire.to(server.base);
  try {
    const user = clientOf(wire);
    for (const events of [user.thread("left").stream(SLOW), user.thread("left").follow(), user.follow()]) {
      for await (const event of events) if (event) break;
    }
    const open = async () => (await (await fetch(`${server.base}/api/v1/health`)).json()).openStreams;
    await until("all streams are closed", async () => (await open()) === 0, 5_000);
  } finally {
    await wire.close();
  }
});

test("a signal ends a stream in the middle, and its connection", async () => {
  const stop = new AbortController();
  const seen = [];
  await client.createThread({ key: "aborted" });
  const reading = (async () => {
    for await (const event of client.thread("aborted").follow({ signal: stop.signal })) {
      seen.push(event);
      if (seen.length === 2) setTimeout(() => stop.abort(), 20);
    }
  })();
  await assert.rejects(reading, { name: "AbortError" });
  assert.equal(seen.length, 2);
  await assert.rejects(all(client.thread("aborted").stream("x", { signal: AbortSignal.abort() })), { name: "AbortError" });
  assert.equal((await client.thread("aborted").messages()).messages.length, 0);
});

test("an abort in the loop ends the stream before its next event", async () => {
  const stop = new AbortController();
  const seen = [];
  const twoEvents = async () => new Response('id: 1\ndata: {"seq":1}\n\nid: 2\ndata: {"seq":2}\n\n');
  const reading = (async () => {
    for await (const event of clientOf(server, { fetch: twoEvents }).thread("k").follow({ signal: stop.signal })) {
      seen.push(event.seq);
      stop.abort();
    }
  })();
  await assert.rejects(reading, { name: "AbortError" });
  assert.deepEqual(seen, [1]);
});

test("a consumer that does not read makes the client read nothing", async () => {
  let nPulls = 0;
  const frame = new TextEncoder().encode('id: 1\nevent: item.created\ndata: {"seq":1,"type":"item.created"}\n\n');
  const pull = (controller) => {
    nPulls += 1;
    controller.enqueue(frame);
  };
  const endless = async () => new Response(new ReadableStream({ pull }, { highWaterMark: 0 }));
  const events = clientOf(server, { fetch: endless }).thread("k").follow();
  await events.next();
  await events.next();
  await new Promise((done) => setTimeout(done, 50));
  assert.equal(nPulls, 2);
  await events.return();
});

test("a stream gives up without a server after the time of reconnectFor", async () => {
  const wire = await Wire.to(server.base);
  await client.createThread({ key: "silent" });
  const events = clientOf(wire, { reconnectFor: 1 }).thread("silent").follow();
  await events.next();
  await wire.close();
  const began = performance.now();
  await assert.rejects(all(events), (error) => error instanceof ConnectionError && /no event for 1 s/.test(error.message));
  assert.ok(performance.now() - began < 4_000);
});

test("a connection that says nothing is replaced, and another one given up", async () => {
  let nRequests = 0;
  let nMute = 1;
  const mute = async (url, init) => {
    nRequests += 1;
    return nRequests <= nMute ? new Response(new ReadableStream()) : fetch(url, init);
  };
  await client.createThread({ key: "mute" });
  const thread = clientOf(server, { fetch: mute, reconnectFor: 0.5 }).thread("mute");
  const events = thread.follow();
  assert.equal((await events.next()).value.seq, 1);
  assert.equal(nRequests, 2);
  await events.return();
  nRequests = 0;
  nMute = Infinity;
  await assert.rejects(thread.follow().next(), ConnectionError);
  assert.equal(nRequests, 2);
});

test("a stream ends with the error that the server sends", async () => {
  const thread = await client.createThread({ key: "gone" });
  const events = thread.follow();
  await events.next();
  await Promise.all([assert.rejects(all(events), NotFoundError), thread.delete()]);
});

test("a stream is not repeated after an error that the server sends", async () => {
  let nRequests = 0;
  const failing = async () => {
    nRequests += 1;
    return new Response('event: error\ndata: {"error":{"code":"store_failed","message":"The disk failed."}}\n\n');
  };
  const error = await clientOf(server, { fetch: failing }).thread("k").follow().next().catch((failed) => failed);
  assert.ok(error instanceof ServerError);
  assert.deepEqual([error.status, error.code, error.message, nRequests], [503, "store_failed", "The disk failed.", 1]);
});

test("an id of a deleted thread is refused", async () => {
  const thread = await client.createThread({ key: "again" });
  const { value } = await thread.follow().next();
  await thread.delete();
  await client.createThread({ key: "again" });
  await assert.rejects(all(thread.follow({ after: value.id })), { name: "ConflictError", code: "foreign_event_id" });
});

test("unknown types of events and unknown fields pass through", async () => {
  const sent = 'id: 9.aa\nevent: moon.risen\ndata: {"seq":9,"type":"moon.risen","phase":"full"}\n\n: comment\n\n';
  const fetched = async () => new Response(sent);
  const { value } = await clientOf(server, { fetch: fetched }).thread("k").follow().next();
  assert.deepEqual(value, { id: "9.aa", seq: 9, type: "moon.risen", phase: "full" });
});

test("lines can end with a carriage return, and data can have several", async () => {
  const sent = 'id: 1\r\nevent: a\r\ndata: {"seq":1,\r\ndata: "text":"é"}\r\n\r\n';
  const bytes = new TextEncoder().encode(sent);
  const body = new ReadableStream({ start: (controller) => {
    for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
  } });
  const { value } = await clientOf(server, { fetch: async () => new Response(body) }).thread("k").follow().next();
  assert.deepEqual(value, { id: "1", type: "a", seq: 1, text: "é" });
});

test("each change of the newest thread is a notice", async () => {
  const stop = new AbortController();
  const changes = [];
  const reading = (async () => {
    for await (const { thread, status } of client.follow({ signal: stop.signal })) {
      if (thread === "newest") changes.push(status);
    }
  })();
  await client.createThread({ key: "newest" });
  await until("the new thread", () => changes.length === 1);
  await client.thread("newest").run("slow say 20 words");
  await until("the end of the run", () => changes.includes("streaming") && changes.at(-1) === "open");
  stop.abort();
  await assert.rejects(reading, { name: "AbortError" });
});

test("notices about all threads go on over a broken wire, each once", async () => {
  const wire = await Wire.to(server.base);
  try {
    const stop = new AbortController();
    const notices = [];
    const reading = (async () => {
      for await (const notice of clientOf(wire).follow({ signal: stop.signal })) notices.push(notice);
    })();
    await until("it is ready", () => notices.length > 0);
    await client.createThread({ key: "news-1" });
    await until("the first notice", () => notices.some(({ thread }) => thread === "news-1"));
    wire.cut();
    await client.createThread({ key: "news-2" });
    await until("the second notice", () => notices.some(({ thread }) => thread === "news-2"));
    stop.abort();
    await assert.rejects(reading, { name: "AbortError" });
    assert.equal(notices.filter(({ type }) => type === "ready").length, 1);
    const news = notices.filter(({ thread }) => thread?.startsWith("news-"));
    assert.deepEqual(news.map(({ type, thread, status }) => [type, thread, status]), [
      ["thread", "news-1", "open"],
      ["thread", "news-2", "open"],
    ]);
  } finally {
    await wire.close();
  }
});
