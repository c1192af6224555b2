// Calls that wait for a person: allowed, denied, edited, by mouse and by keyboard, of agents and sub-agents.
import assert from "node:assert/strict";
import { Loomline } from "../js/loomline.mjs";
import { claim } from "./browser.mjs";
import { converse, pending, post, until } from "./chromium.mjs";
import { TEAM, delegate } from "./samples.mjs";

const server = await Loomline.forTests(TEAM);

const button = (page, name) => page.getByRole("button", { name, exact: true });

/** A thread whose agent has called `compute 6 * 7`, on an open page that saw it happen. */
async function ask(visitor, key) {
  await converse(server, key, "Good morning", { agent: "careful" });
  const page = await visitor.chat(key);
  await visitor.send("use compute 6 * 7");
  await button(page, "Allow once").waitFor();
  return page;
}

/** Waits for a text in the conversation. */
const shows = (page, text) => page.locator("#log").getByText(text).first().waitFor();

claim("a call that is allowed runs, and the agent continues", server, async (visitor) => {
  const page = await ask(visitor, "allow");
  await button(page, "Allow once").click();
  await shows(page, "compute gave 42.");
  await visitor.answered(1);
  assert.equal(await button(page, "Allow once").count(), 0);
  await visitor.equalsItsReload();
});

claim("a call is denied with a reason", server, async (visitor) => {
  const page = await ask(visitor, "deny");
  await page.getByLabel("Why (optional)").fill("Too expensive today");
  await button(page, "Deny").click();
  await shows(page, "denied");
  await visitor.answered(1);
  const card = page.locator("details.tool");
  assert.equal(await card.getAttribute("data-state"), "denied");
  await card.locator("summary").click();
  await shows(page, /Too expensive today/);
  await card.locator("summary").click();
  await visitor.equalsItsReload();
});

claim("a call runs with the arguments of the person", server, async (visitor) => {
  const page = await ask(visitor, "edit");
  await page.getByText("Edit the arguments").click();
  await page.getByLabel("Arguments, a JSON object").fill('{"expression": "2 + 3"}');
  await button(page, "Allow with these arguments").click();
  await shows(page, "compute gave 5.");
  await visitor.answered(1);
  await visitor.equalsItsReload();
});

claim("arguments that are no JSON are refused in place", server, async (visitor) => {
  visitor.expect(/Failed to load resource.*(400|422)/);
  const page = await ask(visitor, "no-json");
  await page.getByText("Edit the arguments").click();
  await page.getByLabel("Arguments, a JSON object").fill("{not JSON");
  await button(page, "Allow with these arguments").click();
  await page.locator("form.card .refused").getByText(/JSON/).waitFor();
  assert.equal(await page.getByLabel("Arguments, a JSON object").inputValue(), "{not JSON");
  await button(page, "Allow once").click();
  await shows(page, "compute gave 42.");
});

claim("a call is allowed with the keyboard alone", server, async (visitor) => {
  const page = await ask(visitor, "keyboard");
  await page.getByLabel("Message", { exact: true }).focus();
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim());
  for (let n = 0; (await focused()) !== "Allow once"; n++) {
    assert.ok(n < 30, "no way to the button by Shift+Tab");
    await page.keyboard.press("Shift+Tab");
  }
  await page.keyboard.press("Space");
  await shows(page, "compute gave 42.");
});

claim("arguments are edited and allowed with the keyboard alone", server, async (visitor) => {
  const page = await ask(visitor, "keys-edit");
  await page.locator("#log").focus();
  const tabTo = async (what) => {
    for (let n = 0; ; n++) {
      const text = await page.evaluate(() => {
        const at = document.activeElement;
        return at?.getAttribute("name") === "arguments" ? "arguments" : at?.textContent?.trim();
      });
      if (text === what) return;
      assert.ok(n < 30, `no way to ${what} by Tab`);
      await page.keyboard.press("Tab");
    }
  };
  await tabTo("Edit the arguments");
  await page.keyboard.press("Enter");
  await tabTo("arguments");
  await page.keyboard.press("Control+A");
  await page.keyboard.type('{"expression": "10 - 1"}');
  await tabTo("Allow with these arguments");
  await page.keyboard.press("Enter");
  await shows(page, "compute gave 9.");
});

