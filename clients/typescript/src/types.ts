import type { components } from "./openapi.js";

export type Schemas = components["schemas"];

export type ThreadInfo = Schemas["ThreadView"];
export type ListedThread = Schemas["ListedThread"];
export type ThreadChange = Schemas["ThreadChange"];
export type ThreadStatus = Schemas["ThreadStatus"];
export type Message = Schemas["MessageView"];
export type MessageList = Schemas["MessageList"];
export type Run = Schemas["RunView"];
export type RunList = Schemas["RunList"];
export type Accepted = Schemas["AcceptedView"];
export type Cancelled = Schemas["CancelledView"];
export type PendingCall = Schemas["PendingView"];
export type Answer = Schemas["SubmittedAnswer"];
export type RequestView = Schemas["RequestView"];
export type AnsweredRequest = Schemas["AnsweredView"];
export type Actor = Schemas["ActorView"];
export type ActorChanged = Schemas["ActorChanged"];
export type Branch = Schemas["BranchView"];
export type ThreadTree = Schemas["ThreadTreeView"];
export type DocumentDiff = Schemas["DocumentDiff"];
export type VersionList = Schemas["VersionList"];
export type Waiting = Schemas["WaitingView"];
export type Agent = Schemas["AgentView"];
export type WebToken = Schemas["WebToken"];
export type NewWebToken = Schemas["NewWebToken"];
export type Interruption = Schemas["Interruption"];
export type Loss = Schemas["LossView"];

/** A part of a message. Its `type` names its kind, such as `output_text` or `tool-compute`. */
export interface Part {
  type: string;
  text?: string;
  toolCallId?: string;
  state?: string;
  input?: unknown;
  output?: unknown;
  errorText?: string;
  [field: string]: unknown;
}

/** A text, or a list of parts. */
export type Content = string | Part[];

/** An option of every request. */
export interface RequestOptions {
  /** Ends the request, or the stream. A run continues; only `cancel` stops it. */
  signal?: AbortSignal;
}

/** Options of a request that may be repeated. */
export interface KeyedOptions extends RequestOptions {
  /** The name of the request: a repetition has no effect. Default: a random one. */
  idempotencyKey?: string;
}

/** Options of an answer to pending calls or to a request. */
export interface AnswerOptions extends KeyedOptions {
  /** The actor that answers. Default for a request: the actor of the API key, or the initiator of the thread. */
  actor?: string;
}

/** Options of a message and of its run. */
export interface PostOptions extends KeyedOptions {
  /** The agent that answers. Default: the default agent. */
  agent?: string;
  /** The policy if the thread is busy. Default: `queue`. */
  policy?: "queue" | "reject" | "interrupt";
  maxSteps?: number;
  timeoutMs?: number;
  /** Your own value. */
  metadata?: unknown;
  /** The channel of the message, such as `web` or `email`. */
  channel?: string;
}

/** Options of a new answer to a message. */
export type RegenerateOptions = KeyedOptions & Pick<PostOptions, "agent" | "maxSteps" | "timeoutMs">;

/** Options of a stream. */
export interface StreamOptions {
  /** Also the events of sub-agents, as events `subagent`. Default: no. */
  subagents?: boolean;
}

/** Options of a stream of a thread's events. */
export interface FollowOptions extends StreamOptions, RequestOptions {
  /** Only later events: the `id` or `seq` of an event. Default: all events. */
  after?: string | number;
  /** `rest`: until no run executes. Default: `forever`. */
  until?: "forever" | "rest";
}

/** Options of a page of a thread. */
export interface PageOptions extends RequestOptions {
  /** Only about this many messages at the end. Default: all. */
  limit?: number;
  /** The page before this cursor. */
  before?: number;
  /** The thread as it was after this event. */
  at?: number;
}

/** The end of a run. */
export interface RunResult {
  /** The text of the answer; empty if there is none. */
  text: string;
  /** `completed`, also with pending calls; `failed` if it ended early. */
  status: Schemas["ExecutionResult"];
  /** The execution that ended the run. */
  executionId: string;
  /** The calls that wait for an approval or for a result of the client. */
  pending: PendingCall[];
  /** Why the run ended early. */
  interruption?: Interruption;
}

/** A thread as a document. */
export interface ThreadDocument {
  /** An object, or a list of messages. */
  content: unknown;
  /** Data that the format can't hold; the first 16. Empty if the browser may not read the header. */
  losses: Loss[];
  /** Number of all losses. */
  nLosses: number;
  /** The hash of the canonical form, for the format `thread`. */
  hash?: string;
}

export type DocumentFormat = "thread" | "archive" | "pydantic-ai" | "ai-sdk-ui";

/** JSON that a client stores beside a thread. */
export type StoredObject<T = unknown> = Omit<Schemas["ThreadObject"], "value"> & { value: T };

/** The objects that a list has. */
export interface ObjectFilter extends RequestOptions {
  /** Only the objects with these ids, in this order. At most 100. */
  ids?: string[];
  /** The order of creation. Default: `asc`. */
  order?: "asc" | "desc";
  /** The number of objects of one request. */
  limit?: number;
}

/** The requests that a list has. */
export interface RequestFilter extends RequestOptions {
  /** Also the requests that are not open any more. */
  all?: boolean;
  /** Only requests that this actor may answer. */
  actor?: string;
  /** The requests as they were after this event. */
  at?: number;
}
