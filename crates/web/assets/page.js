// The parts of a page that need a browser: the live stream and its patches, the composer, scrolling, keys, dialogs.
// Every page works without this script, but does not change by itself.
// @ts-check

import { ask, showImage } from "./content.js";
import { byId, dates, kept, say } from "./dom.js";
import { open } from "./live.js";
import { log, older, scrollToEnd } from "./log.js";
import { transport } from "./transport.js";

// --- Clicks and keys -----------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (!target) return;
    const asking = target.closest("a[data-ask], button.image[data-src]");
    if (asking) {
        event.preventDefault();
        await ask(asking.getAttribute("href") ?? asking.getAttribute("data-src") ?? "");
        return;
    }
    const image = target.closest("button[data-image]");
    if (image) {
        await showImage(image);
        return;
    }
    const link = target.closest("a[data-older]");
    if (link) {
        event.preventDefault();
        await older();
        return;
    }
    const copy = target.closest("button.copy");
    const snippet = copy?.closest(".snippet")?.querySelector("code");
    if (snippet) {
        await copyText(snippet.textContent ?? "", snippet);
        return;
    }
    if (copy) {
        const answer = await transport.request(copy.getAttribute("data-text") ?? "");
        if (answer.ok) await copyText(await answer.text());
        else say("The text can't be read.");
    }
});

document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && log?.querySelector('.message[data-state="running"]') && !document.querySelector("dialog[open]")) {
        const stop = byId("stop");
        if (stop instanceof HTMLFormElement) stop.requestSubmit();
    }
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
        event.preventDefault();
        step(event.key === "ArrowUp" ? -1 : 1);
    }
});

/**
 * Copies a text. If the browser refuses, the element that shows the text is selected.
 * @param {string} text @param {Element} [code]
 */
async function copyText(text, code) {
    try {
        await navigator.clipboard.writeText(text);
        say("Copied.");
    } catch {
        if (code) getSelection()?.selectAllChildren(code);
        say("The browser refused to copy.");
    }
}

/** Moves the focus to the message before or after. @param {number} by */
function step(by) {
    const all = [...log?.querySelectorAll(":scope > .message, :scope > .group > .message") ?? []];
    const now = all.findIndex((one) => one.contains(document.activeElement));
    const next = all[now < 0 ? (by < 0 ? all.length - 1 : 0) : now + by];
    if (next instanceof HTMLElement) {
        next.tabIndex = -1;
        next.focus();
        next.scrollIntoView({ block: "nearest" });
    }
}

// --- Requests that expire ------------------------------------------------------------------------

/** Shows that open requests have expired. The server judges by its own clock. */
function expire() {
    for (const request of document.querySelectorAll('.request[data-state="open"][data-expires]')) {
        if (Date.parse(request.getAttribute("data-expires") ?? "") > Date.now()) continue;
        request.setAttribute("data-state", "expired");
        const words = request.querySelector(".words");
        if (words) words.textContent = "expired";
        say("A request has expired.");
    }
}
setInterval(expire, 1_000);

// --- Colours, and the start ----------------------------------------------------------------------

const theme = byId("theme");
const chosen = kept("localStorage")?.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
if (theme) {
    theme.hidden = false;
    theme.addEventListener("click", () => {
        const now = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
        const next = now === "dark" ? "light" : "dark";
        document.documentElement.dataset.theme = next;
        kept("localStorage")?.setItem("theme", next);
    });
}
const threads = document.querySelector(".rail details.threads");
if (threads instanceof HTMLDetailsElement && matchMedia("(max-width: 50rem)").matches) threads.open = false;

if (byId("inbox")) import("./inbox.js");
dates(document);
scrollToEnd();
open();
