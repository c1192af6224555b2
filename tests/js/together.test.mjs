// One thread behind all protocols: begun, gone on with and read through each by its own official client.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { Role } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";
import { HttpAgent } from "@ag-ui/client";
import { Client as LangGraph } from "@langchain/langgraph-sdk";
import { Client as Mcp } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Loomline as Client, textOf } from "../../clients/typescript/dist/index.js";
import { Chat } from "./chat.mjs";
import { Loomline } from "./loomline.mjs";
import { openai } from "./openai.mjs";

const server = await Loomline.forTests();
const client = openai(server);
const own = new Client({ baseUrl: server.base });
const langGraph = new LangGraph({ apiUrl: server.base, apiKey: null });
const a2a = await new ClientFactory().createFromUrl(`${server.base}/a2a/demo/`);
let mcp = await mcpOf(server);
server.beforeStop(() => mcp.close());

/** A session, which ends with the process of the server. */
async function mcpOf({ base }) {
  const session = new Mcp({ name: "loomline-tests", version: "1.0.0" });
  await session.connect(new StreamableHTTPClientTransport(new URL("/mcp", base)));
  return session;
}

const digits = (key) => key.replaceAll("-", "");

async function get(path) {
  const response = await fetch(`${server.base}${path}`);
  assert.equal(response.status, 200, `${path}: ${response.status}`);
  return response.json();
}

