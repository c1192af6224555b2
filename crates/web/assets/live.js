// The stream of a thread's changes.
// @ts-check

import { sendUnsent } from "./composer.js";
import { log, thread } from "./log.js";
import { apply } from "./patches.js";
import { LiveStream } from "./stream.js";

/** @param {string} after */
const address = (after) => `/ui/live?thread=${encodeURIComponent(thread ?? "")}&after=${encodeURIComponent(after)}`;
const stream = thread ? new LiveStream(address, log?.dataset.after ?? "", apply, sendUnsent) : null;

export function open() {
    stream?.open();
}
