#!/usr/bin/env node
// Starts the binary of the platform's package, passes signals on, and ends in the same way as the binary.
"use strict";

const { spawn } = require("node:child_process");

const PREFIX = "@loomline/";
const { optionalDependencies, homepage, version } = require("../package.json");
const supported = Object.keys(optionalDependencies).map((name) => name.slice(PREFIX.length));
const platform = `${process.platform}-${process.arch}`;

function fail(message) {
  console.error(`loomline: ${message}`);
  process.exit(1);
}

function binary() {
  if (!supported.includes(platform)) {
    fail(`no package has a binary for ${platform}; expected one of: ${supported.join(", ")}. To build it, see ${homepage}`);
  }
  try {
    return require.resolve(`${PREFIX}${platform}/bin/loomline`);
  } catch {
    fail(
      `the package ${PREFIX}${platform} is not installed; expected version ${version} beside the package loomline. ` +
        "It needs glibc 2.28 or later. Install loomline again without --omit=optional",
    );
  }
}

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });

// A terminal sends Ctrl-C to the binary too, and a second SIGINT would end a server at once.
const passOn = (signal) => signal === "SIGINT" && process.stdin.isTTY ? undefined : child.kill(signal);
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) process.on(signal, passOn);

child.on("error", (error) => fail(`the binary can't be started: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
