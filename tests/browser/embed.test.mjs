// The chat within a page of another site.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { after } from "node:test";
import { Loomline } from "../js/loomline.mjs";
import { claim, isAccessible } from "./browser.mjs";
import { TEAM } from "./samples.mjs";
import { until } from "./chromium.mjs";

const KEY = "llk_site";
const hash = createHash("sha256").update(KEY).digest("hex");

/** A site with a page that embeds the chat, and a route that gets tokens with the site's key. */
async function site(name) {
  const started = { n_tokens: 0 };
  const http = createServer(async (request, response) => {
    if (request.url === "/token") {
      started.n_tokens += 1;
      const made = await fetch(`${server.base}/api/v1/web/tokens`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
        body: JSON.stringify({ agent: "demo", threadPrefix: "shop-", actor: "ada" }),
      });
      response.end((await made.json()).token);
      return;
    }
    if (request.url === "/start.js") {
      response.setHeader("content-type", "text/javascript");
      response.end(`Loomline.embed(document.body, { agent: "demo", thread: "shop-${name}", token: async () => (await fetch("/token")).text() })`);
      return;
    }
    response.setHeader("content-type", "text/html");
    response.end(`<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,">
<body><h1>Shop</h1><script src="${server.base}/embed.js"></script><script src="/start.js"></script>`);
  });
  await new Promise((done) => http.listen(0, "127.0.0.1", done));
  after(() => http.close());
  started.origin = `http://127.0.0.1:${http.address().port}`;
  return started;
}

const shop = await site("one");
const stranger = await site("two");
const server = await Loomline.forTests(`${TEAM}
[web]
embed_origins = ["${shop.origin}"]
[tenants.a.keys.site]
hash = "sha256:${hash}"
`);

claim("a page of another site has a chat", server, async (visitor) => {
  visitor.trust(shop.origin);
  const { page } = visitor;
  await page.goto(`${shop.origin}/`);
  const frame = page.frameLocator("iframe");
  await frame.getByLabel("Message", { exact: true }).fill("Good morning");
  await frame.getByRole("button", { name: "Send", exact: true }).click();
  await frame.locator("#log").getByText("You said: Good morning").waitFor();
  await frame.getByRole("heading", { name: "ada" }).waitFor();
  for (const name of ["Fork", "Edit"]) {
    assert.equal(await frame.getByText(name, { exact: true }).filter({ visible: true }).count(), 0, name);
  }
  assert.equal(await frame.getByRole("navigation").count(), 0);
  await page.reload();
  await frame.locator("#log").getByText("You said: Good morning").waitFor();
  assert.equal(shop.n_tokens, 2);
  const inner = page.frames().find((one) => one.url().includes("/embed/"));
  await isAccessible(page, "a page with a chat");
  assert.equal(await inner.evaluate(() => document.cookie), "");
});

claim("a site that is not listed has no chat", server, async (visitor) => {
  visitor.trust(stranger.origin);
  visitor.expect(/frame-ancestors|Refused to frame|Framing/i);
  const { page } = visitor;
  await page.goto(`${stranger.origin}/`);
  await until("the frame is refused", async () => page.frames().length > 1);
  await page.waitForTimeout(500);
  assert.equal(await page.frameLocator("iframe").getByLabel("Message", { exact: true }).count(), 0);
  assert.equal(stranger.n_tokens, 0);
});
