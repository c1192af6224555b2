import type { Loomline } from "./client.js";
import { ConflictError, LoomlineError, NotFoundError } from "./errors.js";
import { Conversation } from "./conversation.js";
import type { ThreadEvent } from "./events.js";
import { type Subagent, Subagents } from "./subagents.js";
import type { Thread } from "./thread.js";
import { isTransient, sleep } from "./transport.js";
import type { Answer, Content, Message, PendingCall, PostOptions, RequestView, Schemas } from "./types.js";

/** What a page shows of a thread. A change makes a new object; what did not change stays the same object. */
export interface ThreadSnapshot {
  /** The conversation, with the answer that is being written. */
  messages: Message[];
  /**
   * The sub-agents of the answer that is being written or that waits, and of later answers. The last entry of `path`
   * is the call that a sub-agent works for.
   */
  subagents: Subagent[];
  /** `loading` until the messages were read; `running` while an agent works. */
  status: "loading" | "ready" | "running" | "closed";
  /** The calls that wait for an approval or a result, also those of sub-agents. */
  pending: PendingCall[];
  /** The open requests. */
  requests: RequestView[];
  /** The last failure of an action or of the connection. The next success removes it. */
  error?: LoomlineError;
}

export interface ThreadStoreOptions {
  client: Loomline;
  /**
   * The key of the thread. If it does not exist, the first message creates it. A thread that another client creates
   * is seen after the next message, or after a new subscription.
   */
  key: string;
  /** The agent that answers. Default: the default agent. */
  agent?: string;
}

const RETRY_MS = 5_000;
const EMPTY: ThreadSnapshot = { messages: [], subagents: [], status: "loading", pending: [], requests: [] };

/** Keeps a snapshot of a thread up to date while it has subscribers. Works without a framework. */
export class ThreadStore {
  readonly thread: Thread;
  readonly #agent?: string;
  readonly #listeners = new Set<() => void>();
  #snapshot = EMPTY;
  #conversation = new Conversation();
  #subagents = new Subagents();
  /** The event behind which to follow; absent until the messages were read. */
  #after?: string;
  #connection?: AbortController;
  /** Whether a message was sent that creates the thread. */
  #isExpected = false;
  #isPublishing = false;
  #isRefreshing = false;
  #isStale = false;
  #failureOfRefresh?: unknown;

  constructor({ client, key, agent }: ThreadStoreOptions) {
    this.thread = client.thread(key);
    this.#agent = agent;
  }

  /** Calls the listener after each change. Connects with the first listener, and disconnects after the last one. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#connect();
    return () => {
      this.#listeners.delete(listener);
      // React subscribes again at once, for example in StrictMode.
      setTimeout(() => {
        if (this.#listeners.size === 0) this.#disconnect();
      });
    };
  };

  readonly getSnapshot = (): ThreadSnapshot => this.#snapshot;

  /** Posts a message. The actions return whether the server accepted them; if not, `error` says why. */
  readonly send = async (content: Content, options: PostOptions = {}): Promise<boolean> => {
    const isSent = await this.#act(() => this.thread.post(content, { agent: this.#agent, ...options }));
    this.#isExpected = isSent;
    this.#connect();
    return isSent;
  };

  readonly approve = (toolCallId: string, options?: Parameters<Thread["approve"]>[1]): Promise<boolean> =>
    this.#act(() => this.thread.approve(toolCallId, options));

  readonly deny = (toolCallId: string, options?: Parameters<Thread["deny"]>[1]): Promise<boolean> =>
    this.#act(() => this.thread.deny(toolCallId, options));

  /** Answers pending calls. */
  readonly answer = (answers: Answer[]): Promise<boolean> => this.#act(() => this.thread.answer(answers));

  readonly answerRequest = (id: string, value: Record<string, unknown>): Promise<boolean> =>
    this.#act(() => this.thread.request(id).answer(value));

  readonly declineRequest = (id: string, reason?: string): Promise<boolean> =>
    this.#act(() => this.thread.request(id).decline({ reason }));

  /** Stops the run that executes, or withdraws the pending calls. */
  readonly cancel = (): Promise<boolean> => this.#act(() => this.thread.cancel());

