// Requests of AITP as forms: every published request is answered in the browser, and the answers are valid
// messages; requests that are declined, expire, are replaced, or are another key's.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Loomline } from "../js/loomline.mjs";
import { claim, fits, isAccessible } from "./browser.mjs";
import { converse, get, post, until } from "./chromium.mjs";
import { TEAM } from "./samples.mjs";

const server = await Loomline.forTests(TEAM);
const SCHEMA = (name, version) => `https://aitp.dev/capabilities/${name}/v${version}/schema.json`;
const DECISIONS = SCHEMA("aitp-02-decisions", "1.0.0");
const DATA = SCHEMA("aitp-03-data-request", "1.0.0");
const PAYMENTS = SCHEMA("aitp-01-payments", "1.0.0");

const decision = (more) => ({
  $schema: DECISIONS,
  request_decision: { id: "seat", title: "Which seat?", options: [{ id: "window", name: "Window" }, { id: "aisle", name: "Aisle" }], ...more },
});
const address = () => ({
  $schema: DATA,
  request_data: {
    id: "address", title: "Where to?", description: "For the parcel.",
    form: { fields: [
      { id: "city", label: "City", required: true, autocomplete: "address-level2" },
      { id: "floor", label: "Floor", type: "number" },
      { id: "kind", label: "Kind", type: "select", options: ["House", "Flat"] },
    ] },
  },
});
const quote = () => ({
  $schema: PAYMENTS,
  quote: {
    quote_id: "hat", merchant_id: "shop", description: "A hat", merchant_signature: "ed25519:x",
    payment_options: [{ currency: "USD", amount: "12.50", payment_methods: [{ type: "near_payment_channel", token: "usdc", recipient: "shop.near" }] }],
  },
});
const products = () => decision({
  type: "products", id: "hats", title: "Which hats?",
  options: [
    { id: "cap", name: "Cap", five_star_rating: 4.5, variants: [{ id: "cap-red", short_variant_name: "Red" }] },
    { id: "hat", name: "Hat", description: "With a brim" },
  ],
});

/** One request of each kind, for checkouts without the published examples. */
const OWN = [
  decision(),
  decision({ type: "checkbox", id: "extras" }),
  decision({ type: "confirmation", id: "sure" }),
  products(),
  address(),
  quote(),
  { $schema: SCHEMA("aitp-04-near-wallet", "1.0.0"), request_account: { request_id: "account", description: "Which account?" } },
];

async function published() {
  const folder = process.env.LOOMLINE_SHARED;
  if (!folder) return OWN;
  const all = JSON.parse(await readFile(join(folder, "schemas/aitp/doc-examples.json"), "utf8"));
  const isRequest = ({ kind, valid }) => valid && (/^(request_|top_up_request$)/.test(kind) || /quote$/.test(kind));
  // The offers of the examples have ended.
  const current = all.filter(isRequest).map(({ message }) => JSON.stringify(message).replaceAll("2025-03-01", "2050-03-01"));
  return [...OWN, ...current.map((text) => JSON.parse(text))];
}

const field = (page, name) => page.locator("form.answer").getByLabel(name);
const option = (page, name) => page.getByRole("radio", { name });

/** Has the thread's author ask. */
async function ask(key, message, { on = server, token, metadata } = {}) {
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
  const body = JSON.stringify({ role: "assistant", content: JSON.stringify(message), metadata });
  const answer = await fetch(`${on.base}/v1/threads/${key}/messages`, { method: "POST", headers, body });
  assert.ok(answer.ok, await answer.text());
}

async function thread(key) {
  const body = JSON.stringify({ key });
  await fetch(`${server.base}/api/v1/threads`, { method: "POST", headers: { "content-type": "application/json" }, body });
}

const requests = async (key) => (await get(server, `/api/v1/threads/${key}/requests?state=all`)).requests;

/** What a person might write into a field with this name and type. */
function plausible(name, type) {
  const part = name.replace(/^f\./, "");
  const known = {
    accounts: "ada.near\nbob.near",
    addresses: `0x${"a1".repeat(20)}`,
    address: "0x742d35Cc6634C0532925a3b844Bc454e4438f44e",
    transaction_hash: `0x${"a1".repeat(32)}`,
    signature: `0x${"a1".repeat(4)}`,
    new_balance: "75.50",
    amount: "75.50",
    "*": '{"city": "Bonn"}',
  };
  const byType = { email: "ada@example.com", number: "7", tel: "+1 555 1234", date: "2026-11-26", url: "https://example.com/" };
  return known[part] ?? byType[type] ?? "something";
}

