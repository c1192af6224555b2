// The `ai` package's chat without a framework: what `useChat` is inside.
import * as ai7 from "ai";
import * as ai5 from "ai5";
import * as ai6 from "ai6";

/** The packages, by their major versions. */
export const MAJORS = { 5: ai5, 6: ai6, 7: ai7 };

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

/** The chat of one major version. */
export function chatOf(major) {
  const { AbstractChat, DefaultChatTransport } = MAJORS[major];
  return class extends AbstractChat {
    constructor({ base, id, messages = [], fetch, onData, transport, ...options }) {
      const query = major === 7 ? "" : `?ai=${major}`;
      const used = new DefaultChatTransport({
        api: `${base}/api/chat${query}`,
        fetch,
        prepareReconnectToStreamRequest: ({ id }) => ({
          api: `${base}/api/chat/${encodeURIComponent(id)}/stream${query}`,
        }),
        ...transport,
      });
      super({ id, transport: used, state: new State(messages), onData, ...options });
      this.transportUsed = used;
    }

    /** The messages as JSON has them: without members that are undefined. */
    get plain() {
      return plain(this.messages);
    }
  };
}

export const Chat = chatOf(7);

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
