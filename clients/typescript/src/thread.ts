import { LoomlineError } from "./errors.js";
import { type Stream, type ThreadEvent, readEvent, resumed, seqOf } from "./events.js";
import { newKey } from "./keys.js";
import { ThreadObjects } from "./objects.js";
import { paged } from "./paged.js";
import { ThreadRequest } from "./request.js";
import { RunEnd, RunSelector } from "./run.js";
import { type Call, type Transport, segment } from "./transport.js";
import type {
  Accepted,
  Actor,
  ActorChanged,
  Answer,
  AnswerOptions,
  Branch,
  Cancelled,
  Content,
  DocumentDiff,
  DocumentFormat,
  FollowOptions,
  KeyedOptions,
  Loss,
  MessageList,
  PageOptions,
  PendingCall,
  PostOptions,
  RegenerateOptions,
  RequestFilter,
  RequestOptions,
  RequestView,
  Run,
  RunList,
  RunResult,
  Schemas,
  StreamOptions,
  ThreadChange,
  ThreadDocument,
  ThreadInfo,
  ThreadTree,
  VersionList,
} from "./types.js";

type CallAnswerOptions = AnswerOptions & Pick<Answer, "threadKey">;

/** One thread of a server. It is a name only: nothing is requested until a method is called. */
export class Thread {
  readonly key: string;
  /** The fields of the thread, if it was just created, forked or imported. */
  readonly info?: ThreadInfo;
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport, key: string, info?: ThreadInfo) {
    this.#transport = transport;
    this.key = key;
    this.info = info;
  }

  /** Reads the fields of the thread. */
  read(options?: RequestOptions): Promise<ThreadInfo> {
    return this.#get("", {}, options);
  }

  /** Changes the title or the metadata. `null` removes them. */
  update(change: ThreadChange, options?: RequestOptions): Promise<ThreadInfo> {
    return this.#send("PATCH", "", change, options);
  }

  /** Closes the thread permanently. */
  close(options?: RequestOptions): Promise<{ seq: number }> {
    return this.#send("POST", "/close", undefined, options);
  }

  /** Sets the status of a failed thread to `open`. */
  reopen(options?: RequestOptions): Promise<{ seq: number }> {
    return this.#send("POST", "/reopen", undefined, options);
  }

  /** Deletes the thread and everything that belongs to it. */
  async delete(options?: RequestOptions): Promise<void> {
    await this.#transport.send({ ...this.#call("DELETE", ""), ...options }, (response) => response.text());
  }

  /** Creates a thread that shares the log of this one up to an event. */
  async fork({ key, at, ...options }: { key?: string; at?: number } & RequestOptions = {}): Promise<Thread> {
    const info: ThreadInfo = await this.#send("POST", "/fork", { key, at }, options);
    return new Thread(this.#transport, info.key ?? info.id, info);
  }

  /** Lists the thread with its forks and their forks, the root first. */
  async branches(options?: RequestOptions): Promise<Branch[]> {
    return (await this.#get<Schemas["BranchList"]>("/branches", {}, options)).branches;
  }

  /** Lists the threads around the thread. */
  tree({ limit, ...options }: { limit?: number } & RequestOptions = {}): Promise<ThreadTree> {
    return this.#get("/tree", { limit }, options);
  }

  /** Compares the document of the thread with that of another one. */
  diff(other: string | Thread, options?: RequestOptions): Promise<DocumentDiff> {
    return this.#get("/diff", { with: typeof other === "string" ? other : other.key }, options);
  }

  /** Exports the thread. */
  document({ format = "thread", ...options }: { format?: DocumentFormat } & RequestOptions = {}): Promise<ThreadDocument> {
    const call = this.#call("GET", "/document");
    return this.#transport.send({ ...call, query: { format }, ...options }, async (response) => ({
      content: await response.json(),
      losses: lossesOf(response.headers.get("loomline-loss")),
      nLosses: Number(response.headers.get("loomline-losses")),
      hash: response.headers.get("loomline-content-hash") ?? undefined,
    }));
  }

  /** Appends messages without starting an agent. With `seq`: only if that is still the last event of the thread. */
  async importMessages(
    messages: readonly unknown[],
    { source, agent, seq, ...options }: { source: "pydantic-ai" | "ai-sdk-ui"; agent?: string; seq?: number } & RequestOptions,
  ): Promise<{ thread: Thread; losses: Loss[] }> {
    const call = { ...this.#call("POST", "/import", messages), query: { from: source, agent, seq } };
    const { thread, losses } = await this.#transport.json<Schemas["ImportedView"]>({ ...call, ...options });
    return { thread: new Thread(this.#transport, this.key, thread), losses };
  }

  /** Reads the conversation: messages and answers, oldest first. */
  messages({ limit, before, at, ...options }: PageOptions = {}): Promise<MessageList> {
    return this.#get("/messages", { limit, before, at }, options);
  }

  /** Lists the versions of a message or an answer, oldest first. */
  versions(messageId: string, options?: RequestOptions): Promise<VersionList> {
    return this.#get(`/messages/${segment(messageId)}/versions`, {}, options);
  }

  /** Reads the bytes of an image or a file in a message. */
  content(messageId: string, part: number, options?: RequestOptions): Promise<Blob> {
    const call = this.#call("GET", `/messages/${segment(messageId)}/parts/${part}/content`);
    return this.#transport.send({ ...call, accept: "*/*", ...options }, (response) => response.blob());
  }

  /** Posts a message. Returns when it is stored; the run continues on the server. */
  post(content: Content, options: PostOptions = {}): Promise<Accepted> {
    return this.#keyed("/messages", ...message(content, options));
  }

  /** Posts a message, and waits for the end of its run. */
  async run(content: Content, options: PostOptions = {}): Promise<RunResult> {
    const end = new RunEnd();
    for await (const event of this.stream(content, options)) {
      if (event.type !== "subagent") end.add(event);
    }
    const { text, status, executionId, interruption } = end;
    if (status === undefined) throw new LoomlineError("the run of the message did not begin: read the thread");
    const pending = end.hasOpenCalls ? await this.pending({ signal: options.signal }) : [];
    return { text, status, executionId, pending, interruption };
  }

  /** Posts a message, and streams the events of its run. */
  async *stream(
    content: Content,
    { subagents, ...options }: PostOptions & StreamOptions = {},
  ): AsyncGenerator<ThreadEvent, void, undefined> {
    const [body, { idempotencyKey = newKey(), signal }] = message(content, options);
    const run = new RunSelector();
    const events = this.#events({
      first: { ...this.#call("POST", "/messages", { ...body, stream: true }), query: { subagents }, idempotencyKey, signal },
      resume: (lastEventId) => this.#resumed(lastEventId, { until: "rest", subagents }),
      // A stream of a message ends with its run.
      isComplete: async (lastEventId) => lastEventId !== undefined && this.#isAtRest(lastEventId, signal),
    });
    for await (const event of events) {
      if (run.select(event)) yield event;
      if (run.isOver) return;
    }
  }

  /** Streams the events of the thread: all past ones, then new ones as they are stored. */
  follow({ after, until = "forever", subagents, signal }: FollowOptions = {}): AsyncGenerator<ThreadEvent, void, undefined> {
    const query = { until, subagents };
    return this.#events({
      first: { ...this.#call("GET", "/events"), query: { ...query, after }, signal },
      resume: (lastEventId) => this.#resumed(lastEventId, query),
      isComplete: async (lastEventId) => until === "rest" && this.#isAtRest(lastEventId, signal),
      after: after?.toString(),
    });
  }

  /** Lists the runs, oldest first. */
  runs({ limit, before, at, ...options }: PageOptions = {}): Promise<RunList> {
    return this.#get("/runs", { limit, before, at }, options);
  }

  /** Reads one run with its steps. */
  readRun(executionId: string, options?: RequestOptions): Promise<Run> {
    return this.#get(`/runs/${segment(executionId)}`, {}, options);
  }

  /** Stops the run that executes, or only the run `run`. Withdraws pending calls. */
  cancel({ run, reason, ...options }: { run?: string; reason?: string } & RequestOptions = {}): Promise<Cancelled> {
    const path = run === undefined ? "/cancel" : `/runs/${segment(run)}/cancel`;
    return this.#send("POST", path, { reason }, options);
  }

  /** Replaces a message, and removes everything after it. */
  replace(messageId: string, content: Content, options: Omit<PostOptions, "policy"> = {}): Promise<Accepted> {
    return this.#keyed(`/messages/${segment(messageId)}/replace`, ...message(content, options));
  }

  /** Answers a message again, and removes everything after it. */
  regenerate(messageId: string, { agent, maxSteps, timeoutMs, ...options }: RegenerateOptions = {}): Promise<Accepted> {
    return this.#keyed(`/messages/${segment(messageId)}/regenerate`, { agent, maxSteps, timeoutMs }, options);
  }

  /** Lists the pending calls of the thread and of its sub-agents. */
  async pending({ at, ...options }: { at?: number } & RequestOptions = {}): Promise<PendingCall[]> {
    return (await this.#get<Schemas["PendingCalls"]>("/pending", { at }, options)).calls;
  }

  /** Lets a pending call run. `arguments` replace those of the model. */
  approve(toolCallId: string, options: CallAnswerOptions & Pick<Answer, "arguments"> = {}): Promise<Accepted> {
    const { arguments: replaced, threadKey, ...rest } = options;
    return this.answer([{ toolCallId, approved: true, arguments: replaced, threadKey }], rest);
  }

  /** Denies a pending call. The model reads the reason. */
  deny(toolCallId: string, { reason, threadKey, ...options }: CallAnswerOptions & { reason?: string } = {}): Promise<Accepted> {
    return this.answer([{ toolCallId, approved: false, message: reason, threadKey }], options);
  }

  /** Answers pending calls of one thread. */
  answer(answers: Answer[], { actor, ...options }: AnswerOptions = {}): Promise<Accepted> {
    return this.#keyed("/answers", { answers, actor }, options);
  }

  /** Lists the requests of the thread: the open ones, or all. */
  requests({ all = false, actor, at, ...options }: RequestFilter = {}): AsyncGenerator<RequestView, void, undefined> {
    return paged<Schemas["RequestList"], RequestView>(
      (after) => this.#get("/requests", { state: all ? "all" : "open", actor, at, after }, options),
      (page) => page.requests,
    );
  }

  /** A request of the thread. It is a name only. */
  request(id: string): ThreadRequest {
    return new ThreadRequest(this.#transport, `${this.#path}/requests/${segment(id)}`, id);
  }

  /** Lists the actors. */
  async actors(options?: RequestOptions): Promise<Actor[]> {
    return (await this.#get<Schemas["ActorList"]>("/actors", {}, options)).actors;
  }

  /** Adds an actor, and binds it to the API key. */
  join(
    actor: { id: string; capabilities?: string[]; [field: string]: unknown },
    { initiator, ...options }: { initiator?: boolean } & RequestOptions = {},
  ): Promise<ActorChanged> {
    return this.#send("POST", "/actors", { actor, initiator }, options);
  }

  /** Replaces the capabilities of an actor. */
  declareCapabilities(
    actorId: string,
    capabilities: (string | { schema: string })[],
    options?: RequestOptions,
  ): Promise<ActorChanged> {
    return this.#send("PATCH", `/actors/${segment(actorId)}`, { capabilities }, options);
  }

  /** Removes an actor. */
  leave(actorId: string, options?: RequestOptions): Promise<{ seq: number }> {
    return this.#send("DELETE", `/actors/${segment(actorId)}`, undefined, options);
  }

  /** The objects of one kind that are stored beside the thread. */
  objects<T = unknown>(kind: string): ThreadObjects<T> {
    return new ThreadObjects(this.#transport, `${this.#path}/objects/${segment(kind)}`);
  }

  get #path(): string {
    return `/threads/${segment(this.key)}`;
  }

  #call(method: Call["method"], path: string, body?: unknown): Call {
    return { method, path: this.#path + path, body };
  }

  #get<T>(path: string, query: Call["query"], options?: RequestOptions): Promise<T> {
    return this.#transport.json<T>({ ...this.#call("GET", path), query, ...options });
  }

  #send<T>(method: Call["method"], path: string, body: unknown, options?: RequestOptions): Promise<T> {
    return this.#transport.json<T>({ ...this.#call(method, path, body), ...options });
  }

  #keyed(path: string, body: unknown, options: KeyedOptions): Promise<Accepted> {
    return this.#transport.postKeyed(this.#path + path, body, options);
  }

  #resumed(lastEventId: string, query: Call["query"]): Call {
    return { ...this.#call("GET", "/events"), query, lastEventId };
  }

  async *#events(stream: Stream): AsyncGenerator<ThreadEvent, void, undefined> {
    for await (const frame of resumed(this.#transport, stream)) yield readEvent(frame);
  }

  /** Whether nothing follows this event. A server that stops ends its streams too. */
  async #isAtRest(eventId: string | undefined, signal?: AbortSignal): Promise<boolean> {
    const { status, seq } = await this.read({ signal });
    return status !== "streaming" && seq <= seqOf(eventId);
  }
}

/** The body of a message, and the options of its request. */
function message(content: Content, { idempotencyKey, signal, ...fields }: PostOptions): [object, KeyedOptions] {
  return [{ ...fields, content }, { idempotencyKey, signal }];
}

/** The losses in a header: each a pointer, a space and a text. */
function lossesOf(header: string | null): Loss[] {
  const entries = header?.split(/, (?=\/)/) ?? [];
  return entries.map((entry) => {
    const space = entry.indexOf(" ");
    return { pointer: entry.slice(0, space), what: entry.slice(space + 1) };
  });
}
