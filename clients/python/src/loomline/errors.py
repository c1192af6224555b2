"""The errors of the client. All of them are a `LoomlineError`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

_EVENT_STATUS = {
    "ahead_of_log": 409,
    "forbidden_thread": 403,
    "key_expired": 401,
    "key_revoked": 401,
    "thread_not_found": 404,
    "limit_reached": 429,
    "shutting_down": 503,
    "store_failed": 503,
    "taken_over": 503,
}


class LoomlineError(Exception):
    """The base of all errors of this package."""


class LoomlineConnectionError(LoomlineError):
    """The server can't be reached, the connection was lost and could not be resumed, or another server answered."""


class ApiError(LoomlineError):
    """The server refused the request, or an event `error` ended a stream."""

    status: int
    """The HTTP status. For an error of a stream: the status that a request would have had."""
    code: str
    """The stable code, such as `thread_not_found`; empty if the response is not one of Loomline."""
    message: str
    """A text for people. It may change between versions."""
    pointer: str | None
    """JSON pointer to the wrong value in the request body."""
    details: dict[str, Any]
    """Values for this code; empty if there are none."""
    request_id: str | None
    """The id of the request in the log of the server."""
    retry_after: float | None
    """Seconds to wait before the next attempt, if the server named them."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        pointer: str | None = None,
        details: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {message}" if code else f"{status}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.pointer = pointer
        self.details = dict(details or {})
        self.request_id = request_id
        self.retry_after = retry_after


class InvalidRequestError(ApiError):
    """The request is wrong (400, 405, 413, 415, 422). The same request fails again."""


class AuthenticationError(ApiError):
    """The API key is absent, unknown or expired (401)."""


class ForbiddenError(ApiError):
    """The API key has not this right (403)."""


class NotFoundError(ApiError):
    """The thread, run, message, request or object does not exist (404)."""


class ConflictError(ApiError):
    """The state of the thread does not allow the request (409). Read the thread again, then decide."""


class RateLimitedError(ApiError):
    """A limit on rates or concurrency is used up (429)."""


class ServerError(ApiError):
    """The server failed, stops, or has no more room (5xx)."""


_CLASSES: dict[int, type[ApiError]] = {
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
}


def error_of_response(response: httpx.Response) -> ApiError:
    """The error of a response whose body was read."""
    try:
        body = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        body = None
    if not isinstance(body, dict):
        body = {"code": "", "message": response.text[:200] or response.reason_phrase}
    body.setdefault("requestId", response.headers.get("x-request-id"))
    return _error(response.status_code, body, _retry_after(response))


def error_of_event(data: Any) -> ApiError:
    """The error of an event `error`."""
    body = data.get("error") if isinstance(data, dict) else None
    if not isinstance(body, dict):
        body = {"code": "", "message": str(data)}
    return _error(_EVENT_STATUS.get(str(body.get("code")), 500), body)


def json_of_response(response: httpx.Response) -> Any:
    """The JSON value of a response that succeeded."""
    try:
        return response.json()
    except ValueError as cause:
        raise foreign(response, "JSON") from cause


def foreign(response: httpx.Response, expected: str) -> LoomlineConnectionError:
    """The error of a successful response that is not of Loomline."""
    request = f"{response.request.method} {response.request.url.path}"
    content_type = response.headers.get("content-type", "no content type")
    return LoomlineConnectionError(f"{request}: the response has {content_type}; expected {expected} of Loomline")


def _error(status: int, body: Mapping[str, Any], retry_after: float | None = None) -> ApiError:
    error_class = _CLASSES.get(status, ServerError if status >= 500 else ApiError)
    return error_class(
        status,
        str(body.get("code") or ""),
        str(body.get("message") or ""),
        pointer=body.get("pointer"),
        details=body.get("details"),
        request_id=body.get("requestId"),
        retry_after=retry_after,
    )


def _retry_after(response: httpx.Response) -> float | None:
    """The seconds that a response asks to wait."""
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None
