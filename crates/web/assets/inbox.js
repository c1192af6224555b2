// The inbox: keys that move between entries and to the steps of an answer. No key answers.
// @ts-check

import { byId, kept, say } from "./dom.js";

const list = byId("inbox");
const stored = "single-keys";

/** @returns {HTMLAnchorElement[]} */
const links = () => [...document.querySelectorAll("#inbox > .entry a.what")].filter((link) => link instanceof HTMLAnchorElement);

/** The entry with the focus, else the opened one. @returns {Element | null} */
function current() {
    return document.activeElement?.closest("#inbox > .entry") ?? list?.querySelector(":scope > .entry[data-opened]") ?? null;
}

/** Moves the focus to another entry. @param {number} by */
function move(by) {
    const all = links();
    const now = all.findIndex((link) => link.closest(".entry") === current());
    const next = all[now < 0 ? (by < 0 ? all.length - 1 : 0) : Math.min(all.length - 1, Math.max(0, now + by))];
    next?.focus();
    next?.closest(".entry")?.scrollIntoView({ block: "nearest" });
}

/** Opens or closes the entry with the focus. */
function open() {
    const link = current()?.querySelector("a.what");
    if (link instanceof HTMLAnchorElement) link.click();
}

/** Moves the focus to a step of the opened entry. @param {"allow" | "edit" | "deny"} step */
function go(step) {
    const opened = list?.querySelector(":scope > .entry[data-opened] .opened");
    if (!opened) {
        say("Open an entry first.");
        return;
    }
    const wanted = {
        allow: 'button[value="allow"], form.answer :is(input, select, textarea, button):not([type="hidden"]), textarea[name="output"]',
        edit: "details.edit textarea",
        deny: 'button[value="deny"], details.decline input[name="reason"], button[value="failed"]',
    }[step];
    const target = opened.querySelector(wanted);
    if (!(target instanceof HTMLElement)) {
        say("This entry has no such step.");
        return;
    }
    const folded = target.closest("details");
    if (folded) folded.open = true;
    target.focus();
    target.scrollIntoView({ block: "center" });
}

/** @type {Record<string, () => void>} */
const ACTIONS = {
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    o: open,
    a: () => go("allow"),
    e: () => go("edit"),
    d: () => go("deny"),
    "?": showKeys,
};

function showKeys() {
    const dialog = byId("keys");
    if (dialog instanceof HTMLDialogElement) dialog.showModal();
}

/** Whether a key belongs to the element with the focus. @param {EventTarget | null} target */
function isTaken(target) {
    return target instanceof Element && Boolean(target.closest('input:not([type="checkbox"]), textarea, select, dialog, [contenteditable], pre'));
}

/** Shows the number of entries in the title of the page. */
function count() {
    const waiting = byId("inbox-count")?.firstChild?.textContent?.trim();
    const title = document.title.replace(/^\(\S+\) /, "");
    document.title = waiting ? `(${waiting}) ${title}` : title;
}

if (list) {
    const bar = byId("keys-bar");
    const box = byId("single-keys");
    if (bar) bar.hidden = false;
    if (box instanceof HTMLInputElement) {
        box.checked = kept("localStorage")?.getItem(stored) !== "off";
        box.addEventListener("change", () => {
            if (box.checked) kept("localStorage")?.removeItem(stored);
            else kept("localStorage")?.setItem(stored, "off");
        });
    }
    byId("show-keys")?.addEventListener("click", showKeys);
    document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target)) return;
        // The arrows are no letters: they stay when single keys are switched off.
        if (event.key.length === 1 && box instanceof HTMLInputElement && !box.checked) return;
        const action = ACTIONS[event.key];
        if (!action) return;
        event.preventDefault();
        action();
    });
    // The focus stays in the list if its entry vanishes.
    let place = -1;
    document.addEventListener("focusin", () => {
        place = links().findIndex((link) => link.closest(".entry")?.contains(document.activeElement));
    });
    new MutationObserver(() => {
        if (place < 0 || (document.activeElement && document.activeElement !== document.body)) return;
        const all = links();
        const next = all[Math.min(place, all.length - 1)] ?? byId("content");
        next?.focus();
    }).observe(list, { childList: true });
    const badge = byId("inbox-count")?.parentElement;
    if (badge) new MutationObserver(count).observe(badge, { childList: true });
    list.querySelector(":scope > .entry[data-opened]")?.scrollIntoView({ block: "start" });
}
