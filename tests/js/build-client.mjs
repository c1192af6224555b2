// Builds the TypeScript client, after installing what that needs: `dist` of clients/typescript is then up to date.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../../clients/typescript/", import.meta.url));
const lock = `${folder}package-lock.json`;
const installed = `${folder}node_modules/.installed`;
const run = (command, ...args) => execFileSync(command, args, { cwd: folder, stdio: ["ignore", "inherit", "inherit"] });

if (!existsSync(installed) || !readFileSync(installed).equals(readFileSync(lock))) {
  run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error");
  cpSync(lock, installed);
}
run("npm", "run", "build", "--silent");
