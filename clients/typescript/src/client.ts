import { type Notice, readNotice, resumed } from "./events.js";
import { paged } from "./paged.js";
import { Thread } from "./thread.js";
import { type LoomlineOptions, type QueryValue, Transport } from "./transport.js";
import type {
  Agent,
  DocumentFormat,
  ListedThread,
  Loss,
  NewWebToken,
  RequestOptions,
  Schemas,
  ThreadInfo,
  ThreadStatus,
  Waiting,
  WebToken,
} from "./types.js";

/** The threads that a list has. */
export interface ThreadFilter extends RequestOptions {
  /** Only threads whose key has this prefix. */
  prefix?: string;
  status?: ThreadStatus;
  /** Only threads whose last run was by this agent. */
  agent?: string;
  /** Only threads that changed at this instant or later. */
  since?: Date | string;
  /** Only threads with a pending call or an open request of their own. */
  waits?: boolean;
  /** The number of threads of one request. */
  limit?: number;
}

/** The pending calls and open requests that a list has. */
export interface WaitingFilter extends RequestOptions {
  kind?: "approval" | "external" | "request";
  agent?: string;
  prefix?: string;
  /** Only entries that began to wait between these instants. */
  since?: Date | string;
  until?: Date | string;
  /** The number of entries of one request. */
  limit?: number;
}

/** A client of one server. */
export class Loomline {
  readonly #transport: Transport;

  constructor(options: LoomlineOptions = {}) {
    this.#transport = new Transport(options);
  }

  /** The thread with this key. Nothing is requested. */
  thread(key: string): Thread {
    return new Thread(this.#transport, key);
  }

  /** Lists all threads, the one that changed last first. */
  threads(filter: ThreadFilter = {}): AsyncGenerator<ListedThread, void, undefined> {
    return this.#threads(filter);
  }

  /** Lists the threads whose texts or title have all words. Each has `snippets`. */
  search(words: string, filter: ThreadFilter = {}): AsyncGenerator<ListedThread, void, undefined> {
    return this.#threads({ ...filter, q: words });
  }

  /** Creates a thread, or returns the one with this key. */
  async createThread({
    key,
    title,
    metadata,
    ...options
  }: { key?: string; title?: string; metadata?: Record<string, unknown> } & RequestOptions = {}): Promise<Thread> {
    const info = await this.#post<ThreadInfo>("/threads", { key, title, metadata }, options);
    return this.#made(info);
  }

  /** Imports a conversation as a new thread. */
  async importDocument(
    document: unknown,
    { source = "thread", key, agent, ...options }: { source?: DocumentFormat; key?: string; agent?: string } & RequestOptions = {},
  ): Promise<{ thread: Thread; losses: Loss[] }> {
    const query = { from: source, key, agent };
    const { thread, losses } = await this.#post<Schemas["ImportedView"]>("/import", document, options, query);
    return { thread: this.#made(thread), losses };
  }

  /** Lists the pending calls and open requests of all threads. */
  waiting({ signal, ...filter }: WaitingFilter = {}): AsyncGenerator<Waiting, void, undefined> {
    return paged<Schemas["WaitingList"], Waiting>(
      (cursor) => this.#get("/waiting", { ...filter, cursor }, signal),
      (page) => page.entries,
    );
  }

  /** Streams a notice for each change of any thread. */
  async *follow({ after, signal }: { after?: string } & RequestOptions = {}): AsyncGenerator<Notice, void, undefined> {
    const call = { method: "GET", path: "/events", signal } as const;
    let id = after;
    let data: string | undefined;
    const stream = {
      first: { ...call, lastEventId: after },
      resume: (lastEventId: string) => ({ ...call, lastEventId }),
      isComplete: async () => false,
      after,
    };
    for await (const frame of resumed(this.#transport, stream)) {
      // A new connection begins with the id that it continues, and may repeat the last thread. Further changes of
      // the newest thread have the same id and other data.
      const isKnown = frame.name === "ready" || (frame.name === "thread" && frame.data === data);
      const isRepeated = frame.id === id && isKnown;
      id = frame.id;
      if (frame.name === "thread") data = frame.data;
      if (!isRepeated) yield readNotice(frame);
    }
  }

  /** Lists the agents. */
  async agents({ signal }: RequestOptions = {}): Promise<Agent[]> {
    return (await this.#get<Schemas["AgentList"]>("/agents", {}, signal)).agents;
  }

  /** Creates a token for the chat in a page of another site. */
  webToken(token: NewWebToken, options?: RequestOptions): Promise<WebToken> {
    return this.#post("/web/tokens", token, options);
  }

  #threads({ signal, ...query }: ThreadFilter & { q?: string }): AsyncGenerator<ListedThread, void, undefined> {
    return paged<Schemas["ThreadList"], ListedThread>(
      (cursor) => this.#get("/threads", { ...query, cursor }, signal),
      (page) => page.threads,
    );
  }

  #made(info: ThreadInfo): Thread {
    return new Thread(this.#transport, info.key ?? info.id, info);
  }

  #get<T>(path: string, query: Record<string, QueryValue>, signal?: AbortSignal): Promise<T> {
    return this.#transport.json<T>({ method: "GET", path, query, signal });
  }

  #post<T>(path: string, body: unknown, options?: RequestOptions, query?: Record<string, QueryValue>): Promise<T> {
    return this.#transport.json<T>({ method: "POST", path, body, query, ...options });
  }
}
