import { ApiError, ConnectionError, LoomlineError, ResponseTimeoutError, errorOfResponse } from "./errors.js";
import { newKey } from "./keys.js";
import type { KeyedOptions } from "./types.js";

/** Options of a client. */
export interface LoomlineOptions {
  /** Default: the environment variable `LOOMLINE_SERVER`, or `http://127.0.0.1:8787`. */
  baseUrl?: string;
  /** An API key or a token. Default: the environment variable `LOOMLINE_KEY`. */
  apiKey?: string;
  /** Default: the global `fetch`. */
  fetch?: typeof fetch;
  /** The seconds until the response to a request must begin. Its body has no limit. Default: 60. */
  timeout?: number;
  /** The number of times that a request is repeated. Default: 2. */
  maxRetries?: number;
  /** The seconds without an event or a comment after which a broken stream gives up. Default: 60. */
  reconnectFor?: number;
}

/** A value of a query; absent if undefined. */
export type QueryValue = string | number | boolean | readonly string[] | Date | null | undefined;

/** A request. */
export interface Call {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Record<string, QueryValue>;
  /** JSON. */
  body?: unknown;
  accept?: string;
  idempotencyKey?: string;
  lastEventId?: string;
  signal?: AbortSignal;
  maxRetries?: number;
}

const RETRIED = [429, 502, 503, 504];
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5_000;
const MAX_RETRY_AFTER_S = 60;
/** The longest time of a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Whether the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof ApiError && RETRIED.includes(error.status));
}

/** Waits before the next attempt; `attempt` counts from 0. */
export async function pause(attempt: number, error: unknown, signal?: AbortSignal): Promise<void> {
  const retryAfter = error instanceof ApiError ? error.retryAfter : undefined;
  const backoff = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt) * (0.5 + Math.random() / 2);
  await sleep(retryAfter === undefined ? backoff : Math.min(retryAfter, MAX_RETRY_AFTER_S) * 1_000, signal);
}

/** Waits; ends early with the reason of the signal. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** A key or an id as a segment of a path. */
export function segment(text: string): string {
  if (["", ".", ".."].includes(text)) {
    throw new TypeError(`${JSON.stringify(text)} can't be in a path: expected a key or an id`);
  }
  return encodeURIComponent(text);
}

function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

/** Sends requests to one server. */
export class Transport {
  readonly reconnectFor: number;
  readonly #baseUrl: string;
  readonly #apiKey?: string;
  readonly #fetch: typeof fetch;
  readonly #timeout: number;
  readonly #maxRetries: number;

  constructor(options: LoomlineOptions) {
    const baseUrl = options.baseUrl ?? environment("LOOMLINE_SERVER") ?? "http://127.0.0.1:8787";
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#apiKey = options.apiKey ?? environment("LOOMLINE_KEY");
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#timeout = options.timeout ?? 60;
    this.#maxRetries = options.maxRetries ?? 2;
    this.reconnectFor = options.reconnectFor ?? 60;
  }

  /** The JSON of a response. */
  json<T>(call: Call): Promise<T> {
    return this.send(call, (response) => response.json() as Promise<T>);
  }

  /** Posts what has no second effect if it is repeated. */
  postKeyed<T>(path: string, body: unknown, { idempotencyKey = newKey(), signal }: KeyedOptions): Promise<T> {
    return this.json({ method: "POST", path, body, idempotencyKey, signal });
  }

  /** Sends a request, and reads the response with `read`. Repeats both if that is safe. */
  async send<T>(call: Call, read: (response: Response) => Promise<T> | T): Promise<T> {
    const isSafe = call.method === "GET" || call.method === "PUT" || call.idempotencyKey !== undefined;
    const retries = isSafe ? (call.maxRetries ?? this.#maxRetries) : 0;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#attempt(call, read);
      } catch (error) {
        const retryAfter = error instanceof ApiError ? (error.retryAfter ?? 0) : 0;
        if (attempt >= retries || !isTransient(error) || retryAfter > MAX_RETRY_AFTER_S) throw error;
        await pause(attempt, error, call.signal);
      }
    }
  }

  async #attempt<T>(call: Call, read: (response: Response) => Promise<T> | T): Promise<T> {
    try {
      const response = await this.#respond(call);
      if (!response.ok) throw await errorOfResponse(response);
      return await read(response);
    } catch (error) {
      call.signal?.throwIfAborted();
      if (error instanceof LoomlineError) throw error;
      throw new ConnectionError(`${call.method} ${call.path}: ${cause(error)}`, { cause: error });
    }
  }

  /** The response to a request, as soon as its headers are there. */
  async #respond(call: Call): Promise<Response> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), Math.min(this.#timeout * 1_000, MAX_TIMER_MS));
    const signal = call.signal ? AbortSignal.any([call.signal, late.signal]) : late.signal;
    try {
      return await this.#fetch(this.#url(call), { ...this.#init(call), signal });
    } catch (error) {
      if (!late.signal.aborted) throw error;
      throw new ResponseTimeoutError(`${call.method} ${call.path}: no response after ${this.#timeout} s`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  #url({ path, query = {} }: Call): string {
    const pairs = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one === undefined || one === null) continue;
        pairs.append(name, one instanceof Date ? one.toISOString() : String(one));
      }
    }
    const text = pairs.toString();
    return `${this.#baseUrl}/api/v1${path}${text && `?${text}`}`;
  }

  #init({ method, body, accept, idempotencyKey, lastEventId }: Call): RequestInit {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers: Record<string, string> = { accept: accept ?? "application/json" };
    if (this.#apiKey) headers.authorization = `Bearer ${this.#apiKey}`;
    if (text !== undefined) headers["content-type"] = "application/json";
    if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
    if (lastEventId !== undefined) headers["last-event-id"] = lastEventId;
    return { method, headers, body: text, cache: "no-store" };
  }
}

/** The innermost message of an error. */
function cause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? cause(error.cause) : error.message || error.name;
}
