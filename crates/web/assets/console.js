// The log of a thread in the console: rows of new events while the page is open, and a button that pauses them.
// @ts-check

import { byId, say } from "./dom.js";
import { apply } from "./patches.js";
import { LiveStream } from "./stream.js";

const MAX_ROWS = 500;
const NEAR_END = 80;

const rows = byId("events");
const pause = byId("pause");
const content = byId("content");

/** @param {string} after */
function address(after) {
    const { thread = "", view = "", type = "" } = rows?.dataset ?? {};
    return `/ui/events?${new URLSearchParams({ thread, after, view, type })}`;
}

function scrollToEnd() {
    if (content) content.scrollTop = content.scrollHeight;
}

/** @param {import("./patches.js").Patch[]} patches */
function show(patches) {
    const isAtEnd = content && content.scrollHeight - content.scrollTop - content.clientHeight < NEAR_END;
    apply(patches);
    requestAnimationFrame(() => {
        if (!rows) return;
        if (rows.firstElementChild) byId("no-events")?.remove();
        while (rows.childElementCount > MAX_ROWS) rows.firstElementChild?.remove();
        if (isAtEnd) scrollToEnd();
    });
}

if (rows?.dataset.after !== undefined) {
    const stream = new LiveStream(address, rows.dataset.after, show);
    let isPaused = false;
    if (pause) {
        pause.hidden = false;
        pause.addEventListener("click", () => {
            isPaused = !isPaused;
            pause.textContent = isPaused ? "Resume" : "Pause";
            say(isPaused ? "New events are not shown." : "New events are shown.");
            if (isPaused) stream.pause();
            else stream.resume();
        });
    }
    if (!location.hash) scrollToEnd();
    stream.open();
}
