// The log of a conversation: its scrolling, and the messages before those that it shows.
// @ts-check

import { byId, elements } from "./dom.js";
import { transport } from "./transport.js";

const NEAR_END = 80;

export const log = byId("log");
export const thread = log?.dataset.thread;

/** Whether the end stays in view: until the reader scrolls up, or opens something. */
let follows = true;
let scrolledTo = 0;

/** @param {boolean} now */
function setFollows(now) {
    follows = now;
    // Only the reader moves up in a log that follows its end: the browser doesn't.
    log?.toggleAttribute("data-follows", now);
    if (now) byId("news")?.remove();
}

function isAtEnd() {
    if (!log) return false;
    return log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END;
}

function noteScroll() {
    if (!log) return;
    if (isAtEnd()) setFollows(true);
    else if (log.scrollTop < scrolledTo) setFollows(false);
    scrolledTo = log.scrollTop;
}

export function scrollToEnd() {
    setFollows(true);
    if (!log) return;
    log.scrollTop = log.scrollHeight;
    scrolledTo = log.scrollTop;
}

/**
 * Changes the log, and keeps its end in view if the reader follows it.
 * @param {() => void} change
 */
export function keepEnd(change) {
    noteScroll();
    const height = log?.scrollHeight ?? 0;
    change();
    if (follows) scrollToEnd();
    else if (log && log.scrollHeight > height) showNews();
}

function showNews() {
    if (!log || byId("news")) return;
    const button = document.createElement("button");
    button.id = "news";
    button.type = "button";
    button.textContent = "New below";
    button.addEventListener("click", scrollToEnd);
    byId("composer")?.before(button);
}

log?.addEventListener("scroll", () => {
    noteScroll();
    if (log.scrollTop < 400) older();
}, { passive: true });
// A message gets its height when it comes into view.
log?.addEventListener("contentvisibilityautostatechange", () => {
    noteScroll();
    if (follows) scrollToEnd();
});
log?.addEventListener("toggle", () => setFollows(isAtEnd()), { capture: true });

let isLoading = false;

/** Loads earlier messages, and keeps the place of the reader. */
export async function older() {
    const place = byId("earlier");
    const link = place?.querySelector("a[data-older]");
    if (!log || !place || !link || isLoading) return;
    isLoading = true;
    try {
        const answer = await transport.request(String(link.getAttribute("data-older")));
        if (!answer.ok) return;
        const fragment = elements(await answer.text());
        // The browser corrects later what it only estimates now: the heights of messages out of view.
        const next = place.nextElementSibling ?? place;
        // A group out of view costs nothing, however many messages it has.
        const group = document.createElement("div");
        group.className = "group";
        group.append(...[...fragment.children].filter((child) => child.id !== "earlier"));
        fragment.append(group);
        const before = next.getBoundingClientRect().top;
        place.replaceWith(fragment);
        log.scrollTop += next.getBoundingClientRect().top - before;
    } finally {
        isLoading = false;
    }
}
