// Threads: new ones, long ones, forks, drafts, links and keys, and pages without a script.
import assert from "node:assert/strict";
import { after } from "node:test";
import { Loomline } from "../js/loomline.mjs";
import { claim } from "./browser.mjs";
import { converse, post, rest, until } from "./chromium.mjs";
import { Scripts, TEAM } from "./samples.mjs";

const LONG = `https://example.org/${"x".repeat(90)}`;
const scripts = await Scripts.inFolder();
after(() => scripts.remove());
const linker = await scripts.model("linker", [
  { text: `Read [this one](${LONG}), [that one](https://example.org/short) and ![a loom](https://example.org/loom.png).` },
]);
const server = await Loomline.forTests(`${TEAM}\n${linker}\n[agents.linker]\nmodel = "linker"\n`);

const button = (page, name) => page.getByRole("button", { name, exact: true });
const box = (page) => page.getByLabel("Message", { exact: true });

claim("a new thread has its first line as its title", server, async (visitor) => {
  const page = await visitor.open("/chat");
  await box(page).fill("Plan a loom\nwith four shafts");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/chat\/.+/);
  await page.getByRole("heading", { level: 1, name: "Plan a loom" }).waitFor();
  assert.match(await page.title(), /^Plan a loom/);
  await page.locator("#log").getByText("You said: Plan a loom").waitFor();
  const current = page.getByRole("navigation").locator("a[aria-current=page]");
  assert.equal((await current.innerText()).trim(), "Plan a loom");
});

claim("a message of a new chat is sent once though pressed twice", server, async (visitor) => {
  const page = await visitor.open("/chat");
  await box(page).fill("Only once, please");
  await page.evaluate(() => {
    const form = document.getElementById("composer");
    form.requestSubmit();
    form.requestSubmit();
  });
  await page.waitForURL(/\/chat\/.+/);
  await visitor.answered();
  assert.equal(await page.locator("#log > .message.user").count(), 1);
});

claim("a fork behind an answer is a thread of its own", server, async (visitor) => {
  await converse(server, "trunk", "The first message");
  await converse(server, "trunk", "The second message");
  const page = await visitor.chat("trunk");
  const answer = page.locator("#log > .message.agent").first();
  await button(answer, "Fork").click();
  await page.waitForURL((url) => !url.pathname.endsWith("/trunk"));
  await page.getByText("fork of trunk").waitFor();
  assert.equal(await page.locator("#log > .message").count(), 2);
  await visitor.send("Another message");
  await page.locator("#log").getByText("You said: Another message").waitFor();
  await visitor.answered(1);
  assert.equal(await page.getByText("The second message").count(), 0);
  await page.getByText("fork of trunk").click();
  await page.waitForURL(/\/chat\/trunk$/);
  await page.getByText("You said: The second message").waitFor();
});

claim("a draft survives a reload, and sending clears it", server, async (visitor) => {
  await converse(server, "draft", "Good morning");
  const page = await visitor.chat("draft");
  await box(page).fill("Half a thought");
  await visitor.reload();
  assert.equal(await box(page).inputValue(), "Half a thought");
  await box(page).press("Enter");
  await visitor.answered(1);
  assert.equal(await box(page).inputValue(), "");
  await visitor.reload();
  assert.equal(await box(page).inputValue(), "");
});

