// Pictures of every page, light, dark and on a phone, from a server with sample conversations.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Loomline } from "../js/loomline.mjs";
import { converse, fork, get, launch, pending, post, replaceAssets, rest, until } from "./chromium.mjs";
import { MARKDOWN, Scripts, TEAM, delegate } from "./samples.mjs";

const folder = process.argv[2] ?? "target/screenshots";
/** The pictures to take; all of them unless named. */
const only = process.argv.slice(3);
const LOOKS = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 800 } },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true },
};
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP8z4APMOGVHbHSAEEsAQ8Rnr7aAAAAAElFTkSuQmCC";

const scripts = await Scripts.inFolder();
const models = [
  await scripts.model("writer", [{ reasoning: "What do they know of **looms**?\n\nBegin with the kinds.", text: MARKDOWN }]),
  await scripts.model("slow", [{ reasoning: "What do they know of looms?", text: MARKDOWN }], 60),
  await scripts.model("tools", [
    {
      text: "I compute first.",
      tool_calls: [
        { name: "compute", arguments: { expression: "1804 + 91" }, id: "a" },
        { name: "compute", arguments: { expression: "1 / nothing" }, id: "b" },
      ],
    },
    { text: "Northrop's loom came in **1895**." },
  ]),
];
const server = await Loomline.start(`${TEAM}
${models.join("")}
[agents.writer]
model = "writer"
[agents.slow]
model = "slow"
[agents.tools]
model = "tools"
tools = ["compute"]
`);

/** A server that asks for a key. */
const locked = await Loomline.start(`${TEAM}\n[tenants.a.keys.ada]\nhash = "sha256:${"0".repeat(64)}"\n`);

async function titled(key, title) {
  const headers = { "content-type": "application/json" };
  await fetch(`${server.base}/api/v1/threads`, { method: "POST", headers, body: JSON.stringify({ key, title }) });
}

/** Conversations that stay as they are. */
async function prepare() {
  await titled("long", "A long thread");
  for (let n = 1; n <= 70; n++) await post(server, "long", `Message ${n}: say ${10 + ((n * 37) % 60)} words`);
  await rest(server, "long");
  await titled("files", "Files");
  await converse(server, "files", [
    { type: "input_text", text: "What is in these?" },
    { type: "input_image", image_url: `data:image/png;base64,${PNG}`, filename: "square.png" },
    { type: "input_file", file_data: "data:text/plain;base64,QSBub3RlLg==", filename: "notes about looms.txt" },
    { type: "acme.invoice", number: 7, lines: [{ item: "warp", price: 12 }] },
  ], { metadata: { actor: "ada" }, channel: "mail" });
  await titled("client", "The weather in Oslo");
  await converse(server, "client", "get_weather Oslo", { agent: "client" });
  await titled("tools", "When did Northrop's loom come?");
  await converse(server, "tools", "When did Northrop's loom come?", { agent: "tools" });
  await converse(server, "tools", "fail network after 9 say 60 words");
  await titled("handoff", "Somebody else");
  await converse(server, "handoff", "transfer_to_demo", { agent: "lead" });
  await titled("child", "Work for a sub-agent");
  await post(server, "child", delegate("use compute 6 * 7"), { agent: "lead" });
  await pending(server, "child");
  await titled("approval", "May I compute?");
  await post(server, "approval", "use compute 6 * 7", { agent: "careful" });
  await pending(server, "approval");
  await titled("markdown", "A report on looms");
  await converse(server, "markdown", "Write a report on looms.", { agent: "writer" });
  await fork(server, "markdown", "fork");
  await converse(server, "fork", "Shorter, please: say 30 words");
}

const SCHEMA = "https://aitp.dev/capabilities";
const ASKED = [
  { $schema: `${SCHEMA}/aitp-02-decisions/v1.0.0/schema.json`, request_decision: {
    id: "hats", title: "Which hats?", description: "Both are wool.", type: "products",
    options: [
      { id: "cap", name: "Cap", description: "For every day.", five_star_rating: 4.5, reviews_count: 31, variants: [{ id: "cap-red", short_variant_name: "Red" }] },
      { id: "hat", name: "Hat", description: "With a brim.", image_url: "https://pictures.example.org/hat.png" },
    ] } },
  { $schema: `${SCHEMA}/aitp-03-data-request/v1.0.0/schema.json`, request_data: {
    id: "address", title: "Where to?", description: "For the parcel.",
    form: { fields: [{ id: "city", label: "City", required: true }, { id: "floor", label: "Floor", type: "number" }, { id: "kind", label: "Kind", type: "select", options: ["House", "Flat"] }] } } },
  { $schema: `${SCHEMA}/aitp-01-payments/v1.0.0/schema.json`, quote: {
    quote_id: "hat", merchant_id: "shop", description: "A hat", merchant_signature: "ed25519:x",
    payment_options: [{ currency: "USD", amount: "12.50", payment_methods: [{ type: "near_payment_channel", token: "usdc", recipient: "shop.near" }] }] } },
];

/** Threads that the console and the inbox show. */
async function prepareConsole() {
  await titled("requests", "A hat by mail");
  for (const message of ASKED) {
    const body = JSON.stringify({ role: "assistant", content: JSON.stringify(message) });
    await fetch(`${server.base}/v1/threads/requests/messages`, { method: "POST", headers: { "content-type": "application/json" }, body });
  }
  await titled("crash", "An answer that a crash broke off");
  await converse(server, "crash", "compute 2 + 3");
  await post(server, "crash", "slow 40ms say 60 words");
  await new Promise((done) => setTimeout(done, 1_200));
  await server.kill();
  await server.restart();
  await rest(server, "crash");
}

