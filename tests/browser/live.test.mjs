// An answer while it is written: streams, restarts, other tabs, stops, messages that wait.
import assert from "node:assert/strict";
import { after } from "node:test";
import { Loomline } from "../js/loomline.mjs";
import { claim } from "./browser.mjs";
import { converse, until } from "./chromium.mjs";
import { MARKDOWN, Scripts, TEAM } from "./samples.mjs";

const scripts = await Scripts.inFolder();
after(() => scripts.remove());
const writer = await scripts.model("writer", [{ reasoning: "What do they know?", text: MARKDOWN }], 5);
const server = await Loomline.forTests(`${TEAM}\n${writer}\n[agents.writer]\nmodel = "writer"\n`);
const WORDS = "the loom weaves a thread of words and each turn adds one more row until cloth is done".split(" ");

/** What the scripted model writes for `say N words`. */
const words = (n) => Array.from({ length: n }, (_, at) => WORDS[at % WORDS.length]).join(" ");

/** The text of the last answer so far. */
const text = (page) => page.locator("#log > .message.agent").last().locator(".text .md").last().innerText();

/** Waits until the last answer has begun. */
const begins = (page, n = 5) =>
  until("some words of the answer", async () => {
    const all = page.locator("#log > .message.agent[data-state=running] .text .md");
    return (await all.count()) > 0 && (await all.last().innerText()).split(" ").length > n;
  });

claim("an answer streams into the page and equals its reload", server, async (visitor) => {
  await converse(server, "streams", "Good morning");
  const page = await visitor.chat("streams");
  await visitor.send("slow 10ms say 200 words");
  await begins(page);
  const early = await text(page);
  assert.ok(words(200).startsWith(early) && early.length < words(200).length, early);
  await visitor.answered();
  assert.equal(await text(page), words(200));
  await visitor.equalsItsReload();
});

claim("streamed Markdown equals its reload, element by element", server, async (visitor) => {
  await converse(server, "markdown", "Good morning");
  await visitor.chat("markdown");
  await visitor.page.getByRole("combobox", { name: /^Agent/ }).selectOption("writer");
  await visitor.send("Report.");
  const answer = await visitor.answered(1);
  const elements = "h3 h4 h5 li>ul ol table pre>code blockquote hr del strong em a button.image";
  for (const element of elements.split(" ")) {
    assert.ok((await answer.locator(`.md ${element}`).count()) > 0, element);
  }
  await visitor.equalsItsReload();
});

claim("a page survives a crash of the server in mid-answer", server, async (visitor) => {
  visitor.expect(/Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/);
  await converse(server, "crash", "Good morning");
  const page = await visitor.chat("crash");
  await visitor.send("slow 20ms say 150 words");
  await begins(page, 20);
  await page.evaluate(() => { window.sameDocument = true; });
  await server.kill();
  await page.getByText(/Not connected/).waitFor();
  await server.restart();
  await page.getByText(/The server was away for \d+ s/).waitFor();
  await visitor.answered();
  assert.equal(await text(page), words(150));
  assert.equal(await page.locator("#log > .message").count(), 4);
  assert.ok(await page.evaluate(() => window.sameDocument), "the page was loaded again");
  await visitor.equalsItsReload();
});

claim("seven tabs of one thread all show a new message", server, async (visitor) => {
  await converse(server, "tabs", "Good morning");
  // A browser without a window shows all of its tabs at once, so hiding is played here: what a page is told of
  // it, and the time that passes until a hidden page closes its stream.
  await visitor.context.addInitScript(() => {
    window.isHidden = false;
    Object.defineProperty(Document.prototype, "hidden", { get: () => window.isHidden });
    window.hide = (isHidden) => {
      window.isHidden = isHidden;
      document.dispatchEvent(new Event("visibilitychange"));
    };
  });
  await visitor.page.close();
  const tabs = [];
  for (let n = 0; n < 7; n++) {
    const tab = await visitor.context.newPage();
    await tab.clock.install();
    await visitor.chat("tabs", tab);
    tabs.push(tab);
    if (n < 6) {
      await tab.evaluate(() => window.hide(true));
      await tab.clock.fastForward(25_000);
    }
  }
  visitor.page = tabs.at(-1);
  await visitor.send("say 12 words");
  for (const tab of tabs.reverse()) {
    await tab.evaluate(() => window.hide(false));
    await tab.locator("#log").getByText(words(12)).waitFor();
    assert.equal(await tab.locator("#log > .message").count(), 4);
    await tab.evaluate(() => window.hide(true));
    await tab.clock.fastForward(25_000);
  }
});