  async #act(action: () => Promise<unknown>): Promise<boolean> {
    try {
      await action();
      this.#set({ error: undefined });
      return true;
    } catch (error) {
      this.#set({ error: error as LoomlineError });
      return false;
    } finally {
      void this.#refresh();
    }
  }

  #connect(): void {
    if (this.#connection || this.#listeners.size === 0) return;
    const connection = new AbortController();
    this.#connection = connection;
    void this.#stayConnected(connection.signal).finally(() => {
      if (this.#connection === connection) this.#connection = undefined;
    });
  }

  #disconnect(): void {
    this.#connection?.abort();
    this.#connection = undefined;
  }

  async #stayConnected(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#follow(signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof NotFoundError || error instanceof ConflictError) {
          this.#forget();
          if (error instanceof NotFoundError && !this.#isExpected) {
            // The first message creates the thread, and connects again.
            this.#set({ status: "ready" });
            return;
          }
          this.#isExpected = false;
          continue;
        }
        this.#set({ error: error as LoomlineError });
        if (!isTransient(error)) return;
        // The next success begins with the messages, and removes the error.
        this.#after = undefined;
        await sleep(RETRY_MS, signal).catch(() => {});
      }
    }
  }

  /** Drops what is known about the thread. */
  #forget(): void {
    this.#after = undefined;
    this.#conversation = new Conversation();
    this.#subagents = new Subagents();
    this.#set(EMPTY);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    if (this.#after === undefined) await this.#load(signal);
    for await (const event of this.thread.follow({ after: this.#after, subagents: true, signal })) {
      this.#after = event.id;
      this.#apply(event);
      if (this.#conversation.isIncomplete) {
        this.#after = undefined;
        return;
      }
    }
  }

  async #load(signal: AbortSignal): Promise<void> {
    const { messages, seq } = await this.thread.messages({ signal });
    // Read after the messages: a later change of the status is an event that is still to come.
    const { status } = await this.thread.read({ signal });
    const answer = messages.findLast(({ executionId }) => executionId);
    // Only events have the text of unfinished parts and the work of sub-agents: an unfinished answer is read from its events.
    const versions = answer && isUnfinished(answer) ? (await this.thread.versions(answer.id, { signal })).versions : [];
    const begin = versions.find(({ current, seq }) => current && seq);
    this.#conversation = new Conversation(messages, begin?.id);
    this.#after = String(begin?.seq ?? seq);
    this.#set({ status: statusOf(status), error: undefined });
    void this.#refresh();
  }

  #apply(event: ThreadEvent): void {
    if (event.type === "subagent") {
      this.#subagents.apply(event);
      if (event.event.type === "thread.finished") void this.#refresh();
      this.#publish();
      return;
    }
    this.#conversation.apply(event);
    if (event.type === "execution.created") this.#set({ status: "running", pending: [], error: undefined });
    else if (event.type === "thread.status.changed") this.#set({ status: statusOf(event.to) });
    if (event.type === "thread.finished" || event.type === "item.created") void this.#refresh();
    this.#publish();
  }

  /** Reads what waits for a person. */
  async #refresh(): Promise<void> {
    this.#isStale = this.#connection !== undefined;
    if (this.#isRefreshing || !this.#connection) return;
    const { signal } = this.#connection;
    this.#isRefreshing = true;
    try {
      while (this.#isStale) {
        this.#isStale = false;
        const requests = [];
        for await (const request of this.thread.requests({ signal })) requests.push(request);
        this.#set({ pending: await this.thread.pending({ signal }), requests });
        if (this.#snapshot.error === this.#failureOfRefresh) this.#set({ error: undefined });
      }
    } catch (error) {
      if (signal.aborted || error instanceof NotFoundError) return;
      this.#failureOfRefresh = error;
      this.#set({ error: error as LoomlineError });
      if (!isTransient(error)) return;
      this.#isStale = true;
      await sleep(RETRY_MS, signal).catch(() => {});
    } finally {
      this.#isRefreshing = false;
      // Another connection may have begun meanwhile.
      if (this.#isStale) void this.#refresh();
    }
  }

  #set(change: Partial<ThreadSnapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...change };
    this.#publish();
  }

  /** Tells the listeners once about the changes of one moment. */
  #publish(): void {
    if (this.#isPublishing) return;
    this.#isPublishing = true;
    setTimeout(() => {
      this.#isPublishing = false;
      this.#snapshot = { ...this.#snapshot, messages: this.#conversation.messages, subagents: this.#subagents.list };
      for (const listener of [...this.#listeners]) listener();
    });
  }
}

/** Whether an answer is being written, or has a call that waits for its sub-agent or for a result of the client. */
function isUnfinished({ status, content }: Message): boolean {
  return status === "pending" || content.some(({ state }) => state === "input-available");
}

function statusOf(status: Schemas["ThreadStatus"]): ThreadSnapshot["status"] {
  if (status === "streaming") return "running";
  return status === "closed" ? "closed" : "ready";
}
