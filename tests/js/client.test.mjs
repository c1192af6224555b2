// @loomline/client against the real binary: each method, its errors, and what it repeats.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionError,
  ForbiddenError,
  InvalidRequestError,
  Loomline,
  LoomlineError,
  NotFoundError,
  RateLimitedError,
  ResponseTimeoutError,
  ServerError,
  textOf,
} from "../../clients/typescript/dist/index.js";
import { until } from "./chat.mjs";
import { Loomline as Server } from "./loomline.mjs";

const server = await Server.forTests();
const team = await Server.forTests(`
default_agent = "demo"
[models.m]
provider = "scripted"
[agents.demo]
model = "m"
tools = ["compute"]
[agents.client]
model = "m"
[[agents.client.external]]
name = "get_weather"
description = "The weather of a city."
parameters = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }
[web]
embed_origins = ["https://shop.example"]
`);
const clientOf = ({ base }, options) => new Loomline({ baseUrl: base, ...options });
const client = clientOf(server);
const all = async (iterable) => {
  const entries = [];
  for await (const entry of iterable) entries.push(entry);
  return entries;
};

test("a thread is created, changed, read, closed and deleted", async () => {
  const thread = await client.createThread({ key: "a/b ü", title: "One", metadata: { n: 1 } });
  assert.equal(thread.info.title, "One");
  const changed = await thread.update({ title: "Two", metadata: null });
  assert.equal(changed.title, "Two");
  assert.deepEqual(await client.thread("a/b ü").read(), changed);
  const { seq } = await thread.close();
  assert.ok(seq > changed.seq);
  assert.equal((await thread.read()).status, "closed");
  await thread.delete();
  await assert.rejects(thread.read(), NotFoundError);
});

test("a failed thread is reopened", async () => {
  const thread = client.thread("broken");
  const { status, interruption } = await thread.run("fail");
  assert.equal(status, "failed");
  assert.equal(interruption.reason, "error");
  await thread.reopen();
  assert.equal((await thread.read()).status, "open");
});

test("a run returns the text of the answer", async () => {
  const thread = client.thread("answers");
  const { text, status, pending, executionId } = await thread.run("compute 2+3*4");
  assert.deepEqual({ text, status, pending }, { text: "compute gave 14.", status: "completed", pending: [] });
  const run = await thread.readRun(executionId);
  assert.equal(run.nSteps, 2);
  assert.deepEqual((await thread.runs()).runs.map(({ id }) => id), [executionId]);
});

test("a posted message is answered behind the caller's back", async () => {
  const thread = client.thread("posted");
  const accepted = await thread.post([{ type: "input_text", text: "Good morning" }], { metadata: { ticket: 17 }, channel: "web" });
  const events = await all(thread.follow({ after: accepted.after, until: "rest" }));
  assert.equal(events.at(-1).type, "thread.finished");
  const { messages, seq } = await thread.messages();
  assert.deepEqual(messages.map(({ content }) => textOf(content)), ["Good morning", "You said: Good morning"]);
  assert.deepEqual([messages[0].metadata, messages[0].channel], [{ ticket: 17 }, "web"]);
  assert.equal(seq, events.at(-1).seq);
  assert.equal((await thread.messages({ limit: 1 })).messages.length, 2);
  assert.equal((await thread.messages({ at: accepted.after })).messages.length, 0);
});

test("a message is replaced and answered again", async () => {
  const thread = client.thread("draft");
  await thread.run("compute 1+1");
  const first = (await thread.messages()).messages[0].id;
  const follow = (accepted) => all(thread.follow({ after: accepted.after, until: "rest" }));
  const replaced = await thread.replace(first, "compute 6*7");
  await follow(replaced);
  await follow(await thread.regenerate(replaced.itemId, { agent: "demo" }));
  const { messages } = await thread.messages();
  const said = messages.filter(({ type }) => type === "message");
  assert.deepEqual(said.map(({ content }) => textOf(content)), ["compute 6*7", "compute gave 42."]);
  const { versions } = await thread.versions(replaced.itemId);
  assert.deepEqual(versions.map(({ content }) => textOf(content)), ["compute 1+1", "compute 6*7"]);
});

