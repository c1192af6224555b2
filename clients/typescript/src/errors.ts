import type { Schemas } from "./types.js";

/** An error of this client. */
export class LoomlineError extends Error {
  override name = "LoomlineError";
}

/** The server can't be reached, or a stream was cut off for too long. */
export class ConnectionError extends LoomlineError {
  override name = "ConnectionError";
}

/** The response to a request did not begin in time. The server may carry out the request all the same. */
export class ResponseTimeoutError extends ConnectionError {
  override name = "ResponseTimeoutError";
}

/** The server refused a request, or ended a stream with an error. */
export class ApiError extends LoomlineError {
  override name = "ApiError";
  /** The HTTP status. */
  readonly status: number;
  /** The code for programs. It does not change between versions. */
  readonly code: string;
  /** The JSON pointer of the wrong value in the request. */
  readonly pointer?: string;
  /** Values for this code. */
  readonly details?: Record<string, unknown>;
  /** The id of the request in the log of the server. */
  readonly requestId?: string;
  /** The seconds to wait before the next attempt, if the server states them. */
  readonly retryAfter?: number;

  constructor(status: number, failure: Schemas["Failure"], retryAfter?: number) {
    super(failure.message);
    this.status = status;
    this.code = failure.code;
    this.pointer = failure.pointer ?? undefined;
    this.details = failure.details ?? undefined;
    this.requestId = failure.requestId ?? undefined;
    this.retryAfter = retryAfter;
  }
}

/** The request is wrong (400, 405, 413, 415, 422). The same request fails again. */
export class InvalidRequestError extends ApiError {
  override name = "InvalidRequestError";
}

/** The API key is absent, unknown or expired (401). */
export class AuthenticationError extends ApiError {
  override name = "AuthenticationError";
}

/** The API key does not have this right (403). */
export class ForbiddenError extends ApiError {
  override name = "ForbiddenError";
}

/** The thread, run, message, request or object does not exist (404). */
export class NotFoundError extends ApiError {
  override name = "NotFoundError";
}

/** The state of the thread does not allow the request (409). */
export class ConflictError extends ApiError {
  override name = "ConflictError";
}

/** A limit on rates or concurrency is used up (429). */
export class RateLimitedError extends ApiError {
  override name = "RateLimitedError";
}

/** The server failed, stops, or has no more room (5xx). */
export class ServerError extends ApiError {
  override name = "ServerError";
}

const CLASSES: Record<number, typeof ApiError> = {
  400: InvalidRequestError,
  401: AuthenticationError,
  403: ForbiddenError,
  404: NotFoundError,
  405: InvalidRequestError,
  409: ConflictError,
  413: InvalidRequestError,
  415: InvalidRequestError,
  422: InvalidRequestError,
  429: RateLimitedError,
};

/** The status that a request would have had, for the errors that end a stream. */
const STATUS_OF_EVENTS: Record<string, number> = {
  ahead_of_log: 409,
  forbidden_thread: 403,
  key_expired: 401,
  key_revoked: 401,
  thread_not_found: 404,
  limit_reached: 429,
  shutting_down: 503,
  store_failed: 503,
  taken_over: 503,
};

function errorOf(status: number, failure: Schemas["Failure"], retryAfter?: number): ApiError {
  const ErrorClass = CLASSES[status] ?? (status >= 500 ? ServerError : ApiError);
  return new ErrorClass(status, failure, retryAfter);
}

/** The `error` of a body, or the body as a message if it has none. */
function failureOf(text: string, otherwise: string): Schemas["Failure"] {
  try {
    const { error } = JSON.parse(text) as Schemas["ErrorBody"];
    if (typeof error.code === "string") return error;
  } catch {
    // A proxy answered, not the server.
  }
  return { code: "", message: text.slice(0, 200) || otherwise };
}

/** Reads the error of a response. */
export async function errorOfResponse(response: Response): Promise<ApiError> {
  const failure = failureOf(await response.text(), `the server answered with status ${response.status}`);
  const seconds = Number(response.headers.get("retry-after") ?? NaN);
  const requestId = failure.requestId ?? response.headers.get("x-request-id");
  return errorOf(response.status, { ...failure, requestId }, Number.isFinite(seconds) ? seconds : undefined);
}

/** The error of an event `error`. */
export function errorOfEvent(data: string): ApiError {
  const failure = failureOf(data, "the stream ended with an error");
  return errorOf(STATUS_OF_EVENTS[failure.code] ?? 500, failure);
}
