import type { ChunkData, LogEvent } from "./events.js";
import type { Message, Part } from "./types.js";

type Chunk = Extract<LogEvent, { type: "chunk.emitted" }>;

/** A part that is being written. */
interface Piece {
  id: string;
  part: Part;
}

/** The output of one call of the model. */
class Step {
  readonly stored: Part[] = [];
  pieces: Piece[] = [];

  get parts(): Part[] {
    return [...this.stored.filter((part) => part !== undefined), ...this.pieces.map(({ part }) => part)];
  }

  store(index: number, part: Part): void {
    const isSame = (piece: Piece) => (part.toolCallId === undefined ? piece.part.type === part.type : piece.id === part.toolCallId);
    const finished = this.pieces.find(isSame);
    this.pieces = this.pieces.filter((piece) => piece !== finished);
    this.stored[index] = part;
  }

  add(kind: string, { id = "", delta = "", toolCallId, toolName, inputTextDelta = "" }: ChunkData): boolean {
    switch (kind) {
      case "text-start":
        return this.#begin(id, { type: "output_text", text: "" });
      case "reasoning-start":
        return this.#begin(id, { type: "reasoning", text: "" });
      case "tool-input-start":
        return this.#begin(toolCallId ?? "", { type: `tool-${toolName}`, toolCallId, state: "input-streaming", inputText: "" });
      case "text-delta":
      case "reasoning-delta":
        return this.#extend(id, (part) => ({ ...part, text: part.text + delta }));
      case "tool-input-delta":
        return this.#extend(toolCallId ?? "", (part) => ({ ...part, inputText: part.inputText + inputTextDelta }));
      default:
        return false;
    }
  }

  #begin(id: string, part: Part): boolean {
    this.pieces.push({ id, part });
    return true;
  }

  #extend(id: string, change: (part: Part) => Part): boolean {
    const piece = this.pieces.findLast((one) => one.id === id);
    if (piece) piece.part = change(piece.part);
    return piece !== undefined;
  }
}

/** An answer whose events are known from its beginning. */
class LiveAnswer {
  readonly steps = new Map<string, Step>();

  get content(): Part[] {
    return [...this.steps.values()].flatMap((step) => step.parts);
  }
}

/** The messages of a thread, kept up to date by the events of its log. */
export class Conversation {
  /** Whether an event concerns something unknown, so that the messages must be read again. */
  isIncomplete = false;
  readonly #messages = new Map<string, Message>();
  readonly #live = new Map<string, LiveAnswer>();
  readonly #itemOfStep = new Map<string, string>();
  readonly #itemOfExecution = new Map<string, string>();
  #list?: Message[];

  /** The stored messages. From the item `unfinished` on, the content of answers comes from the events that follow. */
  constructor(messages: Message[] = [], unfinished?: string) {
    let isUnfinished = false;
    for (const message of messages) {
      isUnfinished ||= message.id === unfinished;
      const isLive = isUnfinished && Boolean(message.executionId);
      this.#messages.set(message.id, isLive ? { ...message, content: [] } : message);
      if (message.executionId) this.#itemOfExecution.set(message.executionId, message.id);
      if (isLive) this.#live.set(message.id, new LiveAnswer());
    }
  }

  get messages(): Message[] {
    this.#list ??= [...this.#messages.values()];
    return this.#list;
  }

  apply(event: LogEvent): void {
    switch (event.type) {
      case "item.created":
        this.#addItem(event.item as Message);
        break;
      case "item.status.changed":
        this.#change(event.itemId, { status: event.to });
        break;
      case "execution.created":
        this.#itemOfExecution.set(event.execution.id, event.execution.reactionItemId);
        this.#change(event.execution.triggerItemId, { waiting: undefined });
        break;
      case "execution.status.changed":
        if (event.interruption) this.#change(this.#itemOfExecution.get(event.executionId), { interruption: event.interruption });
        break;
      case "step.created":
        this.#itemOfStep.set(event.step.id, event.step.eventId);
        this.#live.get(event.step.eventId)?.steps.set(event.step.id, new Step());
        break;
      case "part.created":
      case "part.updated":
        this.#storePart(event.stepId, event.idx, event.part);
        break;
      case "chunk.emitted":
        this.#applyChunk(event);
        break;
    }
  }

  #addItem(item: Message): void {
    if (this.#messages.has(item.id)) return;
    this.#set({ ...item, content: Array.isArray(item.content) ? item.content : [] });
    if (item.executionId) this.#live.set(item.id, new LiveAnswer());
  }

  #storePart(stepId: string, index: number, part: Part): void {
    const step = this.#step(stepId);
    if (step) {
      step.store(index, part);
      this.#show(stepId);
    } else {
      this.#replaceCall(part);
    }
  }

  /** Replaces a tool call of an answer that was read as a whole. */
  #replaceCall(part: Part): void {
    const isCall = (other: Part) => other.toolCallId !== undefined && other.toolCallId === part.toolCallId;
    const message = this.messages.findLast(({ content }) => content.some(isCall));
    if (message) this.#change(message.id, { content: message.content.map((other) => (isCall(other) ? part : other)) });
    else this.isIncomplete = true;
  }

  #applyChunk({ chunkType, stepId, data = {} }: Chunk): void {
    if (chunkType === "data-item-removed") {
      // A withdrawn compaction changes nothing that is shown.
      if (data.compactionId === undefined) this.#remove(data.itemId, data.stepId);
      return;
    }
    const step = this.#step(stepId ?? "");
    if (!step) return;
    if (chunkType === "data-step-reset") {
      step.pieces = [];
      step.stored.length = 0;
    } else if (!step.add(chunkType, data)) {
      return;
    }
    this.#show(stepId ?? "");
  }

  #remove(itemId: unknown, stepId: unknown): void {
    if (typeof itemId === "string") {
      this.#messages.delete(itemId);
      this.#list = undefined;
    } else if (typeof stepId === "string" && this.#step(stepId)) {
      this.#removeStep(stepId, this.#itemOfStep.get(stepId) ?? "");
    } else {
      this.isIncomplete = true;
    }
  }

  /** Removes the output of a step. A finished answer without any is no message. */
  #removeStep(stepId: string, itemId: string): void {
    const steps = this.#live.get(itemId)?.steps;
    steps?.delete(stepId);
    if (steps?.size === 0 && this.#messages.get(itemId)?.status === "completed") this.#remove(itemId, undefined);
    else this.#show(stepId);
  }

  #step(stepId: string): Step | undefined {
    return this.#live.get(this.#itemOfStep.get(stepId) ?? "")?.steps.get(stepId);
  }

  /** Shows the parts of the answer that has this step. */
  #show(stepId: string): void {
    const itemId = this.#itemOfStep.get(stepId) ?? "";
    this.#change(itemId, { content: this.#live.get(itemId)?.content });
  }

  #change(itemId: string | undefined, change: Partial<Message>): void {
    const message = this.#messages.get(itemId ?? "");
    if (message) this.#set({ ...message, ...change });
  }

  #set(message: Message): void {
    this.#messages.set(message.id, message);
    this.#list = undefined;
  }
}
