// Messages that are written again, answers that are given again, and their versions.
import assert from "node:assert/strict";
import { Loomline } from "../js/loomline.mjs";
import { claim, fits, isAccessible } from "./browser.mjs";
import { converse, until } from "./chromium.mjs";

const server = await Loomline.forTests();

const button = (within, name) => within.getByRole("button", { name, exact: true });
const log = (page) => page.locator("#log");
const people = (page) => page.locator("#log > .message.user .plain");

/** A thread of two messages, on an open page. */
async function opened(visitor, key) {
  await converse(server, key, "The first message");
  await converse(server, key, "The second message");
  return visitor.chat(key);
}

/** Opens the form of the nth message and writes another text. */
async function write(page, n, text) {
  const message = page.locator("#log > .message.user").nth(n);
  await message.getByText("Edit", { exact: true }).click();
  await message.getByLabel("New text").fill(text);
  return message;
}

claim("an edited message replaces it and what follows", server, async (visitor) => {
  const page = await opened(visitor, "edit");
  const message = await write(page, 0, "Another beginning");
  await button(message, "Send again").click();
  await log(page).getByText("You said: Another beginning").waitFor();
  await until("two messages", async () => (await page.locator("#log > .message").count()) === 2);
  await visitor.answered(0);
  assert.deepEqual(await people(page).allTextContents(), ["Another beginning"]);
  await visitor.equalsItsReload();
});

claim("an edited message that keeps both is sent in a fork", server, async (visitor) => {
  const page = await opened(visitor, "both");
  const message = await write(page, 1, "Another second message");
  await button(message, "Keep both (fork)").click();
  await page.waitForURL((url) => !url.pathname.endsWith("/both"));
  await page.getByText("fork of both").waitFor();
  await log(page).getByText("You said: Another second message").waitFor();
  assert.deepEqual(await people(page).allTextContents(), ["The first message", "Another second message"]);
  await visitor.open("/chat/both");
  assert.deepEqual(await people(page).allTextContents(), ["The first message", "The second message"]);
});

claim("a message is answered again, and both answers are kept", server, async (visitor) => {
  const page = await opened(visitor, "again");
  const first = await page.locator("#log > .message.agent").last().getAttribute("id");
  await button(page.locator("#log > .message.agent").last(), "Answer again").click();
  await until("another answer", async () => {
    const all = page.locator("#log > .message.agent");
    return (await all.count()) === 2 && (await all.last().getAttribute("id")) !== first;
  });
  await visitor.answered(1);
  await visitor.equalsItsReload();
  await page.getByRole("link", { name: /version/i }).last().click();
  await page.getByRole("heading", { name: "Versions" }).waitFor();
  assert.equal(await page.locator("ol.versions > li").count(), 2);
  await isAccessible(page, "the versions");
  await fits(page, "the versions");
});

claim("a thread is shown as it was before an edit", server, async (visitor) => {
  const page = await opened(visitor, "past");
  const message = await write(page, 1, "Something else");
  await button(message, "Send again").click();
  await log(page).getByText("You said: Something else").waitFor();
  await visitor.answered(1);
  await page.locator("#log > .message.user").last().getByRole("link", { name: /version/i }).click();
  await page.getByRole("link", { name: "Open the thread as it was" }).click();
  await page.getByText(/as it was after event/).waitFor();
  assert.deepEqual(await people(page).allTextContents(), ["The first message", "The second message"]);
  assert.equal(await page.getByLabel("Message", { exact: true }).count(), 0);
  await isAccessible(page, "a thread as it was");
  const texts = () => page.locator("#log > .message .body").allTextContents();
  const then = await texts();
  await button(page, "Continue from here (fork)").click();
  await page.getByText("fork of past").waitFor();
  assert.deepEqual(await texts(), then, "time travel shows what a fork at that event has");
});
