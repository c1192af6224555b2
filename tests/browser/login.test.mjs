// Logging in and out, with a server that has a tenant.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { before } from "node:test";
import { Loomline } from "../js/loomline.mjs";
import { claim, fits, isAccessible } from "./browser.mjs";
import { TEAM } from "./samples.mjs";

const hash = (key) => `sha256:${createHash("sha256").update(key).digest("hex")}`;
const server = await Loomline.forTests(`${TEAM}
[tenants.a.keys.all]
hash = "${hash("llk_all")}"
[tenants.a.keys.reader]
hash = "${hash("llk_reader")}"
scopes = ["read"]
`);

const button = (page, name) => page.getByRole("button", { name, exact: true });

async function logIn(page, key) {
  await page.getByLabel("Key or token").fill(key);
  await page.keyboard.press("Enter");
}

before(async () => {
  const answer = await fetch(`${server.base}/api/v1/threads/t/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer llk_all" },
    body: JSON.stringify({ content: "Good morning", stream: true }),
  });
  await answer.text();
});

claim("a person logs in, writes, and logs out", server, async (visitor) => {
  const page = await visitor.open("/chat/t");
  await page.waitForURL(/\/login\?to=/);
  const live = page.waitForResponse((response) => response.url().includes("/ui/live"));
  await logIn(page, "llk_all");
  await page.waitForURL(`${server.base}/chat/t`);
  await live;
  await visitor.send("And good evening");
  await visitor.answered(1);
  assert.equal(await page.evaluate(() => document.cookie), "");
  await button(page, "Log out").click();
  await page.waitForURL(`${server.base}/login`);
  await visitor.open("/chat/t");
  await page.waitForURL(/\/login\?to=/);
});

claim("a wrong key is refused, and the next one is taken", server, async (visitor) => {
  visitor.expect(/Failed to load resource.*401/);
  const page = await visitor.open("/login?to=%2Fchat%2Ft");
  await logIn(page, "llk_wrong");
  await page.getByRole("alert").getByText("The key or token is not valid.").waitFor();
  await isAccessible(page, "a refused log-in");
  await logIn(page, "llk_all");
  await page.waitForURL(`${server.base}/chat/t`);
});

claim("a key that may only read has no forms", server, async (visitor) => {
  const page = await visitor.open("/login?to=%2Fchat%2Ft");
  await logIn(page, "llk_reader");
  await page.getByText("This key may only read.").waitFor();
  for (const name of ["Send", "Stop", "Fork", "Answer again"]) {
    assert.equal(await button(page, name).count(), 0, name);
  }
  assert.equal(await page.getByText("Edit", { exact: true }).filter({ visible: true }).count(), 0);
  await isAccessible(page, "a page to read");
  await button(page, "Log out").click();
});

claim("an open page is told that the person has logged out", server, async (visitor) => {
  const page = await visitor.open("/login?to=%2Fchat%2Ft");
  const live = page.waitForResponse((response) => response.url().includes("/ui/live"));
  await logIn(page, "llk_all");
  await live;
  const other = await visitor.open("/chat", await visitor.context.newPage());
  await button(other, "Log out").click();
  await page.getByRole("status").getByText("you are not logged in").waitFor();
});

claim("a link of another site leads a person to the page", server, async (visitor) => {
  const page = await visitor.open("/login");
  await logIn(page, "llk_all");
  await button(page, "Log out").waitFor();
  await visitor.allow("http://mail.example");
  const body = `<!doctype html><title>Mail</title><a href="${server.base}/chat/t">Your thread</a>`;
  await visitor.context.route("http://mail.example/**", (route) => route.fulfill({ contentType: "text/html", body }));
  await page.goto("http://mail.example/");
  await page.getByText("Your thread").click();
  await page.waitForURL(`${server.base}/chat/t`);
  await button(page, "Log out").waitFor();
});

for (const [name, options] of [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["narrow", { colorScheme: "light", viewport: { width: 320, height: 640 } }],
]) {
  claim(`the log-in page is accessible, ${name}`, server, options, async (visitor) => {
    const page = await visitor.open("/login");
    await isAccessible(page, "the log-in");
    await fits(page, "the log-in");
    await logIn(page, "llk_reader");
    await page.getByText("This key may only read.").waitFor();
    await fits(page, "a page to read");
  });
}

claim("a person logs in and out without a script", server, { javaScriptEnabled: false }, async (visitor) => {
  const page = await visitor.open("/chat/t");
  await logIn(page, "llk_all");
  await page.waitForURL(`${server.base}/chat/t`);
  await button(page, "Log out").click();
  await page.waitForURL(`${server.base}/login`);
});

claim("a key that is taken out of the configuration ends its sessions", server, async (visitor) => {
  visitor.expect(/Failed to load resource/, /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE/);
  const page = await visitor.open("/login?to=%2Fchat%2Ft");
  await logIn(page, "llk_reader");
  await page.waitForURL(`${server.base}/chat/t`);
  const config = await readFile(server.config, "utf8");
  const [without] = config.split("[tenants.a.keys.reader]");
  await server.kill();
  await writeFile(server.config, without);
  await server.restart();
  await visitor.open("/chat/t");
  await page.waitForURL(/\/login\?to=/);
  await server.kill();
  await writeFile(server.config, config);
  await server.restart();
  // The key is back; its session is not.
  await visitor.open("/chat/t");
  await page.waitForURL(/\/login\?to=/);
});

claim("a key without the scope inspect has no console", server, async (visitor) => {
  visitor.expect(/Failed to load resource.*403/);
  const page = await visitor.open("/login?to=%2Finbox");
  await logIn(page, "llk_reader");
  await page.waitForURL(`${server.base}/inbox`);
  assert.equal(await page.getByRole("link", { name: "Console" }).count(), 0);
  await visitor.open("/console");
  await page.getByText(/inspect/).waitFor();
});
