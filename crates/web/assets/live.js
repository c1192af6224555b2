// The stream of a thread's changes.
// @ts-check

import { sendUnsent } from "./composer.js";
import { log, thread } from "./log.js";
import { apply } from "./patches.js";
import { LiveStream } from "./stream.js";

const hasList = document.querySelector(".rail[data-list]") !== null;
const inbox = document.querySelector("#inbox[data-inbox]");

/** What the stream shall tell: the thread, the list at the side, the inbox with what it shows. @param {string} after */
function address(after) {
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

const stream = thread || hasList ? new LiveStream(address, log?.dataset.after ?? "", apply, sendUnsent) : null;

export function open() {
    stream?.open();
}