/** Fills in the first open form as a person does, and sends it. */
async function fill(page) {
  const form = page.locator("form.answer").first();
  // A payment is confirmed in a second step.
  const step = page.locator("details.pay:not([open]) > summary");
  if (await step.count()) await step.first().click();
  const chosen = new Set();
  for (const field of await form.locator("input:visible, select:visible, textarea:visible").all()) {
    const [name, type, tag] = await field.evaluate((it) => [it.name, it.type, it.localName]);
    if (!name.startsWith("f.")) continue;
    if (type === "radio") {
      if (!chosen.has(name)) await field.check();
      chosen.add(name);
    } else if (type === "checkbox") await field.check();
    else if (tag === "select") await field.selectOption({ index: (await field.locator("option").count()) - 1 });
    else if (!(await field.inputValue())) await field.fill(plausible(name, type));
  }
  await form.locator("button[type=submit]").first().click();
}

for (const [n, message] of (await published()).entries()) {
  const kind = Object.keys(message).find((member) => member !== "$schema");
  claim(`a browser answers a published request: ${n} ${kind}`, server, async (visitor) => {
    const key = `published-${n}`;
    await thread(key);
    await ask(key, message);
    const page = await visitor.chat(key);
    await page.locator(".request[data-state=open]").waitFor();
    await fill(page);
    await page.getByText(/Answered by/).first().waitFor();
    const [request] = await requests(key);
    assert.equal(request.state, "answered");
    assert.equal(request.nAnswers, 1);
    const { data } = await get(server, `/v1/threads/${key}/messages?order=desc&limit=1`);
    const sent = JSON.parse(data[0].content[0].text.value);
    assert.match(sent.$schema, /^https:\/\/aitp\.dev\/capabilities\//);
    await visitor.equalsItsReload();
  });
}

claim("an answer with an error keeps its fields and names the error", server, async (visitor) => {
  visitor.expect(/Failed to load resource.*422/);
  await thread("wrong");
  await ask("wrong", {
    $schema: DATA,
    request_data: { id: "a", description: "Where?", form: { fields: [{ id: "mail", label: "Mail", type: "text" }, { id: "floor", label: "Floor", type: "number", required: true }] } },
  });
  const page = await visitor.chat("wrong");
  await field(page, "Mail").fill("<b>kept</b>");
  // The browser checks numbers itself: the server's judgement is asked for here.
  await page.locator("form.answer").evaluate((form) => {
    form.noValidate = true;
    form.elements["f.floor"].type = "text";
    form.elements["f.floor"].value = "third";
  });
  await page.locator("form.answer button[type=submit]").click();
  await page.getByText("expected a number").first().waitFor();
  assert.equal(await field(page, "Mail").inputValue(), "<b>kept</b>");
  assert.equal((await requests("wrong"))[0].state, "open");
  await field(page, "Floor").fill("3");
  await page.locator("form.answer button[type=submit]").click();
  await page.getByText(/Answered by/).waitFor();
});

claim("a request is declined with a reason", server, async (visitor) => {
  await thread("declined");
  await ask("declined", decision());
  const page = await visitor.chat("declined");
  await page.getByText("Decline", { exact: true }).click();
  await page.getByLabel("Reason (optional)").fill("No flights");
  await page.getByRole("button", { name: "Decline the request" }).click();
  await page.getByText("Reason: No flights").waitFor();
  assert.equal((await requests("declined"))[0].state, "declined");
  assert.equal(await page.locator("form.answer").count(), 0);
  await visitor.equalsItsReload();
});

claim("a request that expires while the page is open is answered too late", server, async (visitor) => {
  visitor.expect(/Failed to load resource.*409/);
  await thread("late");
  const soon = new Date(Date.now() + 2_500).toISOString();
  await ask("late", decision({ expires_at: soon }));
  const page = await visitor.chat("late");
  await option(page, "Window").check();
  await new Promise((done) => setTimeout(done, 2_700));
  const button = page.getByRole("button", { name: "Choose" });
  if (await button.count()) {
    await button.click();
    await page.getByText(/expired/).first().waitFor();
  }
  await page.reload();
  await page.locator(".request[data-state=expired]").waitFor();
  assert.equal(await page.locator("form.answer").count(), 0);
  assert.equal((await requests("late"))[0].state, "expired");
});

claim("a request that a newer one replaces has no form", server, async (visitor) => {
  await thread("replaced");
  await ask("replaced", decision());
  const page = await visitor.chat("replaced");
  await page.locator("form.answer").waitFor();
  await ask("replaced", decision());
  await page.getByText("replaced by a newer request").waitFor();
  assert.equal(await page.locator("form.answer").count(), 1);
  await fill(page);
  await page.getByText(/Answered by/).waitFor();
  await visitor.equalsItsReload();
});

claim("a request that appears on an open page waits for the reader", server, async (visitor) => {
  await converse(server, "appears", "Good morning");
  const page = await visitor.chat("appears");
  await ask("appears", decision());
  const list = page.getByRole("navigation", { name: "Requests that wait for you" });
  await list.getByRole("link", { name: "Which seat?" }).click();
  await option(page, "Aisle").check();
  await page.getByRole("button", { name: "Choose" }).click();
  await page.getByText(/Answered by/).waitFor();
  await until("an empty list", async () => (await list.getByRole("link").count()) === 0);
});

claim("a choice is made with the keyboard alone", server, async (visitor) => {
  await thread("keys");
  await ask("keys", decision());
  const page = await visitor.chat("keys");
  await option(page, "Window").focus();
  await page.keyboard.press("ArrowDown");
  assert.ok(await option(page, "Aisle").isChecked());
  await page.keyboard.press("Enter");
  await page.getByText(/Answered by/).waitFor();
});

claim("a request is answered without a script", server, { javaScriptEnabled: false }, async (visitor) => {
  await thread("plain");
  await ask("plain", address());
  const page = await visitor.open("/chat/plain");
  await field(page, "City").fill("Bonn");
  await page.locator("form.answer button[type=submit]").click();
  await page.getByText(/Answered by/).waitFor();
});

const KEYS = { user: "llk_browser_user", shop: "llk_browser_shop", helper: "llk_browser_helper" };
const keyed = await Loomline.forTests(`${TEAM}\n${Object.entries(KEYS).map(([name, key]) =>
  `[tenants.a.keys.${name}]\nhash = "sha256:${createHash("sha256").update(key).digest("hex")}"`).join("\n")}\n`);

/** A visitor with a key. */
const as = (token) => ({ extraHTTPHeaders: { authorization: `Bearer ${token}` } });
const call = (path, token, body) => fetch(keyed.base + path, {
  method: "POST",
  headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
  body: JSON.stringify(body),
});

async function meeting(key) {
  await call("/api/v1/threads", KEYS.user, { key });
  for (const [token, id, capabilities] of [[KEYS.shop, "shop", []], [KEYS.helper, "helper", [DECISIONS]]]) {
    const joined = await call(`/api/v1/threads/${key}/actors`, token, { actor: { id, capabilities } });
    assert.equal(joined.status, 201, await joined.text());
  }
}

claim("each of two keys answers only its own requests", keyed, as(KEYS.helper), async (visitor) => {
  await meeting("two-keys");
  const shop = { on: keyed, token: KEYS.shop, metadata: { actor: "shop" } };
  // The helper declared decisions only: the data are asked of others.
  await ask("two-keys", address(), shop);
  await ask("two-keys", decision(), shop);
  const page = await visitor.chat("two-keys");
  await page.getByText("did not declare the capability").waitFor();
  assert.equal(await page.locator("form.answer").count(), 1);
  await option(page, "Window").check();
  await page.getByRole("button", { name: "Choose" }).click();
  await page.getByText("Answered by").getByText("helper").waitFor();
});

claim("the other key answers what is asked of it", keyed, as(KEYS.user), async (visitor) => {
  await meeting("other-key");
  const shop = { on: keyed, token: KEYS.shop, metadata: { actor: "shop" } };
  await ask("other-key", address(), shop);
  const page = await visitor.chat("other-key");
  await page.locator(".theirs").getByText("Where to?").waitFor();
  await field(page, "City").fill("Bonn");
  await page.locator("form.answer button[type=submit]").click();
  await page.getByText(/Answered by/).waitFor();
});

/** A thread with a request of each kind, open and closed. */
async function every(key) {
  await thread(key);
  for (const message of OWN) await ask(key, message);
  await ask(key, decision({ id: "gone", expires_at: new Date(Date.now() + 300).toISOString() }));
  await ask(key, decision({ id: "long", title: "warp".repeat(60), options: [{ id: "o".repeat(80), name: "weft".repeat(60), description: "A word that is long: ".repeat(20) }] }));
  await post(server, key, "Good morning");
  await new Promise((done) => setTimeout(done, 400));
}

for (const [name, options] of [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["narrow", { colorScheme: "light", viewport: { width: 320, height: 640 } }],
]) {
  claim(`a page with every kind of request is accessible, ${name}`, server, options, async (visitor) => {
    const key = `every-${name}`;
    await every(key);
    const page = await visitor.chat(key);
    await isAccessible(page, "folded");
    await page.evaluate(() => { for (const details of document.querySelectorAll("#log details")) details.open = true; });
    await isAccessible(page, "unfolded");
    await fits(page, "the requests");
  });
}
