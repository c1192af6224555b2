// The console's pages of one thread, of the agents and of the server: their facts, accessible in each look, and
// harmless whatever others write.
import assert from "node:assert/strict";
import { before } from "node:test";
import { Loomline } from "../js/loomline.mjs";
import { claim, fits, isAccessible } from "./browser.mjs";
import { converse, fork, get, pending } from "./chromium.mjs";
import { TEAM, delegate } from "./samples.mjs";

const DECISIONS = "https://aitp.dev/v1/decisions/schema.json";
const EVIL = `"><img src=x onerror="window.__pwned=1"><script>window.__pwned=1</script>\u202Egnp`;
const KEY = `trip/${EVIL}`;
const MEETING = `meeting/${EVIL}`;

const server = await Loomline.forTests(`${TEAM}
[agents.evil]
model = "m"
description = ${JSON.stringify(EVIL)}
tools = ["compute"]
requires_approval = ["compute"]
[[agents.evil.external]]
name = "fetch"
description = ${JSON.stringify(EVIL)}
parameters = { type = "object" }
`);

const LOOKS = [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["narrow", { colorScheme: "light", viewport: { width: 320, height: 640 } }],
];
const of = (key, end) => `/console/t/${encodeURIComponent(key)}/${end}`;
const PAGES = [
  ["branches", of(KEY, "branches")],
  ["differences", of(KEY, `diff?with=${encodeURIComponent(`${KEY}-fork`)}`)],
  ["a comparison to choose", of(KEY, "diff")],
  ["the document", of(KEY, "document")],
  ["an old document", of(KEY, "document?version=2.0.0&check=lenient")],
  ["a part of the document", of(KEY, "document?at=%2Fturns%2F0")],
  ["requests", of(MEETING, "requests")],
  ["no requests", of("plain", "requests")],
  ["a thread alone", of("plain", "branches")],
  ["connections", of(KEY, "connect")],
  ["agents", "/console/agents"],
  ["health", "/console/health"],
];

async function call(method, path, body) {
  const response = await fetch(server.base + path, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  assert.ok(response.ok, `${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

/** Threads with a fork, a sub-agent, an actor and its request, all with names and texts of somebody hostile. */
async function sample() {
  const key = encodeURIComponent(KEY);
  await converse(server, "plain", "Good morning");
  await converse(server, KEY, `Good morning ${EVIL}`, { agent: "demo" });
  await call("PATCH", `/api/v1/threads/${key}`, { title: EVIL });
  await converse(server, KEY, delegate("use compute 6 * 7"), { agent: "lead" });
  await pending(server, KEY);
  await fork(server, KEY, `${KEY}-fork`);
  await converse(server, `${KEY}-fork`, `an aisle seat ${EVIL}`, { agent: "demo" });
  // Who has joined may only speak as its actor.
  const meeting = encodeURIComponent(MEETING);
  await converse(server, MEETING, "Good morning", { agent: "demo" });
  const capabilities = [DECISIONS];
  await call("POST", `/api/v1/threads/${meeting}/actors`, { actor: { id: `shop ${EVIL}`, client_id: EVIL, capabilities } });
  const request = { id: "seat", title: EVIL, options: [{ id: "window" }], expires_at: "2050-01-01T00:00:00Z" };
  const content = JSON.stringify({ $schema: DECISIONS, request_decision: request });
  const metadata = { actor: `shop ${EVIL}` };
  const { id } = await get(server, `/api/v1/threads/${meeting}`);
  await call("POST", `/v1/threads/${id}/messages`, { role: "assistant", content, metadata });
}
before(sample);

const unfold = (page) =>
  page.evaluate(() => {
    for (const details of document.querySelectorAll("main details")) details.open = true;
  });

/** Whatever the page must not have, wherever it came from. */
async function isHarmless(page) {
  const found = await page.evaluate(() => {
    const out = [];
    for (const element of document.querySelectorAll("body *")) {
      if (element.matches("script,iframe,object,embed,svg:not(.rail .icon),img,style,link,base,meta")) out.push(element.localName);
      for (const { name } of element.attributes) {
        if (name.startsWith("on") || name === "style") out.push(`an attribute ${name}`);
      }
      const isOwn = element.localName !== "a" || new URL(element.href).origin === location.origin;
      if (!isOwn) out.push(`a link to ${element.href}`);
    }
    if (/[\u202a-\u202e\u2066-\u2069\u200b]/.test(document.body.textContent)) out.push("invisible characters");
    if (window.__pwned !== undefined) out.push("a script ran");
    return out;
  });
  assert.deepEqual(found, []);
}

for (const [look, options] of LOOKS) {
  claim(`the console's pages of a thread are accessible and harmless, ${look}`, server, options, async (visitor) => {
    for (const [name, path] of PAGES) {
      const page = await visitor.open(path);
      await isAccessible(page, name);
      await fits(page, name);
      await unfold(page);
      await isAccessible(page, `${name}, unfolded`);
      await fits(page, `${name}, unfolded`);
      await isHarmless(page);
      const levels = await page.evaluate(() =>
        [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].map((heading) => Number(heading.localName[1])));
      assert.equal(levels[0], 1, name);
      levels.forEach((level, at) => assert.ok(at === 0 || level <= levels[at - 1] + 1, `${name}: ${levels}`));
    }
  });
}

