// The thread store of @loomline/client: what a page shows equals what the server stores.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { AuthenticationError, Loomline, NotFoundError, ServerError, ThreadStore, textOf } from "../../clients/typescript/dist/index.js";
import { until } from "./chat.mjs";
import { Loomline as Server } from "./loomline.mjs";
import { Wire } from "./wire.mjs";

const server = await Server.forTests();
const client = new Loomline({ baseUrl: server.base });

/** A store with a subscriber, as a page has it. */
function opened(t, key, { base = server.base, fetch, ...options } = {}) {
  const store = new ThreadStore({ client: new Loomline({ baseUrl: base, fetch }), key, ...options });
  t.after(store.subscribe(() => {}));
  return store;
}

const texts = ({ messages }) => messages.filter(({ type }) => type === "message").map(({ content }) => textOf(content));

/** Waits until the store rests, and compares it with the server. */
async function agrees(store, key, nMessages) {
  await until("the store rests", async () => {
    const { status, messages } = store.getSnapshot();
    return status === "ready" && messages.length === nMessages && messages.every((message) => message.status !== "pending");
  });
  const { messages } = await client.thread(key).messages();
  assert.deepEqual(JSON.parse(JSON.stringify(store.getSnapshot().messages)), messages);
}

test("a store shows the conversation that the server stores", async (t) => {
  const store = opened(t, "talk");
  await until("the thread is known to be absent", () => store.getSnapshot().status === "ready");
  assert.ok(await store.send("think about looms"));
  await agrees(store, "talk", 2);
  assert.ok(await store.send("compute 2+3*4"));
  await agrees(store, "talk", 4);
  await store.send("fail after 2");
  await agrees(store, "talk", 6);
});

test("a store shows an answer while it is written", async (t) => {
  const store = opened(t, "written");
  const lengths = new Set();
  t.after(store.subscribe(() => lengths.add(textOf(store.getSnapshot().messages.at(-1)?.content ?? []).length)));
  await store.send("slow 20ms say 30 words");
  await agrees(store, "written", 2);
  assert.ok(lengths.size > 10, `${lengths.size} different lengths`);
});

test("a page that is opened in the middle shows the whole answer", async (t) => {
  await client.thread("middle").post("slow 20ms say 60 words");
  await client.thread("middle").post("second");
  await new Promise((done) => setTimeout(done, 400));
  const store = opened(t, "middle");
  await until("the beginning of the answer", () => texts(store.getSnapshot())[1]);
  assert.match(texts(store.getSnapshot())[1], /^the loom weaves a thread of/);
  assert.equal(store.getSnapshot().status, "running");
  await agrees(store, "middle", 4);
});

test("two stores and another client see the same", async (t) => {
  const [one, two] = [opened(t, "shared"), opened(t, "shared")];
  await one.send("Good morning");
  // The second page was opened before the thread existed, and says something itself.
  await two.send("Good evening");
  await client.thread("shared").run("compute 1+1");
  await agrees(one, "shared", 6);
  await agrees(two, "shared", 6);
});

test("a store follows approvals and denials", async (t) => {
  const store = opened(t, "sums", { agent: "careful" });
  await store.send("compute 6*7");
  await until("a pending call", () => store.getSnapshot().pending.length === 1);
  await until("the call", () => store.getSnapshot().messages.at(-1).content[0]?.state === "approval-requested");
  assert.ok(await store.approve(store.getSnapshot().pending[0].toolCallId));
  await until("the answer", () => texts(store.getSnapshot()).at(-1) === "compute gave 42.");
  await until("no pending call", () => store.getSnapshot().pending.length === 0);
  await agrees(store, "sums", (await client.thread("sums").messages()).messages.length);

  await store.send("compute 1+1");
  await until("another pending call", () => store.getSnapshot().pending.length === 1);
  // Another page answers, and this one is opened again.
  await client.thread("sums").deny(store.getSnapshot().pending[0].toolCallId, { reason: "no" });
  await until("no pending call", () => store.getSnapshot().pending.length === 0);
  await until("the answer", () => texts(store.getSnapshot()).at(-1).includes("no"));
  await agrees(store, "sums", (await client.thread("sums").messages()).messages.length);
  assert.equal(await store.approve("call_unknown"), false);
  assert.ok(store.getSnapshot().error instanceof NotFoundError);
});

test("an approval of an answer that was loaded is shown", async (t) => {
  await client.thread("loaded").run("compute 6*7", { agent: "careful" });
  const store = opened(t, "loaded");
  await until("a pending call", () => store.getSnapshot().pending.length === 1);
  await store.approve(store.getSnapshot().pending[0].toolCallId);
  await until("the answer", () => texts(store.getSnapshot()).at(-1) === "compute gave 42.");
  await agrees(store, "loaded", (await client.thread("loaded").messages()).messages.length);
});

test("a page that is opened in an answer that goes on after an approval shows all of it", async (t) => {
  const thread = client.thread("continued");
  const { pending } = await thread.run("slow 20ms think about compute 6*7 then say 60 words", { agent: "careful" });
  await thread.approve(pending[0].toolCallId);
  await until("the run goes on", async () => (await thread.read()).status === "streaming");
  let nLoads = 0;
  const counting = (url, init) => {
    nLoads += url.endsWith("/messages") ? 1 : 0;
    return fetch(url, init);
  };
  const store = opened(t, "continued", { fetch: counting });
  await until("the beginning of the answer", () => texts(store.getSnapshot()).at(-1)?.startsWith("the loom"));
  await agrees(store, "continued", 4);
  assert.equal(nLoads, 1);
});

