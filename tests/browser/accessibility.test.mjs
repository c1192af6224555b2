// Pages for everyone: the rules of WCAG 2.2 AA that a program can check, in each colour scheme and on a narrow
// screen; what screen readers are told.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { Loomline } from "../js/loomline.mjs";
import { claim, fits, isAccessible } from "./browser.mjs";
import { converse, fork, pending, post, rest } from "./chromium.mjs";
import { MARKDOWN, Scripts, TEAM, delegate } from "./samples.mjs";

const scripts = await Scripts.inFolder();
after(() => scripts.remove());
const writer = await scripts.model("writer", [{ reasoning: "What do they know of looms?", text: MARKDOWN }]);
const server = await Loomline.forTests(`${TEAM}\n${writer}\n[agents.writer]\nmodel = "writer"\n`);

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const LOOKS = [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["narrow", { colorScheme: "light", viewport: { width: 320, height: 640 } }],
];

/** A thread with every kind of block. */
async function sample() {
  await converse(server, "all", "Report.", { agent: "writer" });
  await converse(server, "all", "compute 2 + 3 then fail network", { agent: "demo" });
  const parts = [
    { type: "input_text", text: `A long word: ${"warp".repeat(60)}` },
    { type: "input_image", image_url: `data:image/png;base64,${PNG}`, filename: "dot.png" },
    { type: "input_file", file_data: "data:text/plain;base64,QSBub3RlLg==", filename: `${"long-name-".repeat(12)}.txt` },
    { type: "acme.invoice", number: 7 },
  ];
  await converse(server, "all", parts, { metadata: { actor: "ada" }, channel: "mail" });
  await converse(server, "all", "transfer_to_demo", { agent: "lead" });
  await converse(server, "all", "get_weather Oslo", { agent: "client" });
  await post(server, "all", delegate(`use compute 6 * 7 + ${"1 + ".repeat(40)} 1`), { agent: "lead" });
  await pending(server, "all");
  await fork(server, "all", "fork-of-all");
}
before(sample);

const unfold = (page) =>
  page.evaluate(() => {
    for (const details of document.querySelectorAll("#log details")) details.open = true;
  });

for (const [name, options] of LOOKS) {
  claim(`a new chat is accessible, ${name}`, server, options, async (visitor) => {
    const page = await visitor.open("/chat");
    await isAccessible(page, "a new chat");
    await fits(page, "a new chat");
  });

  claim(`a chat with every kind of block is accessible, ${name}`, server, options, async (visitor) => {
    const page = await visitor.chat("all");
    await fits(page, "the chat");
    await isAccessible(page, "folded");
    await unfold(page);
    await isAccessible(page, "unfolded");
    await fits(page, "the chat, unfolded");
  });

  claim(`a fork is accessible, ${name}`, server, options, async (visitor) => {
    const page = await visitor.chat("fork-of-all");
    await isAccessible(page, "a fork");
    await fits(page, "a fork");
  });

  claim(`an error page is accessible, ${name}`, server, options, async (visitor) => {
    visitor.expect(/Failed to load resource.*404/);
    const page = await visitor.open("/chat/unknown");
    await page.getByRole("heading", { name: "Not found" }).waitFor();
    await isAccessible(page, "an error page");
    await fits(page, "an error page");
  });

  claim(`a chat is accessible while an answer is written, ${name}`, server, options, async (visitor) => {
    const key = `running-${name}`;
    await converse(server, key, "Good morning");
    const page = await visitor.chat(key);
    await visitor.send("slow 30ms say 400 words");
    await page.locator(".message[data-state=running] .md").getByText(/the loom/).waitFor();
    await visitor.send("And then?");
    await page.getByText("queued", { exact: true }).waitFor();
    await page.locator("#files").setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("a") });
    await isAccessible(page, "while an answer is written");
    await fits(page, "while an answer is written");
    await page.keyboard.press("Escape");
    await rest(server, key);
  });
}

claim("a question before a link is accessible and returns the focus", server, async (visitor) => {
  const page = await visitor.chat("all");
  const link = page.locator("button.image").first();
  await link.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await isAccessible(page, "the question");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  assert.ok(await link.evaluate((element) => element === document.activeElement));
});

claim("screen readers are told of an answer, not of its words", server, async (visitor) => {
  await converse(server, "said", "Good morning");
  const page = await visitor.chat("said");
  await page.evaluate(() => {
    window.lines = [];
    const line = document.getElementById("say");
    new MutationObserver(() => window.lines.push(line.textContent)).observe(line, { childList: true, characterData: true });
  });
  await visitor.send("slow 5ms say 60 words");
  await visitor.answered(1);
  assert.deepEqual(await page.evaluate(() => window.lines), ["demo answers.", "The answer of demo is complete."]);
  const log = page.getByRole("log", { name: "Conversation" });
  assert.equal(await log.getAttribute("aria-live"), "off");
});

claim("the headings of a page have an order", server, async (visitor) => {
  const page = await visitor.chat("all");
  const levels = await page.evaluate(() =>
    [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].map((heading) => Number(heading.localName[1])));
  assert.equal(levels[0], 1);
  levels.forEach((level, at) => {
    assert.ok(at === 0 || level <= levels[at - 1] + 1, `h${level} after h${levels[at - 1]} (${levels.join()})`);
  });
});

claim("no motion for those who want none", server, async (visitor) => {
  const page = await visitor.chat("all");
  const moving = await page.evaluate(() => document.getAnimations().length);
  assert.equal(moving, 0);
});