claim("hostile names and texts are shown as they are", server, async (visitor) => {
  const shown = EVIL.replace("\u202E", "⟨U+202E⟩");
  for (const path of [of(KEY, "branches"), of(MEETING, "requests"), of(KEY, "document?at=%2Fturns%2F0"), "/console/agents"]) {
    const page = await visitor.open(path);
    const text = await page.evaluate(() => document.querySelector("main").textContent);
    assert.ok(text.includes(shown), `${path}: ${text.slice(0, 500)}`);
  }
});

claim("two branches are chosen and compared", server, async (visitor) => {
  const page = await visitor.open(of(KEY, "branches"));
  await page.getByLabel("Second").selectOption(`${KEY}-fork`);
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByText(/^The same up to turn \d+\./).waitFor();
  await page.getByText("an aisle seat").first().waitFor();
  const columns = (width) =>
    page.setViewportSize({ width, height: 800 }).then(() =>
      page.evaluate(() => getComputedStyle(document.querySelector(".sides")).gridTemplateColumns.split(" ").length));
  assert.equal(await columns(1200), 2);
  assert.equal(await columns(320), 1);
});

claim("the tree of a document opens step by step", server, async (visitor) => {
  const page = await visitor.open(of(KEY, "document"));
  const turns = page.locator("summary", { hasText: /^turns/ });
  await turns.click();
  await page.locator(".json summary", { hasText: /^0/ }).first().click();
  await page.locator(".json").getByText("turn_type").first().waitFor();
  await page.getByLabel("Version").selectOption("2.0.0");
  await page.getByRole("button", { name: "Show" }).click();
  await page.waitForURL(/version=2\.0\.0/);
  await page.getByRole("heading", { name: "Losses" }).waitFor();
});

claim("a sample and a hash are copied", server, async (visitor) => {
  await visitor.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await visitor.open(of(KEY, "connect"));
  const sample = page.locator("figure.snippet").first();
  await sample.getByRole("button").click();
  await page.getByText("Copied.", { exact: true }).waitFor({ state: "attached" });
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  assert.equal(await clipboard(), await sample.locator("code").textContent());
  assert.match(await clipboard(), /^curl -N/);
  await visitor.open(of(KEY, "document"));
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByText("Copied.", { exact: true }).waitFor({ state: "attached" });
  assert.match(await clipboard(), /^sha256:[0-9a-f]{64}$/);
});

claim("a chat begins with the agent of the link", server, async (visitor) => {
  const page = await visitor.open("/console/agents");
  await page.getByRole("link", { name: "Start a chat with careful" }).click();
  await page.waitForURL(/\/chat\?agent=careful/);
  assert.equal(await page.getByLabel("Agent").inputValue(), "careful");
});
