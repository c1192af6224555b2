import { ConnectionError, errorOfEvent } from "./errors.js";
import { type Frame, frames } from "./frames.js";
import { type Call, type Transport, isTransient, pause } from "./transport.js";
import type { Part, Schemas } from "./types.js";

/** The data of a chunk: a piece of streamed output. */
export interface ChunkData {
  id?: string;
  delta?: string;
  toolCallId?: string;
  toolName?: string;
  inputTextDelta?: string;
  [field: string]: unknown;
}

type Refined<Event> = Event extends { type: "chunk.emitted" }
  ? Omit<Event, "data"> & { data?: ChunkData }
  : Event extends { part: unknown }
    ? Omit<Event, "part"> & { part: Part }
    : Event;

/** An event in the log of a thread. An event of a newer server can have another `type`. */
export type LogEvent = Refined<Schemas["EventRecord"]> & {
  /** The id in the stream: follow with `after` to resume behind this event. */
  id: string;
};

/** An event in the log of the thread of a sub-agent. */
export interface SubagentEvent {
  id: string;
  type: "subagent";
  /** The calls that lead to the sub-agent, the thread's own call first. */
  path: Schemas["PathView"][];
  /** The key of the sub-agent's thread. */
  threadKey: string;
  event: LogEvent;
}

/** An event of the stream of a thread. */
export type ThreadEvent = LogEvent | SubagentEvent;

/** A change of any thread. After `ready` and `reset`, read the list of threads again. */
export type Notice =
  | ({ id: string; type: "thread" } & Schemas["ThreadNews"])
  | { id: string; type: "ready" | "reset" };

/** A silent stream sends a comment every 15 s. */
const SILENCE_S = 45;

/** A stream that resumes by itself. */
export interface Stream {
  /** The request that begins it. */
  first: Call;
  /** The request that continues it behind the last event. */
  resume: (lastEventId: string) => Call;
  /** Whether a stream that the server ended is complete. */
  isComplete: (lastEventId: string | undefined) => Promise<boolean>;
  after?: string;
}

/** The frames of a stream, each once and in order, over any number of connections. */
export async function* resumed(transport: Transport, stream: Stream): AsyncGenerator<Frame, void, undefined> {
  const { signal } = stream.first;
  const patienceMs = transport.reconnectFor * 1_000;
  const silenceMs = Math.min(SILENCE_S * 1_000, patienceMs);
  let lastEventId = stream.after;
  let call = { ...stream.first, accept: "text/event-stream" };
  let lastBytesAt = Date.now();
  /** The connections that failed since the last bytes. */
  let attempt = 0;
  const noteBytes = () => {
    lastBytesAt = Date.now();
    attempt = 0;
  };
  for (let isFirst = true, isRefused = false; ; attempt += 1) {
    let failure: unknown;
    try {
      const body = await transport.send(call, (response) => response.body!);
      isFirst = false;
      for await (const frame of frames(body, silenceMs, noteBytes)) {
        isRefused = frame.name === "error";
        if (isRefused) throw errorOfEvent(frame.data);
        lastEventId = frame.id || lastEventId;
        yield frame;
        // Bytes that were received before an abort can have further frames.
        signal?.throwIfAborted();
        // The time in which nobody reads does not count.
        noteBytes();
      }
      if (await stream.isComplete(lastEventId)) return;
    } catch (error) {
      signal?.throwIfAborted();
      if (isFirst || isRefused || !isTransient(error)) throw error;
      failure = error;
    }
    // A computer that slept tries again at least once.
    if (attempt > 0 && Date.now() - lastBytesAt >= patienceMs) {
      throw new ConnectionError(`no event for ${transport.reconnectFor} s`, { cause: failure });
    }
    await pause(attempt, failure, signal);
    const next = lastEventId === undefined ? stream.first : stream.resume(lastEventId);
    call = { ...next, accept: "text/event-stream", signal, maxRetries: 0 };
  }
}

/** Reads an event of a thread. */
export function readEvent({ id, name, data }: Frame): ThreadEvent {
  const value = JSON.parse(data) as object;
  if (name !== "subagent") return { type: name, ...value, id } as LogEvent;
  const { path, threadKey, ...event } = value as SubagentEvent;
  return { id, type: "subagent", path, threadKey, event: { ...event, id } as unknown as LogEvent };
}

/** Reads a change of a thread. */
export function readNotice({ id, name, data }: Frame): Notice {
  return { type: name, ...(JSON.parse(data) as object), id } as Notice;
}

/** The position of an event in the thread's own log. */
export function seqOf(eventId: string | undefined): number {
  return Number.parseInt(eventId ?? "0", 10);
}