/** What each protocol's client does to say something on a thread of ours. */
const says = {
  async own(key, content) {
    const { status } = await own.thread(key).run(content);
    assert.equal(status, "completed");
  },
  async native(key, content) {
    const response = await fetch(`${server.base}/api/v1/threads/${key}/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ content, stream: true }),
    });
    assert.equal(response.status, 200);
    await response.text();
  },
  async threads(key, content) {
    const id = `thread_${digits(key)}`;
    await client.beta.threads.messages.create(id, { role: "user", content });
    const run = await client.beta.threads.runs.createAndPoll(
      id,
      { assistant_id: "demo" },
      { pollIntervalMs: 20 },
    );
    assert.equal(run.status, "completed");
  },
  async responses(key, content) {
    const conversation = `conv_${digits(key)}`;
    const made = await client.responses.create({ model: "demo", input: content, conversation });
    assert.equal(made.status, "completed");
  },
  async chat(key, content) {
    const { messages } = await get(`/api/chat/${key}/messages`);
    const chat = new Chat({ base: server.base, id: key, messages });
    await chat.sendMessage({ text: content });
    assert.equal(chat.error, undefined);
  },
  async agUi(key, content) {
    const agent = new HttpAgent({ url: `${server.base}/ag-ui`, threadId: key });
    agent.setMessages((await get(`/ag-ui/threads/${key}/messages`)).messages);
    agent.addMessage({ id: randomUUID(), role: "user", content });
    await agent.runAgent();
  },
  async langGraph(key, content) {
    const input = { messages: [{ role: "user", content }] };
    const values = await langGraph.runs.wait(key, "demo", { input });
    assert.equal(values.messages.at(-1).type, "ai");
  },
  async mcp(key, content) {
    const done = await mcp.callTool({ name: "run", arguments: { key, content } });
    assert.equal(done.structuredContent.status, "completed");
  },
  async a2a(key, content) {
    const part = { content: { $case: "text", value: content } };
    const message = { messageId: randomUUID(), role: Role.ROLE_USER, contextId: key, parts: [part] };
    const task = await a2a.sendMessage({ message });
    assert.equal(task.contextId, key);
  },
};

/** What was said on a thread, as each protocol's client reads it. */
const reads = {
  async own(key) {
    const { messages } = await own.thread(key).messages();
    return messages.filter(({ type }) => type === "message").map(({ content }) => textOf(content));
  },
  async threads(key) {
    const page = await client.beta.threads.messages.list(`thread_${digits(key)}`, {
      order: "asc",
      limit: 100,
    });
    return page.data.map((message) => message.content.map((part) => part.text?.value).join(""));
  },
  async responses(key) {
    const page = await client.conversations.items.list(`conv_${digits(key)}`, {
      order: "asc",
      limit: 100,
    });
    const messages = page.data.filter((item) => item.type === "message");
    return messages.map((item) => item.content.map((part) => part.text).join(""));
  },
  async chat(key) {
    const { messages } = await get(`/api/chat/${key}/messages`);
    const text = (message) => message.parts.filter((part) => part.type === "text");
    return messages.map((message) => text(message).map((part) => part.text).join(""));
  },
  async agUi(key) {
    const { messages } = await get(`/ag-ui/threads/${key}/messages`);
    const spoken = messages.filter((message) => message.role !== "tool" && message.content);
    return spoken.map((message) => message.content);
  },
  async langGraph(key) {
    const { values } = await langGraph.threads.getState(key);
    const spoken = values.messages.filter(({ type, content }) => type !== "tool" && content);
    return spoken.map(({ content }) => content);
  },
  async mcp(key) {
    const { structuredContent } = await mcp.callTool({ name: "read_thread", arguments: { key, limit: 100 } });
    const text = ({ content }) => content.map((part) => part.text ?? "").join("");
    return structuredContent.messages.filter(({ type }) => type === "message").map(text);
  },
};

async function begun() {
  const response = await fetch(`${server.base}/api/v1/threads`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  return (await response.json()).key;
}

/** A document without what is different each time: ids, instants, durations, and who it came through. */
function timeless(value) {
  if (Array.isArray(value)) return value.map(timeless);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(
    ([name]) => !/(^|_)(id|at|timestamp)$/.test(name) && !/metadata/.test(name) && !["agents", "duration_ms"].includes(name),
  );
  return Object.fromEntries(kept.map(([name, of]) => [name, timeless(of)]));
}

test("a thread goes on through each protocol in turn, and reads the same through all", async () => {
  const key = await begun();
  const said = [];
  for (const [name, say] of Object.entries(says)) {
    await say(key, `Hello from ${name}`);
    said.push(`Hello from ${name}`, `You said: Hello from ${name}`);
    for (const [reader, read] of Object.entries(reads)) {
      assert.deepEqual(await read(key), said, `${name} is read through ${reader}`);
    }
  }
});

test("the document is the same whichever protocol wrote the thread", async () => {
  const documents = {};
  for (const [name, say] of Object.entries(says)) {
    const key = await begun();
    for (const content of ["Good morning", "compute 2+3*4", "think of spring"]) {
      await say(key, content);
    }
    documents[name] = timeless(await get(`/api/v1/threads/${key}/document`));
  }
  assert.equal(documents.native.turns.length, 6);
  for (const [name, document] of Object.entries(documents)) {
    assert.deepEqual(document, documents.native, name);
  }
});

test("an answer that a crash interrupted reads the same through all", async () => {
  const key = await begun();
  const question = "slow 20ms say 60 words";
  let nEvents = 0;
  for await (const event of own.thread(key).stream(question)) {
    nEvents += 1;
    if (nEvents === 20) {
      assert.equal(event.type, "chunk.emitted");
      await server.kill();
      await server.restart();
    }
  }
  const answer = "the loom weaves a thread of words and each turn adds one ";
  await mcp.close();
  mcp = await mcpOf(server);
  for (const [reader, read] of Object.entries(reads)) {
    const [asked, answered, ...more] = await read(key);
    assert.deepEqual([asked, answered.split(" ").length, more], [question, 60, []], `read through ${reader}`);
    assert.ok(answered.startsWith(answer), `read through ${reader}`);
  }
  for (const [name, say] of Object.entries(says)) await say(key, `Hello from ${name}`);
  assert.equal((await reads.own(key)).at(-1), `You said: Hello from ${Object.keys(says).at(-1)}`);
});
