// The inbox: what waits in all threads, answered with the keyboard alone, without a script, and by others meanwhile.
import assert from "node:assert/strict";
import { after } from "node:test";
import { Loomline } from "../js/loomline.mjs";
import { claim, fits, isAccessible } from "./browser.mjs";
import { converse, get, pending, post, rest, until } from "./chromium.mjs";
import { Scripts, TEAM, delegate } from "./samples.mjs";

const DO = "window.__pwned=1";
const EVIL = `"><img src=x onerror=${DO}><script>${DO}</script> [x](javascript:${DO}) invoice\u202Egnp.exe`;
const scripts = await Scripts.inFolder();
after(() => scripts.remove());
const evil = await scripts.model("evil", [
  { text: EVIL, tool_calls: [{ name: "evil_tool", arguments: { [EVIL]: EVIL }, id: `call ${EVIL}` }] },
]);
const config = `${TEAM}\n${evil}
[agents.evil]
model = "evil"
[[agents.evil.external]]
name = "evil_tool"
description = "Nothing good."
parameters = { type = "object" }
`;

/** The claims, each with a server of its own: the inbox shows all threads. */
const planned = [];

function serving(name, ...more) {
  const body = more.pop();
  planned.push({ name, options: more[0] ?? {}, body });
}

const button = (page, name) => page.getByRole("button", { name, exact: true });
const entries = (page) => page.locator("#inbox > .entry");
const focused = (page) => page.evaluate(() => document.activeElement?.closest("[data-entry]")?.textContent ?? "");

/** Waits until the entry with a text is open. */
const opens = (page, text) => page.locator("#inbox > .entry[data-opened]").getByText(text).first().waitFor();

/** Waits for so many entries. */
const shows = (page, n) => until(`${n} entries`, async () => (await entries(page).count()) === n);

/** A thread whose call of `compute` waits. */
async function asks(server, key, task = "use compute 6 * 7") {
  await post(server, key, task, { agent: "careful" });
  await pending(server, key);
}