test("the bytes of an image are read", async () => {
  const thread = client.thread("image");
  await thread.run([{ type: "input_image", image_url: "data:image/png;base64,iVBORw0KGgo=" }]);
  const [{ id }] = (await thread.messages()).messages;
  const blob = await thread.content(id, 0);
  assert.equal(blob.type, "image/png");
  assert.equal(Buffer.from(await blob.arrayBuffer()).toString("base64"), "iVBORw0KGgo=");
});

test("a run is cancelled by its thread and by its id", async () => {
  const thread = client.thread("long");
  const one = await thread.post("slow say 500 words");
  assert.equal((await thread.cancel({ reason: "page_closed" })).executionId, one.executionId);
  const two = await thread.post("slow say 500 words");
  assert.equal((await thread.cancel({ run: two.executionId })).executionId, two.executionId);
  const { interruption } = await thread.readRun(one.executionId);
  assert.equal(interruption.reason, "page_closed");
  await assert.rejects(thread.cancel({ run: two.executionId }), ConflictError);
});

test("pending calls are approved and denied", async () => {
  const thread = client.thread("sums");
  const { pending, status } = await thread.run("compute 6*7", { agent: "careful" });
  assert.equal(status, "completed");
  assert.deepEqual(pending, await thread.pending());
  const waiting = await all(client.waiting({ kind: "approval", prefix: "sums" }));
  assert.deepEqual(waiting.map(({ toolCallId }) => toolCallId), [pending[0].toolCallId]);
  const approved = await thread.approve(pending[0].toolCallId, { arguments: { expression: "1+1" }, actor: "ada" });
  await all(thread.follow({ after: approved.after, until: "rest" }));
  assert.equal(textOf((await thread.messages()).messages.at(-1).content), "compute gave 2.");

  const again = await thread.run("compute 6*7", { agent: "careful" });
  const denied = await thread.deny(again.pending[0].toolCallId, { reason: "too expensive" });
  await all(thread.follow({ after: denied.after, until: "rest" }));
  assert.match(textOf((await thread.messages()).messages.at(-1).content), /too expensive/);
});

test("a call of a client's tool is answered", async () => {
  const thread = clientOf(team).thread("weather");
  const { pending } = await thread.run("get_weather Oslo", { agent: "client" });
  const [{ toolCallId, kind, input }] = pending;
  assert.deepEqual([kind, input], ["external", { city: "Oslo" }]);
  const { after } = await thread.answer([{ toolCallId, output: "sunny" }]);
  await all(thread.follow({ after, until: "rest" }));
  assert.match(textOf((await thread.messages()).messages.at(-1).content), /sunny/);
  await assert.rejects(thread.answer([{ toolCallId, output: "rain" }]), { code: "answered_already" });
});

test("requests are read, answered, declined and cancelled", async () => {
  for (const key of ["flight", "train", "bus"]) await client.thread(key).run("Which seats are there?", { agent: "chooser" });
  const open = await all(client.thread("flight").requests());
  assert.deepEqual(open.map(({ id }) => id), ["decision:seat"]);
  const flight = client.thread("flight").request("decision:seat");
  assert.deepEqual(await flight.read(), open[0]);
  await assert.rejects(flight.answer({ option: "roof" }), { code: "invalid_request_answer" });
  assert.equal((await flight.answer({ option: "aisle" })).request.state, "answered");
  const declined = await client.thread("train").request("decision:seat").decline({ reason: "I take the plane." });
  assert.equal(declined.request.reason, "I take the plane.");
  await assert.rejects(client.thread("bus").request("decision:seat").cancel(), { code: "request_forbidden" });
  assert.deepEqual(await all(client.thread("train").requests()), []);
  assert.equal((await all(client.thread("train").requests({ all: true }))).length, 1);
  assert.equal((await all(client.waiting({ kind: "request" }))).length, 1);
});

