// Helpers for the elements of every page: HTML from the server, instants, the status line.
// @ts-check

/** @param {string} id */
export const byId = (id) => document.getElementById(id);

// The server escapes what others write. The policy is the only place that turns text into elements.
// @ts-ignore Trusted Types are not in every browser.
const policy = window.trustedTypes?.createPolicy("loomline", { createHTML: (/** @type {string} */ html) => html });

/** @param {string} html @returns {DocumentFragment} */
export function elements(html) {
    const template = document.createElement("template");
    template.innerHTML = policy ? policy.createHTML(html) : html;
    dates(template.content);
    return template.content;
}

/** Shows instants in the reader's time zone. @param {ParentNode} within */
export function dates(within) {
    for (const time of within.querySelectorAll("time:not([data-local])")) {
        const at = new Date(time.getAttribute("datetime") ?? "");
        time.setAttribute("data-local", "");
        if (Number.isNaN(at.getTime())) continue;
        const isToday = at.toDateString() === new Date().toDateString();
        time.setAttribute("title", at.toLocaleString());
        time.textContent = isToday ? at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    }
}

/**
 * A storage of the browser. Within another site there may be none.
 * @param {"localStorage" | "sessionStorage"} name
 */
export function kept(name) {
    try {
        return window[name];
    } catch {
        return undefined;
    }
}

/** @param {string} words */
export function say(words) {
    const line = byId("say");
    if (line) line.textContent = words;
}

/** @type {number | undefined} */
let fading;

/** Shows a line above the page. @param {string} words @param {number} [time] milliseconds until it goes */
export function banner(words, time) {
    const line = byId("offline");
    if (!line) return;
    clearTimeout(fading);
    line.textContent = words;
    line.hidden = false;
    if (time) fading = setTimeout(() => { line.hidden = true; }, time);
}
