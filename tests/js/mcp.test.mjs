// The official MCP client against the real binary: `POST /mcp`. The client holds what tools give against
// their schemas itself, and fails the call where they don't fit.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Loomline } from "./loomline.mjs";

const hash = (key) => `sha256:${createHash("sha256").update(key).digest("hex")}`;

const CONFIG = `
default_agent = "demo"

[models.demo]
provider = "scripted"

[agents.demo]
model = "demo"
tools = ["compute"]

[agents.careful]
model = "demo"
tools = ["compute"]
requires_approval = ["compute"]

[tenants.a]
key_hashes = ["${hash("llk_a")}"]

[tenants.b]
key_hashes = ["${hash("llk_b")}"]
`;

const server = await Loomline.forTests(CONFIG);
const clients = [];

server.beforeStop(async () => {
  for (const client of clients) await client.close();
});

/** A client with the key of a tenant. */
async function connect(key = "llk_a") {
  const client = new Client({ name: "loomline-tests", version: "1.0.0" });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", server.base), { requestInit }));
  // So that results are held against the schemas.
  await client.listTools();
  clients.push(client);
  return client;
}

async function native(path, key = "llk_a") {
  const response = await fetch(`${server.base}/api/v1/threads/${path}`, { headers: { authorization: `Bearer ${key}` } });
  return response.json();
}

const call = (client, name, args, options) => client.callTool({ name, arguments: args }, undefined, options);

test("the server says who it is, what it has, and gives a session", async () => {
  const client = await connect();
  assert.equal(client.getServerVersion().name, "loomline");
  const { tools, resources } = client.getServerCapabilities();
  assert.ok(tools && resources && !resources.subscribe);
  assert.match(client.getInstructions(), /threads/i);
  assert.ok(client.transport.sessionId);
  await client.ping();
});

test("tools have schemas for what they take and give, and hints", async () => {
  const client = await connect();
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name).sort();
  assert.deepEqual(names, ["answer", "create_thread", "list_threads", "post_message", "read_thread", "run"]);
  for (const tool of tools) {
    assert.equal(tool.inputSchema.type, "object");
    assert.equal(tool.outputSchema.type, "object");
    assert.equal(tool.annotations.readOnlyHint, ["list_threads", "read_thread"].includes(tool.name));
  }
});

test("a thread made here reads the same through the native API, and the other way round", async () => {
  const client = await connect();
  const made = await call(client, "create_thread", { key: "js-one", title: "From here" });
  assert.equal(made.structuredContent.created, true);
  const told = [];
  const run = await call(client, "run", { key: "js-one", content: "compute 2+3*4" }, {
    onprogress: (progress) => told.push(progress),
  });
  assert.equal(run.structuredContent.status, "completed");
  assert.match(run.content[0].text, /14/);
  assert.ok(told.some(({ message }) => message === "compute is called"));
  assert.deepEqual(told.map(({ progress }) => progress), told.map((_, at) => at + 1));

  const response = await fetch(`${server.base}/api/v1/threads/js-one/messages`, {
    method: "POST",
    headers: { authorization: "Bearer llk_a", "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ content: "said natively" }),
  });
  await response.text();
  const read = await call(client, "read_thread", { key: "js-one" });
  assert.deepEqual(read.structuredContent.messages, (await native("js-one/messages")).messages);
  const { contents } = await client.readResource({ uri: "thread://js-one" });
  assert.equal(contents[0].mimeType, "application/json");
  assert.deepEqual(JSON.parse(contents[0].text), await native("js-one/document"));
});

test("a message that is posted is answered without anyone waiting", async () => {
  const client = await connect();
  const posted = await call(client, "post_message", { key: "js-posted", content: "hello" });
  assert.equal(posted.structuredContent.queued, false);
  const events = await fetch(`${server.base}/api/v1/threads/js-posted/events?until=rest`, {
    headers: { authorization: "Bearer llk_a" },
  });
  assert.match(await events.text(), /thread\.finished/);
});

test("a call that waits is answered", async () => {
  const client = await connect();
  const waits = await call(client, "run", { key: "js-waits", agent: "careful", content: "compute 6*7" });
  assert.equal(waits.structuredContent.status, "waiting");
  const [{ toolCallId, kind }] = waits.structuredContent.pending;
  assert.equal(kind, "approval");
  const done = await call(client, "answer", { key: "js-waits", answers: [{ toolCallId, approved: true }] });
  assert.equal(done.structuredContent.status, "completed");
  assert.match(done.content[0].text, /42/);
});

test("a call that is cancelled stops the agent", async () => {
  const client = await connect();
  const cancels = new AbortController();
  const run = call(client, "run", { key: "js-cancelled", content: "slow 20ms say 100000 words" }, {
    signal: cancels.signal,
    onprogress: () => cancels.abort("enough"),
  });
  await assert.rejects(run, /enough/);
  const events = await fetch(`${server.base}/api/v1/threads/js-cancelled/events?until=rest`, {
    headers: { authorization: "Bearer llk_a" },
  });
  await events.text();
  const { runs } = await native("js-cancelled/runs");
  assert.equal(runs[0].interruption.reason, "user_cancelled");
});

test("resources are listed, have templates, and are read as messages and as text", async () => {
  const client = await connect();
  const key = "js äö/?";
  await call(client, "run", { key, content: "hello" });
  const { resources } = await client.listResources();
  const resource = resources.find(({ name }) => name === key);
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.deepEqual(
    resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    ["thread://{key}", "thread://{key}/messages", "thread://{key}/text"],
  );
  const [messages, text] = await Promise.all(
    ["/messages", "/text"].map(async (view) => (await client.readResource({ uri: resource.uri + view })).contents[0].text),
  );
  assert.deepEqual(JSON.parse(messages), await native(`${encodeURIComponent(key)}/messages`));
  assert.equal(text, "user: hello\n\nassistant: You said: hello\n");
});

test("what goes wrong is told: to the model where it can do better, else as an error", async () => {
  const client = await connect();
  const refused = await call(client, "run", { key: "js-wrong", content: "x", agent: "nobody" });
  assert.equal(refused.isError, true);
  assert.match(refused.content[0].text, /^unknown_agent: /);
  assert.equal(refused._meta["loomline/error"].pointer, "/agent");
  await assert.rejects(call(client, "none", {}), { code: -32602 });
  await assert.rejects(client.readResource({ uri: "thread://none" }), { code: -32002 });
});

test("no tenant sees another's threads, and no key is no client", async () => {
  const [a, b] = await Promise.all([connect("llk_a"), connect("llk_b")]);
  await call(a, "run", { key: "js-secret", content: "swordfish" });
  assert.deepEqual((await call(b, "list_threads", {})).structuredContent.threads, []);
  assert.deepEqual((await b.listResources()).resources, []);
  assert.equal((await call(b, "read_thread", { key: "js-secret" })).isError, true);
  await assert.rejects(b.readResource({ uri: "thread://js-secret" }), { code: -32002 });
  await assert.rejects(connect("llk_c"), /unauthorized|401/i);
});

test("a client goes on after the server was started anew", async () => {
  const client = await connect();
  await call(client, "run", { key: "js-again", content: "before" });
  await server.kill();
  await server.restart();
  const run = await call(client, "run", { key: "js-again", content: "after" });
  assert.match(run.content[0].text, /after/);
});
