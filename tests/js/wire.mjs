// A wire between client and server that can be cut.
import { once } from "node:events";
import { connect, createServer } from "node:net";

/** Passes bytes on to `base` until it is cut; new connections pass again. */
export class Wire {
  #sockets = new Set();

  static async to(base) {
    const { hostname, port } = new URL(base);
    const wire = new Wire();
    wire.server = createServer((near) => {
      const far = connect(Number(port), hostname);
      for (const [socket, other] of [[near, far], [far, near]]) {
        wire.#sockets.add(socket);
        socket.on("error", () => other.destroy());
        socket.on("close", () => {
          wire.#sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
    wire.server.listen(0, "127.0.0.1");
    await once(wire.server, "listening");
    wire.base = `http://127.0.0.1:${wire.server.address().port}`;
    return wire;
  }

  /** Breaks every connection, as a lost network does; nobody says goodbye. */
  cut() {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close() {
    this.cut();
    this.server.close();
    await once(this.server, "close");
  }
}
