// How a page reaches its server. A page within another site replaces this: it has a token, no cookie.
// @ts-check

export const transport = {
    /** @type {(path: string, options?: RequestInit) => Promise<Response>} */
    request: (path, options) => fetch(path, options),
    /** A stream of events. @type {(path: string) => EventSource | import("./bearer.js").TokenSource} */
    stream: (path) => new EventSource(path),
    /** Whether the page gets new access after a refusal. */
    renew: () => false,
};