claim("a message typed while the server is away is sent later", server, async (visitor) => {
  visitor.expect(/Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/);
  await converse(server, "away", "Good morning");
  const page = await visitor.chat("away");
  await server.kill();
  await page.getByText(/Not connected/).waitFor();
  await visitor.send("Are you there?");
  await page.getByText(/Not sent: the server can't be reached/).waitFor();
  assert.equal(await box(page).inputValue(), "Are you there?");
  await server.restart();
  await page.locator("#log").getByText("You said: Are you there?").waitFor();
  await visitor.answered(1);
  assert.equal(await page.locator("#log > .message").count(), 4);
  assert.equal(await box(page).inputValue(), "");
  await visitor.equalsItsReload();
});

claim("Shift+Enter breaks the line and sends nothing", server, async (visitor) => {
  await converse(server, "break", "Good morning");
  const page = await visitor.chat("break");
  await box(page).pressSequentially("One");
  await page.keyboard.press("Shift+Enter");
  await box(page).pressSequentially("Two");
  assert.equal(await box(page).inputValue(), "One\nTwo");
  await page.keyboard.press("Enter");
  await visitor.answered(1);
  const sent = page.locator("#log > .message.user").last().locator(".plain");
  assert.equal(await sent.innerText(), "One\nTwo");
});

claim("a long thread loads earlier messages and keeps the place", server, async (visitor) => {
  for (let n = 1; n <= 150; n++) await post(server, "long", `message ${n}.`);
  await rest(server, "long");
  const page = await visitor.chat("long");
  const count = () => page.locator("#log .message").count();
  const first = await count();
  assert.ok(first >= 60 && first < 200, `${first} messages at first`);
  await page.locator("#log").getByText("You said: message 150.").waitFor();
  const isAtEnd = () =>
    page.evaluate(() => {
      const log = document.getElementById("log");
      return log.scrollHeight - log.scrollTop - log.clientHeight < 4;
    });
  await until("the end in view", isAtEnd);

  // The first message in view stays where it is while others come above it.
  const place = () =>
    page.evaluate(async () => {
      const log = document.getElementById("log");
      const top = log.getBoundingClientRect().top;
      let isSame = 0;
      for (let last; isSame < 6; ) {
        await new Promise((done) => requestAnimationFrame(done));
        window.marked ??= [...log.querySelectorAll(".message")].find((it) => it.getBoundingClientRect().bottom > top + 50);
        const now = window.marked.getBoundingClientRect().top - top;
        isSame = now === last ? isSame + 1 : 0;
        last = now;
      }
      return window.marked.getBoundingClientRect().top - top;
    });
  let go;
  await page.route("**/ui/older*", async (route) => {
    await go.promise;
    await route.continue();
  });
  while ((await page.locator("#earlier").count()) > 0) {
    go = Promise.withResolvers();
    const known = await count();
    await page.evaluate(() => {
      window.marked = undefined;
      document.getElementById("log").scrollTop = 390;
    });
    const before = await place();
    go.resolve();
    await until("earlier messages", async () => (await count()) > known);
    const moved = Math.abs((await place()) - before);
    assert.ok(moved < 5, `the message in view moved by ${moved} pixels`);
  }
  const texts = await page.locator("#log .message.user .plain").allTextContents();
  assert.deepEqual(texts, Array.from({ length: 150 }, (_, at) => `message ${at + 1}.`));
  const ids = await page.evaluate(() => [...document.querySelectorAll("#log [id]")].map((element) => element.id));
  assert.equal(new Set(ids).size, ids.length, "two elements have one id");
});

claim("a reader who has scrolled up is not moved by news", server, async (visitor) => {
  for (let n = 1; n <= 20; n++) await post(server, "news", `message ${n}.`);
  await rest(server, "news");
  const page = await visitor.chat("news");
  const top = () => page.evaluate(() => document.getElementById("log").scrollTop);
  await page.evaluate(() => { document.getElementById("log").scrollTop = 0; });
  await post(server, "news", "say 300 words");
  const news = button(page, "New below");
  await news.waitFor();
  assert.equal(await top(), 0);
  await news.click();
  await until("the end in view", async () => (await top()) > 500);
  await until("no button", async () => (await news.count()) === 0);
});

claim("Alt and the arrows move between messages", server, async (visitor) => {
  await converse(server, "arrows", "One");
  await converse(server, "arrows", "Two");
  const page = await visitor.chat("arrows");
  const at = () =>
    page.evaluate(() => [...document.querySelectorAll("#log > .message")].indexOf(document.activeElement));
  await page.keyboard.press("Alt+ArrowUp");
  assert.equal(await at(), 3);
  await page.keyboard.press("Alt+ArrowUp");
  assert.equal(await at(), 2);
  await page.keyboard.press("Alt+ArrowDown");
  assert.equal(await at(), 3);
});

claim("a link with a long address asks before it opens", server, async (visitor) => {
  await visitor.allow("https://example.org");
  await converse(server, "links", "Where?", { agent: "linker" });
  const page = await visitor.chat("links");
  const dialog = page.getByRole("dialog");
  const tabs = () => visitor.context.pages().length;
  await page.getByRole("link", { name: "this one" }).click();
  await dialog.getByText(LONG).waitFor();
  await button(dialog, "Cancel").click();
  await dialog.waitFor({ state: "hidden" });
  assert.equal(tabs(), 1);

  await page.getByRole("link", { name: "this one" }).click();
  const opened = visitor.context.waitForEvent("page");
  await button(dialog, "Open in a new tab").click();
  const tab = await opened;
  assert.equal(await tab.evaluate(() => window.opener), null);
  await tab.waitForURL(LONG);
  await tab.close();

  await page.getByRole("link", { name: "this one" }).click();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  assert.equal(tabs(), 1);
  const short = visitor.context.waitForEvent("page");
  await page.getByRole("link", { name: "that one" }).click();
  await (await short).waitForURL("https://example.org/short");
});

claim("an image of another server asks before it opens", server, async (visitor) => {
  await converse(server, "image", "Where?", { agent: "linker" });
  const page = await visitor.chat("image");
  assert.equal(await page.locator("#log img").count(), 0);
  await page.locator("button.image").click();
  await page.getByRole("dialog").getByText("https://example.org/loom.png").waitFor();
  await button(page.getByRole("dialog"), "Cancel").click();
});

claim("the colours that a reader chooses stay", server, async (visitor) => {
  const page = await visitor.open("/chat");
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await button(page, "Light or dark").click();
  const dark = await paper();
  assert.notEqual(dark, light);
  await visitor.reload();
  assert.equal(await paper(), dark);
});

claim("a page without a script is read and written", server, { javaScriptEnabled: false }, async (visitor) => {
  await converse(server, "plain", "Good morning");
  const page = await visitor.open("/chat/plain");
  await page.getByText("You said: Good morning").waitFor();
  await box(page).fill("Can you hear me?");
  await button(page, "Send").click();
  await page.waitForURL(/\/chat\/plain$/);
  await until("the answer", async () => {
    await page.reload();
    return (await page.getByText("You said: Can you hear me?").count()) > 0;
  });
  assert.equal(await page.locator("#log > .message").count(), 4);
});

claim("a new thread begins without a script", server, { javaScriptEnabled: false }, async (visitor) => {
  const page = await visitor.open("/chat");
  await box(page).fill("A thread without a script");
  await button(page, "Send").click();
  await page.waitForURL(/\/chat\/.+/);
  await page.getByRole("heading", { level: 1, name: "A thread without a script" }).waitFor();
});

claim("a call is allowed without a script", server, { javaScriptEnabled: false }, async (visitor) => {
  await converse(server, "plain-call", "use compute 6 * 7", { agent: "careful" });
  const page = await visitor.open("/chat/plain-call");
  // A reload during the navigation of the form would fail.
  await Promise.all([page.waitForEvent("load"), button(page, "Allow once").click()]);
  await until("the answer", async () => {
    await page.reload();
    return (await page.getByText("compute gave 42.").count()) > 0;
  });
});