test("a store shows open requests, answers and declines them", async (t) => {
  for (const [key, settle] of [
    ["flight", (store) => store.answerRequest("decision:seat", { option: "aisle" })],
    ["train", (store) => store.declineRequest("decision:seat", "No seat.")],
  ]) {
    const store = opened(t, key, { agent: "chooser" });
    await store.send("Which seats are there?");
    await until("an open request", () => store.getSnapshot().requests.length === 1);
    assert.ok(await settle(store));
    await until("no open request", () => store.getSnapshot().requests.length === 0);
    assert.equal((await client.thread(key).request("decision:seat").read()).state, key === "flight" ? "answered" : "declined");
  }
});

test("a store shows replaced, regenerated and cancelled answers", async (t) => {
  const store = opened(t, "changed");
  await store.send("compute 1+1");
  await agrees(store, "changed", 2);
  const thread = client.thread("changed");
  const replaced = await thread.replace(store.getSnapshot().messages[0].id, "compute 6*7");
  await until("the new answer", () => texts(store.getSnapshot()).join() === "compute 6*7,compute gave 42.");
  await agrees(store, "changed", 2);
  await thread.regenerate(replaced.itemId);
  await until("the reference", () => store.getSnapshot().messages.length === 3);
  await agrees(store, "changed", 3);
  await store.send("slow say 500 words");
  await until("some words", () => texts(store.getSnapshot()).at(-1).startsWith("the loom"));
  assert.ok(await store.cancel());
  await until("the end", () => store.getSnapshot().messages.at(-1).interruption);
  await agrees(store, "changed", 5);
});

test("an answer that was loaded and is then replaced is shown", async (t) => {
  const thread = client.thread("loaded-2");
  await thread.run("compute 6*7");
  const store = opened(t, "loaded-2");
  await until("the answer", () => texts(store.getSnapshot()).length === 2);
  await thread.regenerate(store.getSnapshot().messages[0].id);
  await until("the reference", () => store.getSnapshot().messages.some(({ type }) => type === "item_reference"));
  await agrees(store, "loaded-2", 3);
});

test("a store goes on over a broken wire and a killed server", async (t) => {
  const crashing = await Server.start();
  const wire = await Wire.to(crashing.base);
  t.after(async () => {
    await wire.close();
    await crashing.stop();
  });
  const store = opened(t, "crash", { base: wire.base });
  await store.send("slow 20ms say 60 words");
  const nWords = () => texts(store.getSnapshot()).at(-1)?.split(" ").length ?? 0;
  await until("some words", () => nWords() > 5);
  wire.cut();
  await until("more words", () => nWords() > 15);
  await crashing.kill("SIGKILL");
  await crashing.restart();
  await until("the end", () => store.getSnapshot().messages.at(-1)?.status === "completed", 30_000);
  assert.equal(nWords(), 60);
  const { messages } = await new Loomline({ baseUrl: crashing.base }).thread("crash").messages();
  assert.deepEqual(JSON.parse(JSON.stringify(store.getSnapshot().messages)), messages);
});

test("a store goes on after requests that a proxy refused", async (t) => {
  await client.thread("refused").run("compute 6*7", { agent: "careful" });
  const stores = ["messages", "pending"].map((path) => {
    let nRefused = 0;
    const refusing = async (url, init) => {
      if (!url.endsWith(`/${path}`) || nRefused === 3) return fetch(url, init);
      nRefused += 1;
      return new Response("starting", { status: 503, headers: { "retry-after": "0" } });
    };
    return opened(t, "refused", { fetch: refusing });
  });
  for (const store of stores) await until("an error", () => store.getSnapshot().error instanceof ServerError);
  for (const store of stores) await until("the pending call", () => store.getSnapshot().pending.length === 1);
  for (const store of stores) assert.equal(store.getSnapshot().error, undefined);
});

test("a store closes its stream without subscribers, and goes on with one", async () => {
  const open = async () => (await (await fetch(`${server.base}/api/v1/health`)).json()).openStreams;
  const store = new ThreadStore({ client, key: "left" });
  await client.createThread({ key: "left" });
  await until("the streams of other tests are closed", async () => (await open()) === 0);
  const leave = store.subscribe(() => {});
  // As StrictMode does.
  leave();
  const leaveAgain = store.subscribe(() => {});
  await until("a stream", async () => (await open()) === 1);
  leaveAgain();
  await until("no stream", async () => (await open()) === 0);
  await client.thread("left").run("Good morning");
  const leaveAtLast = store.subscribe(() => {});
  await until("both messages", () => store.getSnapshot().messages.length === 2);
  leaveAtLast();
});

test("a snapshot changes only if something changed", async (t) => {
  const store = opened(t, "same");
  await store.send("one");
  await agrees(store, "same", 2);
  const before = store.getSnapshot().messages;
  await store.send("two");
  await agrees(store, "same", 4);
  assert.equal(store.getSnapshot().messages[0], before[0]);
  assert.equal(store.getSnapshot(), store.getSnapshot());
});

test("a key that the server refuses is an error of the store", async (t) => {
  const hash = createHash("sha256").update("llk_site").digest("hex");
  const started = await Server.start(`
[models.m]
provider = "scripted"
[agents.demo]
model = "m"
[tenants.a.keys.one]
hash = "sha256:${hash}"
`);
  t.after(() => started.stop());
  const store = opened(t, "guarded", { base: started.base });
  await until("an error", () => store.getSnapshot().error instanceof AuthenticationError);
});
