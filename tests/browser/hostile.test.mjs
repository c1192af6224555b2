// What others write can't do anything: scripts, markup, addresses, styles, and text that deceives.
import assert from "node:assert/strict";
import { after } from "node:test";
import { Loomline } from "../js/loomline.mjs";
import { claim, fits } from "./browser.mjs";
import { converse, post } from "./chromium.mjs";
import { Scripts } from "./samples.mjs";

const DO = "window.__pwned=1";
const EVIL = "https://evil.example";
const CORPUS = [
  `<script>${DO}</script>`,
  `<img src=x onerror="${DO}">`,
  `<img src="${EVIL}/pixel.png?secret">`,
  `<svg onload="${DO}"><script>${DO}</script><use href="${EVIL}/a.svg#b"/></svg>`,
  `<iframe srcdoc="<script>parent.${DO}</script>"></iframe><iframe src="${EVIL}"></iframe>`,
  `<object data="${EVIL}/a"></object><embed src="${EVIL}/b"><video><source onerror="${DO}"></video>`,
  `<style>@import url(${EVIL}/a.css); body{display:none}</style><link rel=stylesheet href="${EVIL}/b.css">`,
  `<div style="position:fixed;inset:0;background:url(${EVIL}/c.png)">over all</div>`,
  `<meta http-equiv=refresh content="0;url=${EVIL}"><base href="${EVIL}/">`,
  `<form action="${EVIL}"><input name=idempotency_key><button id=composer>Send</button></form>`,
  `</textarea></title></template></pre></code></article><script>${DO}</script>`,
  `<math><mtext><table><mglyph><style><img src=x onerror="${DO}"></style></mglyph></table></mtext></math>`,
  `"><img src=x onerror=${DO}>' onmouseover='${DO}' x="`,
  `&lt;script&gt;${DO}&lt;/script&gt; &#x3c;img src=x onerror=${DO}&#x3e;`,
  `<a id=log href="javascript:${DO}">clobber</a><img name=getElementById>`,
  `[one](javascript:${DO}) [two](JaVaScRiPt:${DO}) [three](<java\tscript:${DO}>) [four](&#106;avascript:${DO})`,
  `[five](javascript&colon;${DO}) [six](<\u0001javascript:${DO}>) [seven](< javascript:${DO}>) [eight](vbscript:${DO})`,
  `[nine](data:text/html,<script>${DO}</script>) [ten](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)`,
  `[eleven](//evil.example/a) [twelve](\\\\evil.example\\a) [thirteen](file:///etc/passwd) [fourteen](blob:${EVIL}/x)`,
  `[fifteen](https://example.org@evil.example/) [sixteen](/ui/stop) [seventeen](../ui/stop?thread=hostile)`,
  `<javascript:${DO}> [reference]\n\n[reference]: javascript:${DO} "title"`,
  `![pixel](${EVIL}/pixel.png?secret) ![data](data:image/svg+xml,<svg onload=${DO}>) ![script](javascript:${DO})`,
  `[![nested](${EVIL}/n.png)](javascript:${DO})`,
  `\`\`\`"><script>${DO}</script>\n<script>${DO}</script>\n\`\`\``,
  `| <img src=x onerror=${DO}> | <script>${DO}</script> |\n|---|---|\n| <svg onload=${DO}> | [x](javascript:${DO}) |`,
  `{{constructor.constructor('${DO}')()}} \${${DO}} <%= ${DO} %>`,
  `invoice\u202Egnp.exe\u202C and \u2066isolated\u2069, zero\u200Bwidth, \u0007bell`,
  `<noscript><p title="</noscript><img src=x onerror=${DO}>"></noscript>`,
];
const ALL = CORPUS.join("\n\n");
const SHORT = `"><img src=x onerror=${DO}><script>${DO}</script>`;

const scripts = await Scripts.inFolder();
after(() => scripts.remove());
const call = (n) => ({ name: CORPUS[n], arguments: { [SHORT]: ALL }, id: `call-${n}-${SHORT}` });
const config = [
  await scripts.model("speaker", [{ reasoning: ALL, text: ALL }]),
  await scripts.model("caller", [
    { text: SHORT, tool_calls: [{ name: "compute", arguments: { expression: ALL } }, call(0), call(1)] },
    { text: "That was it." },
  ]),
  await scripts.model("asker", [
    { tool_calls: [{ name: "fetch", arguments: { address: ALL } }, { name: "compute", arguments: { expression: ALL } }] },
    { text: "That was it." },
  ]),
  await scripts.model("failing", [{ error: { message: ALL } }]),
];

