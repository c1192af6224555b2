// The Model Context Protocol's own conformance suite against the real binary: `/mcp`. Most of its scenarios call
// tools, resources and prompts of a server that is made for the suite; those are declared here, each with its
// reason. One that passes although it is declared is an error of the suite's, and so is one that fails and is not.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Loomline } from "./loomline.mjs";

const SUITE = new URL("node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url);
const LIMIT_MS = 120_000;

const PASSES = [
  "completion-complete",
  "dns-rebinding-protection",
  "ping",
  "prompts-list",
  "resources-list",
  "server-initialize",
  "server-sse-multiple-streams",
  "tools-list",
];

const NOT_OURS = {
  "calls tools that only a server made for the suite has": [
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "tools-call-audio",
    "tools-call-elicitation",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-sampling",
    "tools-call-simple-text",
    "tools-call-with-logging",
    "tools-call-with-progress",
  ],
  "reads resources that only a server made for the suite has": [
    "resources-read-binary",
    "resources-read-text",
    "resources-templates-read",
  ],
  "wants what this server does not declare: logging, prompts, subscriptions": [
    "logging-set-level",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "resources-subscribe",
    "resources-unsubscribe",
  ],
};

// In development mode, as it is first met: the suite sends no key.
const server = await Loomline.forTests();

/** What the suite prints, and its exit code. */
function run(args) {
  return new Promise((resolve, reject) => {
    const options = { timeout: LIMIT_MS, cwd: server.data };
    execFile(process.execPath, [fileURLToPath(SUITE), "server", ...args], options, (error, stdout) => {
      if (error && typeof error.code !== "number") reject(error);
      else resolve({ code: error?.code ?? 0, said: stdout });
    });
  });
}

test("the suite's scenarios pass, but for those of its own server", async () => {
  const notOurs = Object.values(NOT_OURS).flat().sort();
  const known = join(server.data, "known.yml");
  await writeFile(known, `server:\n${notOurs.map((name) => `  - ${name}\n`).join("")}`);
  const { code, said } = await run(["--url", `${server.base}/mcp`, "--expected-failures", known]);
  assert.equal(code, 0, said);
  const found = (mark) => [...said.matchAll(new RegExp(`^${mark} (\\S+):`, "gm"))].map((it) => it[1]).sort();
  assert.deepEqual(found("✓"), PASSES);
  assert.deepEqual(found("✗"), notOurs);
});
