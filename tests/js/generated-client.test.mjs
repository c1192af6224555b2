// Generates a TypeScript client from the document of a real server, checks its types and has a conversation.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import openapiTS, { astToString } from "openapi-typescript";
import { Loomline } from "./loomline.mjs";

const run = promisify(execFile);
const here = fileURLToPath(new URL(".", import.meta.url));
const server = await Loomline.forTests(`
[models.offline]
provider = "scripted"
[agents.assistant]
model = "offline"
tools = ["compute"]
requires_approval = ["compute"]
`);

test("a generated TypeScript client has types and holds a conversation", async (t) => {
  // Beside the packages, so that the client finds them.
  const folder = await mkdtemp(join(here, ".generated-client-"));
  t.after(() => rm(folder, { recursive: true }));
  const types = astToString(await openapiTS(new URL(`${server.base}/openapi.json`)));
  await writeFile(join(folder, "openapi.d.ts"), types);
  await copyFile(join(here, "generated-client.ts"), join(folder, "client.mts"));
  const options = ["--noEmit", "--strict", "--target", "es2024", "--module", "nodenext", "--lib", "es2024,dom,dom.asynciterable"];
  const tsc = join(here, "node_modules", "typescript", "bin", "tsc");
  const more = ["--types", "node", "--allowImportingTsExtensions", join(folder, "client.mts")];
  await run(process.execPath, [tsc, ...options, ...more]).catch(({ code, stdout, stderr }) => {
    assert.fail(`the types are wrong, tsc ended with ${code}:\n${stdout}${stderr}`);
  });
  await writeFile(join(folder, "bad.mts"), `import type { components } from "./openapi.d.ts";
export const message: components["schemas"]["NewMessage"] = { content: 1 };\n`);
  const bad = await run(process.execPath, [tsc, ...options, join(folder, "bad.mts")]).catch((error) => error);
  assert.match(bad.stdout, /bad\.mts\(2,.*error TS2322/, "a wrong message is refused by the types");
  const { stdout } = await run(process.execPath, ["--disable-warning=ExperimentalWarning", join(folder, "client.mts"), server.base]);
  assert.match(stdout, /^\d+ events$/m);
});
