// The browser that is installed, and what is asked of a server by its API.
//
//   LOOMLINE_CHROMIUM=FILE   the browser, instead of the first that is found
//   LOOMLINE_ASSETS=DIR      files that replace the assets of the binary, for work on them; DIR is relative to the project
//   LOOMLINE_DEADLINE=MS     the longest that anything is waited for, in milliseconds; 30,000 unless set
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { basename, delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/** The longest that anything is waited for, in milliseconds. */
export const DEADLINE = Number(process.env.LOOMLINE_DEADLINE ?? 30_000);
const NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

function executable() {
  if (process.env.LOOMLINE_CHROMIUM) return process.env.LOOMLINE_CHROMIUM;
  const folders = (process.env.PATH ?? "").split(delimiter);
  const all = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  const found = all.find((file) => existsSync(file));
  if (!found) throw new Error(`no browser: install one of ${NAMES.join(", ")}`);
  return found;
}

/** Starts a browser. */
export function launch(...more) {
  return chromium.launch({
    executablePath: executable(),
    args: ["--no-sandbox", "--disable-dev-shm-usage", ...more],
  });
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const { LOOMLINE_ASSETS } = process.env;

/** The folder whose files replace the assets of the binary, if one is set. */
export const assets = LOOMLINE_ASSETS ? resolve(root, LOOMLINE_ASSETS) : undefined;

/** Has the pages of a context load the files of that folder. */
export async function replaceAssets(context) {
  if (!assets) return;
  await context.route("**/assets/*/*", (route) =>
    route.fulfill({ path: join(assets, basename(new URL(route.request().url()).pathname)) }));
}

/** Waits until `holds` gives something, and returns that. */
export async function until(what, holds, ms = DEADLINE) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() > end) throw new Error(`after ${ms} ms still not: ${what}`);
    await new Promise((done) => setTimeout(done, 25));
  }
}

/** Sends a message through the API. */
export async function post(server, key, content, more = {}) {
  const response = await fetch(`${server.base}/api/v1/threads/${encodeURIComponent(key)}/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ content, ...more }),
  });
  assert.ok(response.ok, `${response.status}: ${await response.text()}`);
}

/** Reads the API. */
export async function get(server, path) {
  const response = await fetch(server.base + path);
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.json();
}

/** Waits until a thread does nothing. */
export async function rest(server, key) {
  const path = `/api/v1/threads/${encodeURIComponent(key)}/events?until=rest&limit=100000`;
  const response = await fetch(server.base + path);
  await response.text();
}

/** Sends a message through the API and waits for its answer. */
export async function converse(server, key, content, more) {
  await post(server, key, content, more);
  await rest(server, key);
}

/** Forks a thread at its end. */
export async function fork(server, key, forked) {
  const response = await fetch(`${server.base}/api/v1/threads/${encodeURIComponent(key)}/fork`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ key: forked }),
  });
  assert.ok(response.ok, `${response.status}: ${await response.text()}`);
}

/** Waits until a call of a thread, or of a sub-agent below it, waits for an approval. */
export async function pending(server, key) {
  await until("a pending call", async () => {
    const { calls } = await get(server, `/api/v1/threads/${encodeURIComponent(key)}/pending`);
    return calls.some((call) => call.kind === "approval");
  });
  await rest(server, key);
}
