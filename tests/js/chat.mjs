// The `ai` package's chat without a framework: what `useChat` is inside.
import { AbstractChat, DefaultChatTransport } from "ai";

class State {
  status = "ready";
  error = undefined;

  constructor(messages) {
    this.messages = messages;
  }

  pushMessage = (message) => {
    this.messages = [...this.messages, structuredClone(message)];
  };

  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };

  replaceMessage = (index, message) => {
    this.messages = this.messages.with(index, structuredClone(message));
  };

  snapshot = (value) => structuredClone(value);
}

export class Chat extends AbstractChat {
  constructor({ base, id, messages = [], fetch, onData }) {
    const transport = new DefaultChatTransport({ api: `${base}/api/chat`, fetch });
    super({ id, transport, state: new State(messages), onData });
    this.transportUsed = transport;
  }

  /** The messages as JSON has them: without members that are undefined. */
  get plain() {
    return plain(this.messages);
  }
}

export function plain(value) {
  return JSON.parse(JSON.stringify(value));
}

/** Waits until `holds` gives something, and gives that. */
export async function until(what, holds, ms = 20_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() > end) throw new Error(`after ${ms} ms still not: ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}
