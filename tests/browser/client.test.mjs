// The React hook of @loomline/client in a page of another origin, in StrictMode, against a real server.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { bundled } from "../js/bundle.mjs";
import { Loomline } from "../js/loomline.mjs";
import { claim } from "./browser.mjs";
import { get, post, until } from "./chromium.mjs";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const script = await bundled(path("client-page.jsx"), path("node_modules"));
const http = createServer((request, response) => {
  const isScript = request.url === "/page.js";
  response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
  const page = '<!doctype html><html lang="en"><title>Page</title><link rel="icon" href="data:,"><div id="root"></div>';
  response.end(isScript ? script : `${page}<script type="module" src="/page.js"></script>`);
});
await new Promise((done) => http.listen(0, "127.0.0.1", done));
after(() => http.close());
const origin = `http://127.0.0.1:${http.address().port}`;
const server = await Loomline.forTests();

/** Opens the page of a thread. */
async function open(visitor, key, agent) {
  visitor.trust(origin);
  // The thread does not exist yet.
  visitor.expect(/status of 404/);
  const query = new URLSearchParams({ server: server.base, key, ...(agent && { agent }) });
  await visitor.page.goto(`${origin}/?${query}`);
  await visitor.page.locator("main[data-status=ready], main[data-status=running]").waitFor();
}

async function send(visitor, text) {
  await visitor.page.getByLabel("Message").fill(text);
  await visitor.page.keyboard.press("Enter");
}

const items = (visitor) => visitor.page.locator("li:not(:empty)").allTextContents();
const shows = (visitor, what, holds) => until(what, async () => holds(await items(visitor)));
const openStreams = async () => (await get(server, "/api/v1/health")).openStreams;

claim("a page shows an answer while it is written, with one stream", server, async (visitor) => {
  await open(visitor, "written");
  await send(visitor, "slow 20ms say 60 words");
  const lengths = new Set();
  await shows(visitor, "60 words", ([, answer = ""]) => {
    lengths.add(answer.length);
    return answer.split(" ").length === 60;
  });
  assert.ok(lengths.size > 5, `${lengths.size} different lengths`);
  assert.equal((await items(visitor)).length, 2);
  assert.equal(await openStreams(), 1);
  await visitor.page.locator("main[data-status=ready]").waitFor();
});

claim("a page that is left and entered again goes on", server, async (visitor) => {
  await open(visitor, "entered");
  await send(visitor, "one");
  await shows(visitor, "the first answer", (texts) => texts.at(-1) === "You said: one");
  await visitor.page.getByRole("button", { name: "Leave" }).click();
  await until("no stream", async () => (await openStreams()) === 0);
  await post(server, "entered", "two");
  await visitor.page.getByRole("button", { name: "Enter" }).click();
  await shows(visitor, "the second answer", (texts) => texts.join() === "one,You said: one,two,You said: two");
});

claim("a person approves and denies calls", server, async (visitor) => {
  await open(visitor, "sums", "careful");
  await send(visitor, "compute 6*7");
  await visitor.page.getByRole("button", { name: "Approve" }).click();
  await shows(visitor, "the result", (texts) => texts.at(-1) === "compute gave 42.");
  await send(visitor, "compute 1+1");
  await visitor.page.getByRole("button", { name: "Deny" }).click();
  await shows(visitor, "the denial", (texts) => texts.at(-1).includes("too expensive"));
  await visitor.page.getByRole("button", { name: "Deny" }).waitFor({ state: "detached" });
});

claim("a person answers a request", server, async (visitor) => {
  await open(visitor, "flight", "chooser");
  await send(visitor, "Which seats are there?");
  await visitor.page.getByRole("button", { name: "Aisle" }).click();
  await visitor.page.getByRole("button", { name: "Aisle" }).waitFor({ state: "detached" });
  assert.equal((await get(server, "/api/v1/threads/flight/requests/decision:seat")).state, "answered");
});

claim("a person stops an answer, and a refusal is shown", server, async (visitor) => {
  await open(visitor, "stopped", "nobody");
  visitor.expect(/status of 422/);
  await send(visitor, "Good morning");
  await visitor.page.getByRole("alert").getByText("nobody").waitFor();
  await open(visitor, "stopped-2");
  await send(visitor, "slow say 500 words");
  await shows(visitor, "some words", (texts) => texts.length === 2);
  await visitor.page.getByRole("button", { name: "Stop" }).click();
  await visitor.page.locator("main[data-status=ready]").waitFor();
  assert.equal((await get(server, "/api/v1/threads/stopped-2")).status, "open");
});

claim("a page shows the whole answer after the server was killed", server, async (visitor) => {
  visitor.expect(/ERR_/);
  await open(visitor, "killed");
  await send(visitor, "slow 20ms say 60 words");
  await shows(visitor, "some words", ([, answer = ""]) => answer.split(" ").length > 5);
  await server.kill();
  await server.restart();
  await shows(visitor, "60 words", ([, answer = ""]) => answer.split(" ").length === 60);
  await visitor.page.locator("main[data-status=ready]").waitFor();
  assert.equal((await items(visitor)).length, 2);
});