/** The path of the last run of a thread in the console. */
async function lastRun(key) {
  const { runs } = await get(server, `/api/v1/threads/${key}/runs`);
  const ids = runs.map((run) => run.executionId ?? run.id);
  return `/console/t/${key}/run/${ids.at(-1)}`;
}

const log = (page) => page.locator("#log");
const top = (page) => page.evaluate(() => { document.getElementById("log").scrollTop = 0; });
const running = (page) => page.locator(".message.agent[data-state=running] .md").first().getByText(/\w/).first().waitFor();

/** Each picture: the page, and what is done on it first. */
const PICTURES = {
  new: ["/chat"],
  markdown: ["/chat/markdown"],
  "markdown-top": ["/chat/markdown", async (page) => {
    await page.locator("details.reasoning summary").click();
    await top(page);
  }],
  streaming: ["/chat/streaming", async (page) => {
    await post(server, page.url().split("/").at(-1), "Write a report on looms.", { agent: "slow" });
    await page.locator(".md h3, .md h4").first().waitFor();
    await page.getByText("power looms").waitFor();
  }],
  tools: ["/chat/tools", async (page) => {
    for (const summary of await page.locator("details.tool > summary").all()) await summary.click();
    await top(page);
  }],
  "tools-end": ["/chat/tools"],
  approval: ["/chat/approval"],
  "approval-edit": ["/chat/approval", (page) => page.getByText("Edit the arguments").click()],
  client: ["/chat/client"],
  child: ["/chat/child"],
  "child-running": ["/chat/child-running", async (page) => {
    await post(server, page.url().split("/").at(-1), delegate("slow 30ms say 80 words"), { agent: "lead" });
    await page.locator(".nested .md").getByText(/each turn/).waitFor();
  }],
  handoff: ["/chat/handoff"],
  queue: ["/chat/queue", async (page) => {
    const key = page.url().split("/").at(-1);
    await post(server, key, "slow 30ms say 200 words");
    await running(page);
    await post(server, key, "And then?");
    await page.getByText("queued", { exact: true }).waitFor();
  }],
  stopped: ["/chat/stopped", async (page) => {
    await post(server, page.url().split("/").at(-1), "slow 30ms say 200 words");
    await running(page);
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await log(page).getByText("Stopped.").waitFor();
  }],
  files: ["/chat/files", async (page) => {
    await page.getByRole("button", { name: "Show" }).click();
    await page.locator("#files").setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("A note.") });
    await page.getByText("Part").click();
    await top(page);
  }],
  edit: ["/chat/fork", (page) => page.locator("details.edit summary").last().click()],
  fork: ["/chat/fork"],
  long: ["/chat/long"],
  "long-news": ["/chat/long", async (page) => {
    await page.evaluate(() => { document.getElementById("log").scrollTop -= 900; });
    await post(server, "long", "say 60 words");
    await page.locator("#news").waitFor();
  }],
  question: ["/chat/markdown", async (page) => {
    await page.locator("button.image").click();
    await page.getByRole("dialog").waitFor();
  }],
  away: ["/chat/handoff", async (page) => {
    await page.evaluate(() => {
      const line = document.getElementById("offline");
      line.textContent = "Not connected. Trying again in 4 s.";
      line.hidden = false;
    });
  }],
  error: ["/chat/unknown"],
  requests: ["/chat/requests", top],
  "requests-pay": ["/chat/requests", (page) => page.locator("details.pay summary").click()],
  inbox: ["/inbox"],
  "inbox-open": ["/inbox", (page) => page.locator("#inbox a").first().click()],
  console: ["/console"],
  search: ["/console?q=loom"],
  "search-empty": ["/console?q=nothing+of+this"],
  timeline: ["/console/t/tools"],
  run: [() => lastRun("crash")],
  "run-tools": [() => lastRun("tools")],
  "run-waits": [() => lastRun("approval")],
  events: ["/console/t/crash/events"],
  "events-raw": ["/console/t/approval/events?view=raw"],
  branches: ["/console/t/markdown/branches"],
  diff: ["/console/t/fork/diff?with=markdown"],
  document: ["/console/t/tools/document"],
  "console-requests": ["/console/t/requests/requests"],
  connect: ["/console/t/tools/connect"],
  agents: ["/console/agents"],
  health: ["/console/health"],
  login: [() => `${locked.base}/login`],
};
/** Those that begin with a thread of their own for each picture. */
const FRESH = new Set(["streaming", "child-running", "queue", "stopped"]);

await mkdir(folder, { recursive: true });
const browser = await launch();
try {
  await prepare();
  await prepareConsole();
  for (const [look, options] of Object.entries(LOOKS)) {
    const context = await browser.newContext({ reducedMotion: "reduce", ...options });
    await replaceAssets(context);
    for (const [name, [path, act]] of Object.entries(PICTURES)) {
      if (only.length > 0 && !only.includes(name)) continue;
      const page = await context.newPage();
      let own = typeof path === "function" ? await path() : path;
      if (FRESH.has(name)) {
        own = `${path}-${look}`;
        await titled(own.split("/").at(-1), `A thread that is ${name}`);
        await converse(server, own.split("/").at(-1), "Good morning");
      }
      await page.goto(new URL(own, server.base).href);
      await act?.(page);
      await until("fonts", () => page.evaluate(() => document.fonts.ready.then(() => true)));
      const file = join(folder, `${name}-${look}.png`);
      await page.screenshot({ path: file });
      console.log(file);
      await page.close();
    }
    await context.close();
  }
} finally {
  await browser.close();
  await server.stop();
  await locked.stop();
  await scripts.remove();
}
