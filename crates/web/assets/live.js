// The stream of a thread's changes. A hidden page closes it, because browsers open only six at a time.
// @ts-check

import { TokenSource, forget, isEmbedded } from "./bearer.js";
import { sendUnsent } from "./composer.js";
import { banner } from "./dom.js";
import { log, thread } from "./log.js";
import { apply } from "./patches.js";

const HIDDEN_FOR = 20_000;
const MAX_PAUSE = 30_000;

/** @type {EventSource | TokenSource | null} */
let source = null;
let after = log?.dataset.after ?? "";
let pause = 1_000;
/** @type {number | undefined} */
let retry;
/** @type {number | undefined} */
let lostAt;

export function open() {
    if (!thread || source) return;
    clearTimeout(retry);
    const path = `/ui/live?thread=${encodeURIComponent(thread)}&after=${encodeURIComponent(after)}`;
    source = isEmbedded ? new TokenSource(path) : new EventSource(path);
    source.addEventListener("open", () => {
        pause = 1_000;
        if (lostAt) {
            const seconds = Math.max(1, Math.round((Date.now() - lostAt) / 1_000));
            banner(`The server was away for ${seconds} s. Nothing is lost.`, 6_000);
        }
        lostAt = undefined;
        sendUnsent();
    });
    source.addEventListener("patch", (/** @type {any} */ event) => {
        if (event.lastEventId) after = event.lastEventId;
        apply(JSON.parse(event.data));
    });
    source.addEventListener("refused", (/** @type {any} */ event) => {
        const told = JSON.parse(event.data);
        if (isEmbedded && told.code === "not_logged_in") {
            forget();
            later();
            return;
        }
        close();
        banner(told.message);
    });
    source.addEventListener("error", () => {
        lostAt ??= Date.now();
        banner(`Not connected. Trying again in ${Math.round(pause / 1_000)} s.`);
        later();
    });
}

/** Opens the stream again after a pause. */
function later() {
    close();
    retry = setTimeout(open, pause);
    pause = Math.min(pause * 2, MAX_PAUSE);
}

function close() {
    source?.close();
    source = null;
}

/** @type {number | undefined} */
let hiding;
document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(close, HIDDEN_FOR);
    else open();
});
addEventListener("online", () => { pause = 1_000; open(); });
