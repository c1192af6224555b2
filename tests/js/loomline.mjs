// Starts the real binary on a data folder of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const binary = process.env.LOOMLINE_BIN ?? join(root, "target/debug/loomline");
const START_MS = 30_000;

/** A `loomline serve` and the data it keeps, which outlives the process. */
export class Loomline {
  #process;
  #users = [];
  #address = "127.0.0.1:0";

  /** With this configuration, or without any. */
  static async start(config) {
    if (!existsSync(binary)) {
      throw new Error(`there is no ${resolve(binary)}; build it first: cargo build`);
    }
    const server = new Loomline();
    server.data = await mkdtemp(join(tmpdir(), "loomline-js-"));
    if (config) {
      server.config = join(server.data, "loomline.toml");
      await writeFile(server.config, config);
    }
    await server.restart();
    return server;
  }

  /** For all tests of the file that asks: it is stopped after the last of them. */
  static async forTests(config) {
    const server = await Loomline.start(config);
    after(async () => {
      try {
        for (const close of server.#users) await close();
      } finally {
        await server.stop();
      }
    });
    return server;
  }

  /** Has what uses it be closed before it is stopped: a client says goodbye to a server that is there. */
  beforeStop(close) {
    this.#users.push(close);
  }

  /** Where it listens; the same after a restart. */
  get base() {
    return `http://${this.#address}`;
  }

  async restart() {
    const args = ["serve", "--listen", this.#address, "--data", this.data];
    if (this.config) args.push("--config", this.config);
    const child = spawn(binary, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    let said = "";
    const listening = Promise.withResolvers();
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8");
      stream.on("data", (text) => {
        said += text;
        const found = /listening on http:\/\/(\S+:\d+)/.exec(said);
        if (found) listening.resolve(found[1]);
      });
    }
    child.once("error", listening.reject);
    child.once("exit", (code, signal) => {
      listening.reject(new Error(`loomline ended (${code ?? signal}) and said:\n${said}`));
    });
    const late = setTimeout(() => {
      listening.reject(new Error(`loomline did not listen after ${START_MS} ms and said:\n${said}`));
    }, START_MS);
    try {
      this.#address = await listening.promise;
    } finally {
      clearTimeout(late);
    }
  }

  /** Ends it at once, as a crash would. */
  async kill(signal = "SIGKILL") {
    const child = this.#process;
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await once(child, "exit");
    }
  }

  async stop() {
    await this.kill();
    await rm(this.data, { recursive: true, force: true });
  }
}