test("an actor joins, declares capabilities and leaves", async () => {
  const thread = await client.createThread({ key: "actors" });
  const schema = "https://aitp.dev/capabilities/aitp-02-decisions/v1.0.0/schema.json";
  const joined = await thread.join({ id: "ada", capabilities: [schema] });
  assert.ok(joined.isBound);
  await thread.declareCapabilities("ada", []);
  assert.deepEqual((await thread.actors()).map(({ actor }) => actor), [{ id: "ada", capabilities: [] }]);
  await thread.leave("ada");
  assert.deepEqual(await thread.actors(), []);
});

test("a thread is forked, compared and shown with its relatives", async () => {
  const thread = client.thread("trunk");
  await thread.run("Good morning");
  const fork = await thread.fork({ key: "trunk-2" });
  assert.equal(fork.info.fork.threadId, (await thread.read()).id);
  await fork.run("Good evening");
  assert.deepEqual((await thread.branches()).map(({ key }) => key), ["trunk", "trunk-2"]);
  assert.deepEqual((await thread.tree({ limit: 1 })).more, true);
  const { changes } = await thread.diff(fork);
  assert.ok(changes.length > 0);
  assert.deepEqual(await thread.diff("trunk-2"), { ...(await thread.diff(fork)) });
});

test("threads are listed page by page, and found by their words", async () => {
  for (const n of [1, 2, 3]) await client.createThread({ key: `page-${n}` });
  const keys = (await all(client.threads({ prefix: "page-", limit: 1 }))).map(({ key }) => key);
  assert.deepEqual(keys.sort(), ["page-1", "page-2", "page-3"]);
  assert.deepEqual(await all(client.threads({ prefix: "page-", since: new Date(Date.now() + 60_000) })), []);
  await client.thread("page-2").run("A zeppelin over Lima");
  const [found, ...others] = await all(client.search("zeppelin lima"));
  assert.deepEqual([found.key, others], ["page-2", []]);
  assert.match(found.snippets[0].text, /zeppelin/);
});

test("a document is exported and imported", async () => {
  const thread = client.thread("original");
  await thread.run("compute 1+1");
  const document = await thread.document();
  assert.match(document.hash, /^sha256:/);
  assert.deepEqual([document.losses, document.nLosses], [[], 0]);
  const { thread: copy, losses } = await client.importDocument(document.content, { key: "copy" });
  assert.deepEqual([copy.key, losses], ["copy", []]);
  const { changes } = await thread.diff(copy);
  assert.ok(changes.every(({ level }) => level === "root"), JSON.stringify(changes));
  const history = await thread.document({ format: "pydantic-ai" });
  assert.equal(history.hash, undefined);
  assert.ok(Array.isArray(history.content));
  const unknown = client.importDocument([{ kind: "nothing" }], { source: "pydantic-ai" });
  await assert.rejects(unknown, InvalidRequestError);
});

test("losses of a document are read from the header", async () => {
  const thread = client.thread("cut-off");
  await thread.post("slow say 500 words");
  await thread.cancel();
  const { losses, nLosses } = await thread.document({ format: "pydantic-ai" });
  assert.equal(nLosses, 1);
  assert.deepEqual(losses, [{ pointer: "/runs/0/records/0", what: "that the run was interrupted after it, and why" }]);
});

