// The form for a message: its draft, its files, and what could not be sent.
// @ts-check

import { byId, kept } from "./dom.js";
import { refuse, send } from "./forms.js";
import { scrollToEnd, thread } from "./log.js";

const composer = /** @type {HTMLFormElement | null} */ (byId("composer"));
const message = /** @type {HTMLTextAreaElement | null} */ (byId("message"));
const draftKey = `draft:${thread ?? "new"}`;

/** @param {HTMLElement | null} submitter */
async function submitMessage(submitter) {
    if (!composer || !message || composer.dataset.busy) return;
    const isStarter = submitter?.getAttribute("name") === "starter";
    if (!isStarter && !message.value.trim() && files.length === 0) return;
    composer.dataset.busy = "1";
    composer.querySelector(".refused")?.remove();
    const text = message.value;
    try {
        const told = await send(composer, submitter, files);
        message.value = "";
        files = [];
        drawFiles();
        kept("sessionStorage")?.removeItem(draftKey);
        delete composer.dataset.unsent;
        const key = composer.elements.namedItem("idempotency_key");
        if (key instanceof HTMLInputElement && told.idempotencyKey) key.value = told.idempotencyKey;
        grow();
        scrollToEnd();
    } catch (error) {
        message.value = text;
        if (error instanceof TypeError) {
            composer.dataset.unsent = "1";
            refuse(composer, "Not sent: the server can't be reached. The page sends the message after it reconnects.");
        } else {
            refuse(composer, String(error instanceof Error ? error.message : error));
        }
    } finally {
        delete composer.dataset.busy;
    }
}

/** Sends what could not be sent while the server was away. */
export function sendUnsent() {
    if (composer?.dataset.unsent) submitMessage(null);
}

function grow() {
    if (!message) return;
    message.rows = Math.min(12, Math.max(1, message.value.split("\n").length));
}

if (message) {
    const draft = kept("sessionStorage")?.getItem(draftKey);
    if (draft && !message.value) message.value = draft;
    grow();
    message.addEventListener("input", () => {
        kept("sessionStorage")?.setItem(draftKey, message.value);
        grow();
    });
    message.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            composer?.requestSubmit();
        }
    });
}

composer?.addEventListener("submit", (event) => {
    event.preventDefault();
    submitMessage(event.submitter);
});

/** @type {File[]} */
let files = [];
const picker = /** @type {HTMLInputElement | null} */ (byId("files"));

/** @param {Iterable<File>} added */
function attach(added) {
    const limit = Number(composer?.dataset.maxBytes ?? 0);
    for (const file of added) {
        const size = files.reduce((sum, known) => sum + known.size, file.size);
        if (limit && size > limit) {
            if (composer) refuse(composer, `${file.name} is too large: the files of a message have at most ${Math.floor(limit / 1024)} KiB.`);
            continue;
        }
        files.push(file);
    }
    drawFiles();
}

function drawFiles() {
    const list = byId("attached");
    if (!list || !message) return;
    list.replaceChildren(...files.map((file, index) => {
        const item = document.createElement("li");
        const name = document.createElement("span");
        name.textContent = `${file.name}, ${Math.ceil(file.size / 1024)} KiB`;
        const remove = document.createElement("button");
        remove.type = "button";
        remove.textContent = "Remove";
        remove.setAttribute("aria-label", `Remove ${file.name}`);
        remove.addEventListener("click", () => { files.splice(index, 1); drawFiles(); });
        item.append(name, remove);
        return item;
    }));
    message.required = files.length === 0;
}

picker?.addEventListener("change", () => {
    attach(picker.files ?? []);
    picker.value = "";
});
message?.addEventListener("paste", (event) => {
    const pasted = event.clipboardData?.files;
    if (pasted?.length) { event.preventDefault(); attach(pasted); }
});
document.addEventListener("dragover", (event) => { if (composer) event.preventDefault(); });
document.addEventListener("drop", (event) => {
    if (!composer) return;
    event.preventDefault();
    attach(event.dataTransfer?.files ?? []);
});
