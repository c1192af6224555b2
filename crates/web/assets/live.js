// The stream of a thread's changes. A hidden page closes it, because browsers open only six at a time.
// @ts-check

import { sendUnsent } from "./composer.js";
import { banner } from "./dom.js";
import { log, thread } from "./log.js";
import { apply } from "./patches.js";

const HIDDEN_FOR = 20_000;
const MAX_PAUSE = 30_000;

/** @type {EventSource | null} */
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
    source = new EventSource(`/ui/live?thread=${encodeURIComponent(thread)}&after=${encodeURIComponent(after)}`);
    source.addEventListener("open", () => {
        pause = 1_000;
        if (lostAt) {
            const seconds = Math.max(1, Math.round((Date.now() - lostAt) / 1_000));
            banner(`The server was away for ${seconds} s. Nothing is lost.`, 6_000);
        }
        lostAt = undefined;
        sendUnsent();
    });
    source.addEventListener("patch", (event) => {
        if (event.lastEventId) after = event.lastEventId;
        apply(JSON.parse(event.data));
    });
    source.addEventListener("refused", (event) => {
        close();
        banner(JSON.parse(event.data).message);
    });
    source.addEventListener("error", () => {
        close();
        lostAt ??= Date.now();
        banner(`Not connected. Trying again in ${Math.round(pause / 1_000)} s.`);
        retry = setTimeout(open, pause);
        pause = Math.min(pause * 2, MAX_PAUSE);
    });
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
