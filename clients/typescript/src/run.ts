import type { LogEvent, ThreadEvent } from "./events.js";
import type { Interruption, Part, RunResult } from "./types.js";

const HANDOFF = "data-tp-agent_handoff";
const OPEN_STATES = ["input-available", "approval-requested"];

/** Picks the events of one run from a thread's log, as the server does for the stream of a message. */
export class RunSelector {
  isOver = false;
  #itemId?: string;
  #executionId?: string;
  #handsOver = false;
  #continues = false;

  /** Whether the next event belongs to the run. */
  select(event: ThreadEvent): boolean {
    if (this.#executionId === undefined) return this.#selectWaiting(event);
    if (event.type === "execution.created") {
      this.#handsOver = false;
    } else if (event.type === "part.created") {
      this.#handsOver ||= event.part.type === HANDOFF;
    } else if (event.type === "thread.finished" && event.executionId === this.#executionId) {
      this.#executionId = undefined;
      this.#continues = this.#handsOver;
      this.isOver = !this.#handsOver;
    }
    return true;
  }

  #selectWaiting(event: ThreadEvent): boolean {
    if (event.type === "item.created" && this.#itemId === undefined && !this.#continues) {
      this.#itemId = event.item.id;
      return true;
    }
    if (event.type === "execution.created" && this.#isAwaited(event.execution.triggerItemId)) {
      this.#executionId = event.execution.id;
      this.#handsOver = this.#continues = false;
      return true;
    }
    return this.#continues;
  }

  #isAwaited(triggerItemId: string): boolean {
    return this.#continues || this.#itemId === undefined || this.#itemId === triggerItemId;
  }
}

/** What the events of a run say about its end. */
export class RunEnd {
  text = "";
  status?: RunResult["status"];
  executionId = "";
  interruption?: Interruption;
  #parts = new Map<string, Part>();

  /** Whether the run ended with calls that have no result. */
  get hasOpenCalls(): boolean {
    return [...this.#parts.values()].some(({ state }) => OPEN_STATES.includes(state ?? ""));
  }

  add(event: LogEvent): void {
    switch (event.type) {
      case "execution.created":
        this.executionId = event.execution.id;
        this.#parts.clear();
        break;
      case "part.created":
      case "part.updated":
        this.#parts.set(event.partKey, event.part);
        this.text = textOf([...this.#parts.values()]) || this.text;
        break;
      case "execution.status.changed":
        this.interruption = event.interruption ?? undefined;
        break;
      case "thread.finished":
        this.status = event.result;
        break;
    }
  }
}

/** The text of an answer or a message. */
export function textOf(parts: readonly { type: string; text?: unknown }[]): string {
  const texts = parts.filter(({ type }) => type === "output_text" || type === "input_text").map(({ text }) => text);
  return texts.filter(Boolean).join("\n\n");
}