test("messages are appended to a thread without an agent", async () => {
  const said = (id, role, text) => ({ id, role, parts: [{ type: "text", text }] });
  const thread = await client.createThread({ key: "appended" });
  const { seq } = thread.info;
  const options = { source: "ai-sdk-ui", agent: "demo", seq };
  const greeting = [said("m1", "user", "Hello"), said("m2", "assistant", "Hi")];
  const { thread: same, losses } = await thread.importMessages(greeting, options);
  assert.deepEqual([same.key, losses], ["appended", []]);
  assert.ok(same.info.seq > seq);
  await assert.rejects(thread.importMessages([said("m3", "user", "Bye")], options), ConflictError);
  await thread.importMessages([said("m3", "user", "Bye")], { source: "ai-sdk-ui" });
  const { messages } = await thread.messages();
  assert.deepEqual(messages.map(({ content }) => textOf(content)), ["Hello", "Hi", "Bye"]);
});

test("objects are stored beside a thread", async () => {
  const notes = (await client.createThread({ key: "noted" })).objects("notes");
  const made = await notes.put("a/1", { text: "one" });
  assert.deepEqual(made.value, { text: "one" });
  await notes.put("b", [2]);
  await notes.put("a/1", { text: "two" });
  assert.deepEqual((await notes.get("a/1")).value, { text: "two" });
  assert.deepEqual((await all(notes.list({ limit: 1 }))).map(({ id }) => id), ["a/1", "b"]);
  assert.deepEqual((await all(notes.list({ order: "desc" }))).map(({ id }) => id), ["b", "a/1"]);
  assert.deepEqual((await all(notes.list({ ids: ["b", "none"] }))).map(({ value }) => value), [[2]]);
  await notes.delete("b");
  await assert.rejects(notes.get("b"), NotFoundError);
});

test("agents are listed, and a token is made for a page", async () => {
  const careful = (await client.agents()).find(({ name }) => name === "careful");
  assert.deepEqual(careful.tools, ["compute"]);
  const token = await clientOf(team).webToken({ agent: "demo", threadPrefix: "shop-" });
  assert.equal(token.token, "development");
});

test("an error has its code, its place and the request's id", async () => {
  const error = await client.thread("e").post("x", { agent: "nobody" }).catch((refused) => refused);
  assert.ok(error instanceof InvalidRequestError && error instanceof ApiError && error instanceof LoomlineError);
  assert.deepEqual([error.name, error.status, error.code, error.pointer], ["InvalidRequestError", 422, "unknown_agent", "/agent"]);
  assert.match(error.message, /nobody/);
  assert.ok(error.requestId);
});

/** A client whose requests get these answers first. An answer is a function of the request. */
function answered(answers, options) {
  const requests = [];
  const fetched = async (url, init) => {
    requests.push(init);
    return (answers.shift() ?? fetch)(url, init);
  };
  return { client: clientOf(server, { fetch: fetched, ...options }), requests };
}

const status = (code, headers, body = "busy") => () => new Response(body, { status: code, headers });
const lost = async (url, init) => {
  await (await fetch(url, init)).text();
  throw new TypeError("fetch failed", { cause: new Error("other side closed") });
};

test("a message whose response is lost is stored once", async () => {
  const { client, requests } = answered([lost, lost]);
  const accepted = await client.thread("lost").post("Good morning");
  assert.equal(requests.length, 3);
  assert.equal(new Set(requests.map(({ headers }) => headers["idempotency-key"])).size, 1);
  const { messages } = await client.thread("lost").messages();
  assert.deepEqual(messages.filter(({ role }) => role === "user").map(({ id }) => id), [accepted.itemId]);
});

test("a stream whose response is lost posts its message once", async () => {
  const { client } = answered([lost]);
  assert.equal((await client.thread("lost-stream").run("Good morning")).text, "You said: Good morning");
  assert.equal((await client.thread("lost-stream").messages()).messages.length, 2);
});

test("a request is repeated after 429, 502, 503 and 504", async () => {
  for (const code of [429, 502, 503, 504]) {
    const { client, requests } = answered([status(code, { "retry-after": "0" })]);
    assert.ok((await client.agents()).length > 0);
    assert.equal(requests.length, 2, `${code}`);
  }
});