/** Records a request for a decision in a thread. */
async function requests(server, key, title = "Which seat?") {
  await converse(server, key, "Good morning", { agent: "demo" });
  const asked = { id: "seat", title, options: [{ id: "window", name: "Window" }, { id: "aisle", name: "Aisle" }] };
  const text = JSON.stringify({ $schema: "https://aitp.dev/v1/decisions/schema.json", request_decision: asked });
  const response = await fetch(`${server.base}/v1/threads/${encodeURIComponent(key)}/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ role: "assistant", content: text }),
  });
  assert.ok(response.ok, await response.text());
}

/** Opens the inbox and waits for its stream. */
async function inbox(visitor, path = "/inbox", page = visitor.page) {
  const live = page.waitForResponse((response) => response.url().includes("/ui/live"));
  await visitor.open(path, page);
  await live;
  return page;
}

/** The last text of a thread's conversation. */
async function lastText(server, key) {
  await rest(server, key);
  const { messages } = await get(server, `/api/v1/threads/${key}/messages`);
  return JSON.stringify(messages.at(-1));
}

/** The texts of the status line from now on. */
async function listen(page) {
  await page.evaluate(() => {
    window.lines = [];
    const line = document.getElementById("say");
    new MutationObserver(() => window.lines.push(line.textContent)).observe(line, { childList: true, characterData: true });
  });
  return () => page.evaluate(() => window.lines);
}

serving("calls of two threads are allowed, edited and denied with the keyboard alone", async (visitor, server) => {
  await asks(server, "one");
  await asks(server, "two", "use compute 1 + 1");
  await asks(server, "three", "use compute 2 + 2");
  const page = await inbox(visitor);
  assert.equal(await page.title(), "(3) Inbox · Loomline");
  await page.keyboard.press("j");
  assert.match(await focused(page), /6 \* 7/);
  await page.keyboard.press("k");
  assert.match(await focused(page), /6 \* 7/);
  await page.keyboard.press("ArrowDown");
  assert.match(await focused(page), /1 \+ 1/);
  await page.keyboard.press("k");
  await page.keyboard.press("o");
  await opens(page, "6 * 7");
  await page.getByText("Previous messages").waitFor();
  await page.keyboard.press("a");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Allow once");
  assert.equal(await entries(page).count(), 3, "the key alone did nothing");
  await page.keyboard.press("Enter");
  await shows(page, 2);
  assert.match(await lastText(server, "one"), /compute gave 42/);
  await until("the count in the title", async () => (await page.title()) === "(2) Inbox · Loomline");

  // The focus is on the next entry.
  assert.match(await focused(page), /1 \+ 1/);
  await page.keyboard.press("o");
  await opens(page, "1 + 1");
  await page.keyboard.press("e");
  assert.equal(await page.evaluate(() => document.activeElement.name), "arguments");
  await page.keyboard.press("Control+A");
  await page.keyboard.type('{"expression": "2 + 3"}');
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await shows(page, 1);
  assert.match(await lastText(server, "two"), /compute gave 5/);

  // The focus is on the next entry.
  assert.match(await focused(page), /2 \+ 2/);
  await page.keyboard.press("o");
  await opens(page, "2 + 2");
  await page.keyboard.press("d");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Deny");
  await page.keyboard.press("Enter");
  await shows(page, 0);
  await page.getByText(/^No entries\./).waitFor();
  const { messages } = await get(server, "/api/v1/threads/three/messages");
  assert.match(JSON.stringify(messages), /denied/);
  await until("no count in the title", async () => (await page.title()) === "Inbox · Loomline");
});

serving("Enter in a field of an opened call does not allow it", async (visitor, server) => {
  await asks(server, "t");
  const page = await inbox(visitor);
  await entries(page).getByRole("link").first().click();
  await page.getByLabel("Why (optional)").fill("no");
  await page.keyboard.press("Enter");
  await page.waitForTimeout(300);
  assert.equal(await entries(page).count(), 1);
});

serving("new entries appear and answered ones vanish, and the page says so", async (visitor, server) => {
  await converse(server, "other", "Good morning");
  const page = await inbox(visitor);
  await page.getByText(/^No entries\./).waitFor();
  const lines = await listen(page);
  await asks(server, "t");
  await shows(page, 1);
  await until("the status line", async () => (await lines()).includes("A new approval waits in t."));
  assert.equal(await page.title(), "(1) Inbox · Loomline");
  assert.equal((await page.locator("#inbox-count").innerText()).trim().split(/\s/)[0], "1");
  await page.locator("#rail-threads").getByText("t", { exact: true }).waitFor();

  const tab = await visitor.context.newPage();
  await visitor.chat("t", tab);
  await button(tab, "Allow once").click();
  await shows(page, 0);
  await until("the status line", async () => (await lines()).includes("An entry is done."));
  await until("no count in the chat", async () => (await tab.locator("#inbox-count").innerText()) === "");
});

serving("the list at the side follows new threads, titles and runs", async (visitor, server) => {
  const page = await visitor.page;
  const live = page.waitForResponse((response) => response.url().includes("/ui/live"));
  await visitor.open("/chat");
  await live;
  await page.getByText("Conversations appear here.").waitFor();
  await post(server, "busy", "slow 30ms say 60 words", { agent: "demo" });
  const link = page.locator("#rail-threads a");
  await link.getByLabel("working").waitFor();
  await rest(server, "busy");
  await until("the end", async () => (await link.getByLabel("working").count()) === 0);
  await fetch(`${server.base}/api/v1/threads/busy`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ title: "A new title" }),
  });
  await link.getByText("A new title").waitFor();
});

serving("a page of the chat and the inbox has one stream", async (visitor, server) => {
  await asks(server, "t");
  const page = visitor.page;
  let n = 0;
  page.on("request", (request) => { if (request.url().includes("/ui/live")) n += 1; });
  for (const path of ["/inbox", "/chat/t", "/chat"]) {
    n = 0;
    await inbox(visitor, path);
    await page.waitForTimeout(500);
    assert.equal(n, 1, path);
  }
});

serving("filters are in the address, and an empty filter is cleared by a link", async (visitor, server) => {
  await asks(server, "call");
  await requests(server, "seat");
  const page = await inbox(visitor);
  await shows(page, 2);
  await page.getByLabel("Kind").selectOption("request");
  await button(page, "Show").click();
  await page.waitForURL(/kind=request/);
  await shows(page, 1);
  await page.getByLabel("Waits for").selectOption("day");
  await button(page, "Show").click();
  await page.waitForURL(/age=day/);
  await page.getByText(/No entry matches the filter: kind request, waits more than a day/).waitFor();
  await page.getByRole("link", { name: "Show all entries" }).click();
  await shows(page, 2);
  await inbox(visitor, "/inbox?kind=request");
  await asks(server, "another");
  await requests(server, "another-seat");
  await shows(page, 2);
});

serving("a request is answered from the inbox", async (visitor, server) => {
  await requests(server, "seat");
  const page = await inbox(visitor);
  // The script of the page may not run yet.
  await until("the entry has the focus", async () => {
    await page.keyboard.press("j");
    return (await focused(page)) !== "";
  });
  await page.keyboard.press("o");
  await page.waitForURL(/open=/);
  // The script of the page may not run yet when its address is there.
  await until("the form has the focus", async () => {
    await page.keyboard.press("a");
    return page.evaluate(() => document.activeElement.matches("form.answer input"));
  });
  await page.keyboard.press("Space");
  await page.locator("form.answer button[type=submit]").first().click();
  await shows(page, 0);
  const { requests: open } = await get(server, "/api/v1/threads/seat/requests");
  assert.deepEqual(open, []);
});

serving("a sub-agent's call is one entry with the title of its thread", async (visitor, server) => {
  await post(server, "lead", delegate("use compute 6 * 7"), { agent: "lead" });
  await pending(server, "lead");
  const page = await inbox(visitor);
  await shows(page, 1);
  assert.equal(await entries(page).locator(".meta a").getAttribute("href"), "/chat/lead");
  await entries(page).getByRole("link").first().click();
  await button(page, "Allow once").click();
  await shows(page, 0);
  assert.match(await lastText(server, "lead"), /42/);
});

serving("single keys are switched off and stay off", async (visitor, server) => {
  await asks(server, "t");
  const page = await inbox(visitor);
  // The script of the page may not run yet.
  await until("an entry has the focus", async () => {
    await page.keyboard.press("j");
    return (await focused(page)) !== "";
  });
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("next entry").waitFor();
  await page.keyboard.press("Escape");
  await page.getByLabel("Single keys").uncheck();
  await page.locator("h1").click();
  await page.keyboard.press("j");
  assert.equal(await focused(page), "");
  await visitor.reload();
  assert.equal(await page.getByLabel("Single keys").isChecked(), false);
  await page.keyboard.press("?");
  assert.equal(await page.getByRole("dialog").count(), 0);
});

serving("a call is allowed from the inbox without a script", { javaScriptEnabled: false }, async (visitor, server) => {
  await asks(server, "plain");
  const page = await visitor.open("/inbox?kind=approval");
  await entries(page).getByRole("link").first().click();
  await button(page, "Allow once").click();
  await page.waitForURL(/\/inbox\?kind=approval$/);
  assert.equal(await entries(page).count(), 0);
  assert.match(await lastText(server, "plain"), /compute gave 42/);
});

serving("names, arguments and titles of others can't do anything", async (visitor, server) => {
  await converse(server, `key ${EVIL.slice(0, 60)}`, EVIL, { agent: "evil" });
  await requests(server, "evil-request", EVIL);
  await fetch(`${server.base}/api/v1/threads/evil-request`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ title: EVIL }),
  });
  const page = await inbox(visitor);
  await shows(page, 2);
  for (const n of [0, 1]) {
    await inbox(visitor);
    await entries(page).nth(n).getByRole("link").first().click();
    await page.locator(".opened").waitFor();
    await fits(page, "an opened entry");
    assert.equal(await page.evaluate(() => window.__pwned), undefined);
    assert.ok(!(await page.locator("main").innerText()).includes("\u202E"));
  }
  await asks(server, "another");
  await shows(page, 3);
});

for (const [name, options] of [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["narrow", { colorScheme: "light", viewport: { width: 320, height: 640 } }],
]) {
  serving(`the inbox is accessible, ${name}`, options, async (visitor, server) => {
    let page = await visitor.open("/inbox");
    await isAccessible(page, "empty");
    await fits(page, "the empty inbox");
    await asks(server, "one", `use compute ${"1 + ".repeat(40)} 1`);
    await requests(server, "two");
    await converse(server, "three", "get_weather Oslo", { agent: "client" });
    page = await inbox(visitor);
    await shows(page, 3);
    await isAccessible(page, "closed");
    await fits(page, "the inbox");
    for (const n of [0, 1, 2]) {
      await inbox(visitor);
      await entries(page).nth(n).getByRole("link").first().click();
      await page.locator(".opened").waitFor();
      await page.evaluate(() => { for (const details of document.querySelectorAll("#inbox details")) details.open = true; });
      await isAccessible(page, `opened ${n}`);
      await fits(page, `opened ${n}`);
    }
    await button(page, "Show the keys").click();
    await isAccessible(page, "the keys");
    const levels = await page.evaluate(() =>
      [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].map((heading) => Number(heading.localName[1])));
    levels.forEach((level, at) => assert.ok(at === 0 || level <= levels[at - 1] + 1, levels.join()));
  });
}

// All servers first: the claims run as soon as one is there, and the file would be over after the first.
for (const plan of planned) plan.server = await Loomline.forTests(config);
for (const { name, options, body, server } of planned) claim(name, server, options, (visitor) => body(visitor, server));