const server = await Loomline.forTests(`
default_agent = "demo"
[limits]
message_bytes = 8388608
[models.m]
provider = "scripted"
${config.join("")}
[agents.demo]
model = "m"
[agents.speaker]
model = "speaker"
[agents.caller]
model = "caller"
tools = ["compute"]
[agents.asker]
model = "asker"
tools = ["compute"]
requires_approval = ["compute"]
[[agents.asker.external]]
name = "fetch"
description = "Fetches."
parameters = { type = "object", properties = { address = { type = "string" } } }
[agents.failing]
model = "failing"
`);

/** Whatever the page must not have, wherever it came from. */
async function isHarmless(page) {
  const found = await page.evaluate(() => {
    const out = [];
    const all = [...document.querySelectorAll("body *")];
    const banned = "script,iframe,object,embed,svg:not(.rail .icon),math,img,style,link,base,meta,video,audio,source,frame,portal,template";
    for (const element of all) {
      if (element.matches(banned)) out.push(`an element ${element.localName}`);
      for (const { name, value } of element.attributes) {
        if (name.startsWith("on") || name === "style" || name === "srcdoc") out.push(`an attribute ${name}=${value}`);
      }
      const { protocol, pathname, origin } = element.localName === "a" ? new URL(element.href) : {};
      if (protocol && !["http:", "https:", "mailto:"].includes(protocol)) out.push(`a link to ${element.href}`);
      const isOwn = origin === location.origin;
      const isKnown = /^\/($|inbox$|console$|chat($|\/)|ui\/(thread\/|versions$|file$))/.test(pathname);
      if (isOwn && !isKnown) out.push(`a link to ${pathname}`);
      if (protocol?.startsWith("http") && !isOwn && element.rel !== "noopener noreferrer nofollow") out.push(`rel=${element.rel}`);
      if (element.localName === "form" && element.method !== "dialog" && !new URL(element.action).pathname.startsWith("/ui/")) {
        out.push(`a form to ${element.action}`);
      }
    }
    for (const id of ["log", "composer", "message", "end", "title"]) {
      const n = all.filter((element) => element.id === id).length;
      if (n !== 1) out.push(`${n} elements with the id ${id}`);
    }
    const body = document.body.cloneNode(true);
    // A text that is edited has all of its characters.
    for (const edited of body.querySelectorAll("textarea")) edited.remove();
    if (/[\u202a-\u202e\u2066-\u2069\u200b]/.test(body.textContent)) out.push("invisible characters");
    if (window.__pwned !== undefined) out.push("a script ran");
    return out;
  });
  assert.deepEqual(found, []);
}

/** The page has these texts. */
async function reads(page, texts) {
  const content = await page.evaluate(() => document.body.textContent);
  for (const text of texts) assert.ok(content.includes(text), `the page does not show ${text}`);
}

/** Opens everything that is folded, which must not do anything either. */
const unfold = (page) =>
  page.evaluate(() => {
    for (const details of document.querySelectorAll("#log details")) details.open = true;
  });

const RAW = CORPUS.slice(0, 3);
/** How they look in the text of a JSON document. */
const JSON_RAW = RAW.map((text) => JSON.stringify(text).slice(1, -1));

/** Sends to an agent on an open page, and looks at the page live and after a reload. */
async function holds(visitor, key, agent, texts, act) {
  await converse(server, key, "Good morning");
  const page = await visitor.chat(key);
  await post(server, key, "Now you.", { agent });
  await act?.(page);
  await visitor.answered(1);
  for (const isReloaded of [false, true]) {
    if (isReloaded) await visitor.reload();
    await unfold(page);
    await isHarmless(page);
    await reads(page, texts);
  }
}