test("Retry-After is kept", async () => {
  const { client } = answered([status(503, { "retry-after": "1" })]);
  const began = performance.now();
  await client.agents();
  assert.ok(performance.now() - began >= 990);
});

test("a request fails after its retries, with the class of its status", async () => {
  const expected = { 401: AuthenticationError, 403: ForbiddenError, 429: RateLimitedError, 500: ServerError, 503: ServerError };
  for (const [code, ErrorClass] of Object.entries(expected)) {
    const answers = Array.from({ length: 3 }, () => status(Number(code), { "retry-after": "0", "x-request-id": "r-1" }));
    const { client, requests } = answered(answers);
    const error = await client.agents().catch((refused) => refused);
    assert.equal(error.constructor, ErrorClass);
    assert.deepEqual([error.message, error.requestId, error.retryAfter], ["busy", "r-1", 0]);
    assert.equal(requests.length, ["429", "503"].includes(code) ? 3 : 1, code);
  }
});

test("a request that can't be repeated safely is sent once", async () => {
  const { client, requests } = answered([status(503)]);
  await assert.rejects(client.createThread(), ServerError);
  assert.equal(requests.length, 1);
});

test("a server that is not there is a connection error", async () => {
  const absent = new Loomline({ baseUrl: "http://127.0.0.1:9", maxRetries: 1 });
  await assert.rejects(absent.agents(), (error) => error instanceof ConnectionError && /GET \/agents: .+/.test(error.message));
});

test("a server that does not answer in time is an error, and its connections are closed", async (t) => {
  const paths = [];
  const mute = createServer(({ url }) => paths.push(url)).listen(0, "127.0.0.1");
  t.after(() => mute.close());
  await once(mute, "listening");
  const mutes = new Loomline({ baseUrl: `http://127.0.0.1:${mute.address().port}`, timeout: 0.1, maxRetries: 1 });
  for (const [expected, request] of [
    ["GET /agents", () => mutes.agents()],
    ["POST /threads/k/messages", () => mutes.thread("k").post("Hello")],
    ["GET /threads/k/events", () => mutes.thread("k").follow({ signal: new AbortController().signal }).next()],
  ]) {
    await assert.rejects(request(), (error) => {
      assert.ok(error instanceof ResponseTimeoutError && error instanceof ConnectionError);
      assert.equal(error.message, `${expected}: no response after 0.1 s`);
      return true;
    });
  }
  await assert.rejects(mutes.createThread(), ResponseTimeoutError);
  assert.equal(paths.length, 7);
  await assert.rejects(mutes.agents({ signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  await until("no connection", () => new Promise((done) => mute.getConnections((_, n) => done(n === 0))));
});

test("the time limit does not apply to the body of a stream, and none is possible", async () => {
  for (const timeout of [0.5, Infinity]) {
    const { text } = await clientOf(server, { timeout }).thread(`limit-${timeout}`).run("slow 20ms say 40 words");
    assert.equal(text.split(" ").length, 40);
  }
});

test("a signal ends a request and its retries", async () => {
  const { client } = answered([status(503, { "retry-after": "30" })]);
  await assert.rejects(client.agents({ signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  await assert.rejects(client.agents({ signal: AbortSignal.abort() }), { name: "AbortError" });
});

test("the environment names the server and the key", async (t) => {
  process.env.LOOMLINE_SERVER = `${server.base}/`;
  process.env.LOOMLINE_KEY = "llk_one";
  t.after(() => {
    delete process.env.LOOMLINE_SERVER;
    delete process.env.LOOMLINE_KEY;
  });
  let sent;
  const client = new Loomline({ fetch: (url, init) => ((sent = init), fetch(url, init)) });
  assert.ok((await client.agents()).length > 0);
  assert.equal(sent.headers.authorization, "Bearer llk_one");
});

test("a key that would change the path is refused", () => {
  for (const key of ["", ".", ".."]) assert.throws(() => client.thread(key).read(), TypeError);
});