claim("a page that is opened later shows the question", server, async (visitor) => {
  await converse(server, "later", "use compute 6 * 7", { agent: "careful" });
  const page = await visitor.chat("later");
  await button(page, "Allow once").click();
  await shows(page, "compute gave 42.");
  await visitor.answered(0);
  await visitor.equalsItsReload();
});

claim("a sub-agent's call is allowed on the page of its parent", server, async (visitor) => {
  await converse(server, "child", "Good morning", { agent: "lead" });
  const page = await visitor.chat("child");
  await visitor.send(delegate("use compute 6 * 7"));
  await button(page, "Allow once").click();
  await shows(page, /delegate gave .*compute gave 42/);
  await visitor.answered(1);
  assert.equal(await button(page, "Allow once").count(), 0);
});

claim("a sub-agent's call is allowed after a reload", server, async (visitor) => {
  await post(server, "child-later", delegate("use compute 6 * 7"), { agent: "lead" });
  await pending(server, "child-later");
  const page = await visitor.chat("child-later");
  await button(page, "Allow once").click();
  await shows(page, /delegate gave .*compute gave 42/);
  await visitor.answered(0);
  assert.equal(await button(page, "Allow once").count(), 0);
  // What a sub-agent wrote is on its own page, which the call links to.
  await page.reload();
  await shows(page, /delegate gave .*compute gave 42/);
  assert.equal(await button(page, "Allow once").count(), 0);
  assert.equal(await page.locator(".subagents a").count(), 1);
});

claim("a page shows what a sub-agent writes while it writes", server, async (visitor) => {
  await converse(server, "nested", "Good morning", { agent: "lead" });
  const page = await visitor.chat("nested");
  await visitor.send(delegate("slow 20ms say 80 words"));
  const nested = page.locator(".nested .message.agent");
  await nested.getByText(/the loom weaves a thread/).waitFor();
  assert.equal(await nested.getAttribute("data-state"), "running");
  await visitor.answered(1);
  assert.equal(await nested.getAttribute("data-state"), "done");
});

claim("the result of a client's tool can be sent", server, async (visitor) => {
  await converse(server, "client", "Good morning", { agent: "client" });
  const page = await visitor.chat("client");
  await visitor.send("get_weather Oslo");
  await page.getByLabel("Result, text or JSON").fill("rain");
  await button(page, "Send result").click();
  await shows(page, "get_weather gave rain.");
  await visitor.answered(1);
  await visitor.equalsItsReload();
});

claim("the result of a client's tool is a form if the tool declares its schema", server, async (visitor) => {
  visitor.expect(/Failed to load resource.*(409|422|400)/);
  await converse(server, "formed", "Good morning", { agent: "surveyor" });
  const page = await visitor.chat("formed");
  await visitor.send("measure Oslo");
  await page.getByLabel("degrees").fill("21");
  await page.getByLabel("sky").selectOption("cloudy");
  await button(page, "Send result").click();
  await shows(page, /measure gave .*cloudy/);
  await visitor.answered(1);
  await visitor.equalsItsReload();
});

claim("two calls that wait are answered in any order", server, async (visitor) => {
  await converse(server, "both", "Good morning", { agent: "careful" });
  const page = await visitor.chat("both");
  await visitor.send("use compute 1 + 1 and use compute 2 + 2");
  await until("two questions", async () => (await button(page, "Allow once").count()) === 2);
  await button(page, "Allow once").last().click();
  await until("one question", async () => (await button(page, "Allow once").count()) === 1);
  await button(page, "Allow once").click();
  await shows(page, /compute gave 2/);
  await visitor.answered(1);
  await visitor.equalsItsReload();
});

claim("an answer is copied as the Markdown that the model wrote", server, async (visitor) => {
  const page = await ask(visitor, "copied");
  await button(page, "Allow once").click();
  await shows(page, /compute gave 42/);
  const answer = await visitor.answered(1);
  const source = await answer.getByRole("button", { name: "Copy", exact: true }).getAttribute("data-text");
  const text = await (await fetch(server.base + source)).text();
  assert.match(text, /compute gave 42\./);
});
