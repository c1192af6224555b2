// Opens the pages of a server in a real browser. A claim fails on whatever a page must never do: a refusal of
// the Content-Security-Policy, an error in the console, a request to another origin, an uncaught error, a dialog.
//
//   LOOMLINE_PICTURES=DIR    where a picture of each page is written whose claim fails
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, test } from "node:test";
import { DEADLINE, launch, replaceAssets, until } from "./chromium.mjs";

let shared;

/** The browser of this file, started once. */
export async function browser() {
  shared ??= launch();
  return shared;
}

after(async () => (await shared)?.close());

/** Runs in each page before its own script. */
function watch() {
  addEventListener("securitypolicyviolation", (event) => {
    console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
  });
}

/** A person with a browser of their own, who uses one server. */
export class Visitor {
  findings = [];
  #expected = [];
  #foreign = [];

  static async of(server, options = {}) {
    const visitor = new Visitor();
    visitor.server = server;
    visitor.context = await (await browser()).newContext({ reducedMotion: "reduce", ...options });
    visitor.context.setDefaultTimeout(DEADLINE);
    await visitor.context.addInitScript(watch);
    await replaceAssets(visitor.context);
    visitor.#listen();
    visitor.page = await visitor.context.newPage();
    return visitor;
  }

  #listen() {
    const { context, server } = this;
    context.on("console", (message) => {
      const text = `${message.type()}: ${message.text()}`;
      const isBad = message.type() === "error" || /Content.Security.Policy|Trusted/i.test(text);
      if (isBad && !this.#expected.some((known) => known.test(text))) this.findings.push(text);
    });
    context.on("weberror", (error) => this.findings.push(`uncaught: ${error.error()}`));
    context.on("dialog", (dialog) => {
      this.findings.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    context.on("request", (request) => {
      const url = request.url();
      const isOwn = url.startsWith(`${server.base}/`) || url.startsWith(`blob:${server.base}/`);
      if (!isOwn && !this.#foreign.some((known) => url.startsWith(known))) {
        this.findings.push(`a request to another origin: ${url.slice(0, 200)}`);
      }
    });
  }

  /** Errors of the console that belong to the claim. */
  expect(...errors) {
    this.#expected.push(...errors);
  }

  /** Allows requests to another origin. */
  trust(origin) {
    this.#foreign.push(`${origin}/`);
  }

  /** Answers another origin itself, and allows requests to it. */
  async allow(origin) {
    this.trust(origin);
    const answer = { contentType: "text/html", body: "<!doctype html><title>another origin</title>" };
    await this.context.route(`${origin}/**`, (route) => route.fulfill(answer));
  }

  /** Opens a path of the server. */
  async open(path, page = this.page) {
    await page.goto(this.server.base + path);
    return page;
  }

  /** Opens the page of a thread and waits until its stream is open. */
  async chat(key, page = this.page) {
    const live = page.waitForResponse((response) => response.url().includes("/ui/live"));
    await this.open(`/chat/${encodeURIComponent(key)}`, page);
    await live;
    return page;
  }

  async reload() {
    await this.page.reload();
  }

  /** Types a message and sends it. */
  async send(text) {
    await this.page.getByLabel("Message", { exact: true }).fill(text);
    await this.page.keyboard.press("Enter");
  }

  /** Waits for the end of the nth answer, the last one unless set. */
  async answered(n) {
    const all = this.page.locator("#log > .message.agent");
    const one = n === undefined ? all.last() : all.nth(n);
    await until("the end of an answer", async () => {
      const state = (await one.count()) > 0 && (await one.getAttribute("data-state"));
      return state && state !== "running";
    });
    return one;
  }

  /** The page equals itself after a reload: nothing is missing, twice, or drawn in another way. */
  async equalsItsReload() {
    const live = await shape(this.page);
    await this.reload();
    assert.equal(await shape(this.page), live);
  }
}

/** A claim about pages, by a visitor with a fresh context. */
export function claim(name, server, options, body) {
  if (typeof options === "function") return claim(name, server, {}, options);
  test(name, async () => {
    const visitor = await Visitor.of(server, options);
    try {
      await body(visitor);
    } catch (error) {
      error.message += `\nfindings: ${JSON.stringify(visitor.findings.slice(0, 8), null, 1)}`;
      const folder = process.env.LOOMLINE_PICTURES;
      if (folder) await visitor.page.screenshot({ path: join(folder, `${name.replace(/\W+/g, "-")}.png`) });
      throw error;
    } finally {
      await visitor.context.close();
    }
    assert.deepEqual(visitor.findings, []);
  });
}

/** What a page's conversation holds, as text: each element with its class and state, each text. */
export function shape(page) {
  return page.evaluate(() => {
    const ATTRIBUTES = ["id", "class", "data-state", "href", "aria-busy", "dir", "name", "value"];
    const log = document.getElementById("log").cloneNode(true);
    // Pieces of a text that is being written have wrappers of their own.
    for (const piece of log.querySelectorAll(".md .b, .md .tail")) piece.replaceWith(...piece.childNodes);
    log.normalize();
    const lines = [];
    const write = (node, indent) => {
      if (node.nodeType === Node.TEXT_NODE) {
        if (node.data.trim()) lines.push(indent + JSON.stringify(node.data.trim()));
        return;
      }
      const attributes = ATTRIBUTES.filter((name) => node.hasAttribute(name));
      // A form that is drawn anew has a new key.
      if (node.name === "idempotency_key") attributes.splice(attributes.indexOf("value"), 1);
      const written = attributes.map((name) => ` ${name}=${node.getAttribute(name)}`);
      lines.push(`${indent}${node.localName}${written.join("")}`);
      for (const child of node.childNodes) write(child, `${indent} `);
    };
    for (const child of log.childNodes) write(child, "");
    return lines.join("\n");
  });
}

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** Fails if the page breaks a rule of WCAG 2.2 AA that a program can check. */
export async function isAccessible(page, what) {
  // All of it is in view: a target that scrolling cuts off is no finding, and what is not drawn has no colours.
  const size = page.viewportSize();
  await page.setViewportSize({ ...size, height: 12_000 });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.evaluate(AXE);
  const found = await page.evaluate((values) => axe.run(document, { runOnly: { type: "tag", values } }), TAGS);
  const broken = found.violations.map((rule) => ({
    rule: `${rule.id}: ${rule.help}`,
    nodes: [...new Set(rule.nodes.map((node) => `${node.html.slice(0, 200)} ${node.any[0]?.message ?? ""}`))].slice(0, 5),
  }));
  await page.setViewportSize(size);
  assert.deepEqual(broken, [], what);
}

/** Fails if a page is wider than the window. */
export async function fits(page, what) {
  const wide = await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const all = [...document.querySelectorAll("body *")];
    const out = all.filter((element) => element.getBoundingClientRect().right > width + 1);
    return out.map((element) => `${element.localName}.${element.className}#${element.id}`).slice(0, 8);
  });
  assert.deepEqual(wide, [], `${what} is wider than the window`);
}