claim("two open pages show one answer while it is written", server, async (visitor) => {
  await converse(server, "two", "Good morning");
  const first = await visitor.chat("two");
  const second = await visitor.chat("two", await visitor.context.newPage());
  await second.getByLabel("Message", { exact: true }).fill("slow 20ms say 80 words");
  await second.keyboard.press("Enter");
  await begins(first);
  await visitor.answered();
  assert.equal(await text(first), words(80));
  await until("the other page", async () => (await text(second)) === words(80));
});

claim("a page that is opened in mid-answer shows all of it", server, async (visitor) => {
  await converse(server, "middle", "Good morning");
  await visitor.chat("middle");
  await visitor.send("slow 20ms say 120 words");
  await begins(visitor.page, 20);
  visitor.page = await visitor.chat("middle", await visitor.context.newPage());
  assert.ok((await text(visitor.page)).startsWith("the loom"));
  await visitor.answered();
  assert.equal(await text(visitor.page), words(120));
  await visitor.equalsItsReload();
});

claim("a stop keeps the text so far", server, async (visitor) => {
  await converse(server, "stop", "Good morning");
  const page = await visitor.chat("stop");
  await visitor.send("slow 30ms say 400 words");
  await begins(page);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  const answer = await visitor.answered(1);
  await answer.getByText("Stopped. The text so far is kept.").waitFor();
  const kept = await text(page);
  assert.ok(kept.length > 10 && words(400).startsWith(kept), kept);
  await visitor.equalsItsReload();
});

claim("Escape stops the running answer", server, async (visitor) => {
  await converse(server, "escape", "Good morning");
  const page = await visitor.chat("escape");
  await visitor.send("slow 30ms say 400 words");
  await begins(page);
  await page.keyboard.press("Escape");
  const answer = await visitor.answered(1);
  await answer.getByText("Stopped.").waitFor();
});

claim("a message that is sent meanwhile waits, then is answered", server, async (visitor) => {
  await converse(server, "queue", "Good morning");
  const page = await visitor.chat("queue");
  await visitor.send("slow 20ms say 100 words");
  await begins(page);
  await visitor.send("And then?");
  const waiting = page.locator(".message.user[data-state=queued]");
  await waiting.getByText("queued", { exact: true }).waitFor();
  await page.locator("#log").getByText("You said: And then?").waitFor();
  await visitor.answered(2);
  assert.equal(await waiting.count(), 0);
  const all = await page.locator("#log > .message").allInnerTexts();
  assert.deepEqual(all.map((one) => one.split("\n")[0]), ["You", "demo", "You", "demo", "You", "demo"]);
  await visitor.equalsItsReload();
});

claim("an interrupting message stops the answer and is answered", server, async (visitor) => {
  await converse(server, "interrupt", "Good morning");
  const page = await visitor.chat("interrupt");
  await visitor.send("slow 30ms say 400 words");
  await begins(page);
  await page.getByLabel("While an answer is written").selectOption("interrupt");
  await visitor.send("Something else");
  await page.locator("#log").getByText("You said: Something else").waitFor();
  await visitor.answered(2);
  const stopped = page.locator("#log > .message.agent").nth(1);
  assert.equal(await stopped.getAttribute("data-state"), "stopped");
  await visitor.equalsItsReload();
});

claim("the error of a model is shown and equals its reload", server, async (visitor) => {
  await converse(server, "fails", "Good morning");
  await visitor.chat("fails");
  await visitor.send("fail network after 5 say 40 words");
  const answer = await visitor.answered(1);
  await answer.getByText(/the model call failed/).waitFor();
  await visitor.equalsItsReload();
});
