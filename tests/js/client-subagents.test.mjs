// The thread store of @loomline/client shows the work of sub-agents, at any depth.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Loomline, ThreadStore, textOf } from "../../clients/typescript/dist/index.js";
import { plain, until } from "./chat.mjs";
import { Loomline as Server } from "./loomline.mjs";

const subagent = (of, agent, name) => `
[[agents.${of}.subagents]]
agent = "${agent}"
name = "${name}"
description = "Does something."
parameters = { type = "object", properties = { task = { type = "string" } }, required = ["task"] }
prompt = "{task}"
`;
const server = await Server.forTests(`
default_agent = "lead"
[models.m]
provider = "scripted"
[agents.lead]
model = "m"
${subagent("lead", "middle", "delegate")}
[agents.middle]
model = "m"
${subagent("middle", "helper", "assist")}
[agents.helper]
model = "m"
tools = ["compute"]
requires_approval = ["compute"]
`);
const client = new Loomline({ baseUrl: server.base });

const delegate = (task) => `delegate ${JSON.stringify({ task })}`;
const SLOW = "slow 20ms say 60 words";

function opened(t, key) {
  const store = new ThreadStore({ client, key });
  t.after(store.subscribe(() => {}));
  return store;
}

const answerOf = ({ messages }) => textOf(messages.at(-1)?.content ?? []);

/** Waits until the store rests, and compares each conversation with the thread of its sub-agent. */
async function agrees(store, nSubagents) {
  await until("the store rests", () => {
    const { status, messages } = store.getSnapshot();
    return status === "ready" && messages.length > 1 && messages.every((message) => message.status !== "pending");
  });
  const { messages, subagents } = store.getSnapshot();
  assert.equal(subagents.length, nSubagents);
  for (const shown of [{ threadKey: store.thread.key, messages }, ...subagents]) {
    assert.deepEqual(plain(shown.messages), (await client.thread(shown.threadKey).messages()).messages);
  }
}

test("a store shows what a sub-agent writes while it writes it", async (t) => {
  const store = opened(t, "written");
  const lengths = new Set();
  t.after(store.subscribe(() => store.getSnapshot().subagents.forEach((subagent) => lengths.add(answerOf(subagent).length))));
  await store.send(delegate(SLOW));
  await agrees(store, 1);
  assert.ok(lengths.size > 10, `${lengths.size} different lengths`);
  const [{ path, messages }] = store.getSnapshot().subagents;
  const call = store.getSnapshot().messages.at(-1).content.find(({ type }) => type === "tool-delegate");
  assert.deepEqual(path, [{ threadKey: "written", toolCallId: call.toolCallId }]);
  assert.equal(answerOf({ messages }), call.output);
  await store.send(delegate("Good morning"));
  await until("the second sub-agent", () => store.getSnapshot().subagents.length === 2);
  await agrees(store, 2);
  assert.equal(store.getSnapshot().subagents[0].messages, messages);
});

test("a page that is opened while a sub-agent works shows all of its work", async (t) => {
  await client.thread("middle").post(delegate(SLOW));
  await new Promise((done) => setTimeout(done, 400));
  const store = opened(t, "middle");
  await until("the beginning", () => store.getSnapshot().subagents.length === 1);
  assert.equal(store.getSnapshot().status, "running");
  await agrees(store, 1);
});

test("a page that is opened while a nested sub-agent waits shows its call, and how it goes on", async (t) => {
  await client.thread("waits").run(delegate('assist {"task":"think about compute 6*7"}'));
  const [store, other] = [opened(t, "waits"), opened(t, "waits")];
  await until("both sub-agents", () => store.getSnapshot().subagents.length === 2);
  await until("the pending calls", () => store.getSnapshot().pending.length === 3);
  const call = store.getSnapshot().pending.find(({ kind }) => kind === "approval");
  const nested = () => store.getSnapshot().subagents.find(({ threadKey }) => threadKey === call.threadKey);
  await until("the call", () => nested().messages.at(-1)?.content.at(-1)?.state === "approval-requested");
  assert.deepEqual(nested().path, call.path);
  assert.deepEqual(store.getSnapshot().subagents.map(({ path }) => path.length), [1, 2]);
  assert.ok(await store.approve(call.toolCallId));
  for (const one of [store, other]) {
    await until("the answer", () => answerOf(one.getSnapshot()).includes("compute gave 42."));
    await agrees(one, 2);
  }
});
