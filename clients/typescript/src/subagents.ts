import { Conversation } from "./conversation.js";
import type { SubagentEvent } from "./events.js";
import type { Message } from "./types.js";

/** A sub-agent. It works on a thread of its own. */
export interface Subagent extends Pick<SubagentEvent, "path" | "threadKey"> {
  /** Its conversation: the message of its caller, and the answer that it writes. */
  messages: Message[];
}

/** The sub-agents of a thread, kept up to date by their events. */
export class Subagents {
  readonly #conversations = new Map<string, { conversation: Conversation; seq: number }>();
  #list: Subagent[] = [];

  get list(): Subagent[] {
    return this.#list;
  }

  apply({ path, threadKey, event }: SubagentEvent): void {
    const known = this.#conversations.get(threadKey) ?? { conversation: new Conversation(), seq: 0 };
    // A conversation that is read again repeats its events.
    if (event.seq <= known.seq) return;
    known.conversation.apply(event);
    known.seq = event.seq;
    this.#conversations.set(threadKey, known);
    this.#show({ path, threadKey, messages: known.conversation.messages });
  }

  #show(subagent: Subagent): void {
    const index = this.#list.findIndex(({ threadKey }) => threadKey === subagent.threadKey);
    if (index < 0) this.#list = [...this.#list, subagent];
    else if (this.#list[index]?.messages !== subagent.messages) this.#list = this.#list.with(index, subagent);
  }
}
