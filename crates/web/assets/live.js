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
const hasList = document.querySelector(".rail[data-list]") !== null;
const inbox = document.querySelector("#inbox[data-inbox]");
let pause = 1_000;
/** @type {number | undefined} */
let retry;
/** @type {number | undefined} */
let lostAt;

/** What the stream shall tell: the thread, the list at the side, the inbox with what it shows. */
function address() {
    const query = new URLSearchParams();
    if (thread) {
        query.set("thread", thread);
        query.set("after", after);
    }
    if (hasList) query.set("list", "1");
    if (inbox) {
        const filter = new URLSearchParams(location.search);
        for (const name of ["kind", "agent", "age"]) if (filter.get(name)) query.set(name, filter.get(name) ?? "");
        const shown = [...inbox.querySelectorAll(":scope > [data-entry]")];
        query.set("inbox", shown.map((entry) => entry.getAttribute("data-entry")).join(" "));
    }
    return `/ui/live?${query}`;
}

export function open() {
    if (!(thread || hasList) || source) return;
    clearTimeout(retry);
    source = new EventSource(address());
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
