// The package @loomline/client as its users get it: the generated types, the tarball, its size and its README.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { generated } from "../../clients/typescript/generate.mjs";
import { Loomline as Server } from "./loomline.mjs";

const MAX_BYTES = 12 * 1024;
const run = promisify(execFile);
const source = fileURLToPath(new URL("../../clients/typescript/", import.meta.url));
const tsc = join(source, "node_modules", "typescript", "bin", "tsc");
const server = await Server.forTests();

/** A folder in which somebody has installed the tarball. */
const folder = await mkdtemp(join(tmpdir(), "loomline-client-"));
after(() => rm(folder, { recursive: true }));
const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], { cwd: source });
const [packed] = JSON.parse(stdout);
await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
await run("npm", ["install", "--no-audit", "--no-fund", "--offline", join(folder, packed.filename)], { cwd: folder });
const installed = join(folder, "node_modules");

const readme = await readFile(join(source, "README.md"), "utf8");
const blocks = (language) => [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(([, text]) => text);

/** What tsc says about these files; nothing if the types are right. */
async function check(files, options) {
  const strict = ["--noEmit", "--strict", "--target", "es2023", "--lib", "es2023,dom,dom.iterable", "--jsx", "react-jsx"];
  const { stdout } = await run(process.execPath, [tsc, ...strict, ...options, ...files], { cwd: folder }).catch((error) => error);
  return stdout;
}

test("the committed types are those of the running server", async () => {
  const document = await (await fetch(`${server.base}/openapi.json`)).json();
  const committed = await readFile(join(source, "src", "openapi.ts"), "utf8");
  assert.equal(committed, await generated(document), "run: node generate.mjs ADDRESS/openapi.json in clients/typescript");
});

test("the tarball has the compiled files, the licences, and no others", async () => {
  const names = packed.files.map(({ path }) => path);
  assert.ok(names.includes("dist/index.js") && names.includes("dist/index.d.ts"));
  const others = names.filter((path) => !/^dist\/[\w-]+\.(js|d\.ts)$/.test(path));
  assert.deepEqual(others.sort(), ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json"]);
  for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    const shipped = await readFile(join(installed, "@loomline/client", name), "utf8");
    assert.equal(shipped, await readFile(join(source, "..", "..", name), "utf8"));
  }
});

test("the client has no dependencies", async () => {
  const { dependencies } = JSON.parse(await readFile(join(installed, "@loomline/client/package.json"), "utf8"));
  assert.equal(dependencies, undefined);
});

const NODE_20 = join(source, "node_modules", "node", "bin", "node");

for (const [name, node] of Object.entries({ "this Node": process.execPath, "Node 20": NODE_20 })) {
  test(`the tarball runs under ${name} without React and the AI SDK`, async () => {
    await writeFile(
      join(folder, "run.mjs"),
      `import { Loomline } from "@loomline/client";
import { chatPersistence } from "@loomline/client/ai";
const client = new Loomline({ baseUrl: process.argv[2] });
const thread = client.thread(process.version);
const { text } = await thread.run("compute 6*7");
let last;
for await (const { type } of thread.follow({ until: "rest", signal: AbortSignal.timeout(10_000) })) last = type;
console.log(process.version, text, last, typeof chatPersistence({ client }).loadChat);\n`,
    );
    const { stdout } = await run(node, ["run.mjs", server.base], { cwd: folder });
    const version = node === NODE_20 ? /^v20\./ : /^v/;
    assert.match(stdout, version);
    assert.match(stdout, /compute gave 42\. thread\.finished function\n$/);
  });
}

test("both ways of resolution find strict types, which refuse a wrong call", async () => {
  await writeFile(
    join(folder, "good.mts"),
    `import { type ThreadEvent, Loomline } from "@loomline/client";
const thread = new Loomline({ baseUrl: "http://127.0.0.1:1" }).thread("k");
export async function texts(): Promise<string[]> {
  const texts: string[] = [];
  for await (const event of thread.follow({ subagents: true })) {
    if (event.type === "subagent") texts.push(event.threadKey, event.event.type);
    else if (event.type === "chunk.emitted") texts.push(event.chunkType, event.data?.delta ?? "");
    else if (event.type === "part.created") texts.push(event.part.text ?? "");
  }
  return texts;
}
export const seq = (event: ThreadEvent): number => (event.type === "subagent" ? event.event.seq : event.seq);\n`,
  );
  const wrong = 'import { Loomline } from "@loomline/client";\nawait new Loomline().thread("k").post(1);\n';
  await writeFile(join(folder, "bad.mts"), wrong);
  for (const options of [["--module", "nodenext"], ["--module", "esnext", "--moduleResolution", "bundler"]]) {
    const errors = (await check(["good.mts", "bad.mts"], [...options, "--skipDefaultLibCheck"])).trim().split("\n");
    assert.equal(errors.length, 1, errors.join("\n"));
    assert.match(errors[0], /^bad\.mts\(2,.*error TS2345/);
  }
});

test("the examples of the README have right types and run", async () => {
  // React and the AI SDK are there for their types only.
  for (const name of ["@types", "csstype", "ai", "@ai-sdk", "@standard-schema", "json-schema", "zod", "@opentelemetry"]) {
    await symlink(join(source, "node_modules", name), join(installed, name)).catch(() => {});
  }
  const program = blocks("ts");
  const pages = blocks("tsx");
  assert.ok(program.length >= 9 && pages.length === 2);
  await writeFile(join(folder, "readme.mts"), program.join("\n"));
  await Promise.all(pages.map((page, index) => writeFile(join(folder, `page-${index}.tsx`), page)));
  const options = ["--module", "nodenext", "--skipLibCheck", "--types", "react"];
  assert.equal(await check(["readme.mts", ...pages.map((_, index) => `page-${index}.tsx`)], options), "");
  const env = { ...process.env, LOOMLINE_SERVER: server.base };
  const { stdout } = await run(process.execPath, ["--disable-warning=ExperimentalWarning", "readme.mts"], { cwd: folder, env });
  const lines = stdout.split("\n");
  for (const line of ["compute gave 14.", "You said: Good evening", "compute gave 42.", "true"]) {
    assert.ok(lines.includes(line), `${line} is not in:\n${stdout}`);
  }
});

test("the bundle of the client is small", async () => {
  const bundle = async (contents) => {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: folder },
      bundle: true,
      minify: true,
      format: "esm",
      write: false,
      external: ["react"],
    });
    return gzipSync(outputFiles[0].contents).length;
  };
  const exported = ["@loomline/client", "@loomline/client/react", "@loomline/client/ai"].map((name) => `export * from "${name}";`);
  const client = await bundle(exported[0]);
  const all = await bundle(exported.join("\n"));
  console.log(`@loomline/client: ${client} bytes min+gzip; with /react and /ai: ${all}`);
  assert.ok(client <= MAX_BYTES, `${client} bytes`);
});
