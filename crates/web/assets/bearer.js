// Requests of a page within another site: it has no cookie, but a token that the site hands over. The token
// is kept in memory only.
// @ts-check

const origins = document.documentElement.dataset.embedOrigins?.split(" ") ?? [];

/** @type {string | undefined} */
let token;
/** @type {(() => void)[]} */
let waiting = [];

addEventListener("message", (event) => {
    if (event.source !== parent || !origins.includes(event.origin)) return;
    if (event.data?.loomline !== "token" || typeof event.data.token !== "string") return;
    token = event.data.token;
    for (const done of waiting) done();
    waiting = [];
});

/** The token is over: the next request asks for another one. */
export function forget() {
    token = undefined;
}

/** Asks the site for a token. The question has no secret, so that any frame may see it. */
function ask() {
    return new Promise((done) => {
        waiting.push(() => done(undefined));
        parent.postMessage({ loomline: "token?" }, "*");
    });
}

/** @param {string} path @param {RequestInit} options */
async function withToken(path, options) {
    if (!token) await ask();
    const headers = new Headers(options.headers);
    headers.set("authorization", `Bearer ${token}`);
    return fetch(path, { ...options, headers, credentials: "omit" });
}

/** Sends a request to the server. @param {string} path @param {RequestInit} [options] */
export async function request(path, options = {}) {
    const answer = await withToken(path, options);
    if (answer.status !== 401) return answer;
    forget();
    return withToken(path, options);
}

/** A stream of events, read with the token, which an `EventSource` can't send. */
export class TokenSource extends EventTarget {
    #stop = new AbortController();

    /** @param {string} path */
    constructor(path) {
        super();
        this.#read(path);
    }

    close() {
        this.#stop.abort();
    }

    /** @param {string} path */
    async #read(path) {
        try {
            const answer = await request(path, { headers: { accept: "text/event-stream" }, signal: this.#stop.signal });
            if (!answer.ok || !answer.body) throw new Error(`The server answered ${answer.status}.`);
            this.dispatchEvent(new Event("open"));
            const decoder = new TextDecoder();
            const reader = answer.body.getReader();
            let text = "";
            for (;;) {
                const { done, value } = await reader.read();
                if (done) break;
                text += decoder.decode(value, { stream: true });
                const frames = text.split("\n\n");
                text = frames.pop() ?? "";
                for (const frame of frames) this.#dispatch(frame);
            }
        } catch {
            // The page is told below that the stream is over.
        }
        if (!this.#stop.signal.aborted) this.dispatchEvent(new Event("error"));
    }

    /** @param {string} frame */
    #dispatch(frame) {
        /** @param {string} name */
        const field = (name) => {
            const lines = frame.split("\n").filter((line) => line.startsWith(`${name}: `));
            return lines.map((line) => line.slice(name.length + 2)).join("\n");
        };
        const name = field("event");
        if (name) this.dispatchEvent(new MessageEvent(name, { data: field("data"), lastEventId: field("id") }));
    }
}