claim("hostile user messages, authors, channels and file names are only text", server, async (visitor) => {
  const key = "hostile-user";
  await converse(server, key, "Good morning");
  const page = await visitor.chat(key);
  const parts = [
    ...CORPUS.map((text) => ({ type: "input_text", text })),
    { type: "input_file", file_data: "data:text/html;base64,PHNjcmlwdD4=", filename: SHORT },
    { type: "input_image", image_url: `${EVIL}/a.png`, filename: CORPUS[1] },
    { type: "input_image", image_url: "data:image/svg+xml;base64,PHN2Zy8+", filename: "a.svg" },
    { type: "acme.invoice", [SHORT]: ALL },
  ];
  await post(server, key, parts, { channel: SHORT, metadata: { actor: CORPUS[1] } });
  await visitor.answered(1);
  for (const isReloaded of [false, true]) {
    if (isReloaded) await visitor.reload();
    await unfold(page);
    await isHarmless(page);
    await reads(page, [...CORPUS.slice(0, 15), CORPUS[25], SHORT, "invoice⟨U+202E⟩gnp.exe"]);
  }
  await visitor.send("Still here?");
  await page.locator("#log").getByText("You said: Still here?").waitFor();
});

claim("hostile texts and reasoning of a model are only text", server, async (visitor) => {
  await holds(visitor, "hostile-agent", "speaker", [...RAW, "invoice"]);
  await isHarmless(visitor.page);
});

claim("hostile tool names, arguments and results are only text", server, async (visitor) => {
  await holds(visitor, "hostile-tools", "caller", [...JSON_RAW, RAW[1], "That was it."]);
});

claim("hostile arguments of calls that wait are only text", server, async (visitor) => {
  await holds(visitor, "hostile-calls", "asker", [...JSON_RAW, ...RAW], async (page) => {
    const allow = page.getByRole("button", { name: "Allow once", exact: true });
    await allow.waitFor();
    await unfold(page);
    await isHarmless(page);
    await reads(page, JSON_RAW);
    await page.getByLabel("Result, text or JSON").fill(ALL);
    await page.getByRole("button", { name: "Send result" }).click();
    await page.getByLabel("Why (optional)").fill(SHORT);
    await page.getByRole("button", { name: "Deny", exact: true }).click();
    await page.locator("#log").getByText("That was it.").waitFor();
  });
  await reads(visitor.page, [SHORT]);
});

claim("a hostile error text is only text", server, async (visitor) => {
  await holds(visitor, "hostile-error", "failing", RAW);
});

claim("hostile keys and titles are only text", server, async (visitor) => {
  const key = `${SHORT}/../%2e%2e?a#b&c`;
  const response = await fetch(`${server.base}/api/v1/threads`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ key, title: `${SHORT}\u202Eevil` }),
  });
  assert.equal(response.status, 201);
  await converse(server, key, "Good morning");
  await converse(server, `${key}2`, "Good morning");
  const page = await visitor.chat(key);
  await isHarmless(page);
  await reads(page, [SHORT]);
  await visitor.send("Here?");
  await page.locator("#log").getByText("You said: Here?").waitFor();
  await page.getByRole("button", { name: "Fork" }).last().click();
  await page.waitForURL((url) => !url.pathname.includes("onerror"));
  await page.getByText(/^fork of/).click();
  await page.locator("#log").getByText("You said: Here?").waitFor();
  await visitor.chat(`${key}2`);
  await isHarmless(page);
});

claim("an error page shows what it was told as text", server, async (visitor) => {
  visitor.expect(/Failed to load resource.*(400|404)/);
  const page = await visitor.open(`/chat/${encodeURIComponent(SHORT)}`);
  await page.getByRole("heading", { name: "Not found" }).waitFor();
  await visitor.open(`/chat/a?before=${encodeURIComponent(SHORT)}`);
  assert.equal(await page.evaluate(() => window.__pwned), undefined);
  assert.equal(await page.locator("body script, body img").count(), 0);
});

claim("a line of five million characters leaves the page usable", server, async (visitor) => {
  await converse(server, "line", "Good morning");
  const page = await visitor.chat("line");
  await post(server, "line", `${"x".repeat(5_000_000)}THE-END`);
  await visitor.answered(1);
  await fits(page, "the page");
  await visitor.send("Still here?");
  await page.locator("#log").getByText("You said: Still here?").waitFor();
  // The page shows the beginnings of long texts; the thread has them whole.
  await page.locator("#log").getByText(/more bytes/).first().waitFor();
  await page.reload();
  await page.locator("#log").getByText(/more bytes/).first().waitFor();
});

claim("an answer of many words leaves the page usable", server, async (visitor) => {
  await converse(server, "words", "say 120000 words");
  const page = await visitor.chat("words");
  await page.locator("#log").getByText(/The page shows its first 512 KiB/).waitFor();
  await visitor.send("Still here?");
  await page.locator("#log").getByText("You said: Still here?").waitFor();
});
