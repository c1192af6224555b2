// Changes of the page that the server sends: they are put in place once a frame.
// @ts-check

import { byId, elements, say } from "./dom.js";
import { keepEnd } from "./log.js";

/** @typedef {{op: string, id: string, html: string, text: string, name: string, value: string, words: string}} Patch */
/** @type {Patch[]} */
let waiting = [];
let isDrawing = false;

/** @param {Patch[]} patches */
export function apply(patches) {
    waiting.push(...patches);
    if (isDrawing) return;
    isDrawing = true;
    // A hidden page has no frames.
    if (document.hidden) draw();
    else requestAnimationFrame(draw);
}

function draw() {
    isDrawing = false;
    const patches = waiting;
    waiting = [];
    keepEnd(() => patches.forEach(drawOne));
}

/** @param {Patch} patch */
function drawOne(patch) {
    const target = byId(patch.id);
    switch (patch.op) {
        case "put": {
            if (!target) return;
            const fragment = elements(patch.html);
            // An unchanged element keeps its focus.
            if (fragment.children.length === 1 && fragment.firstElementChild?.isEqualNode(target)) return;
            keepState(target, fragment);
            target.replaceWith(fragment);
            return;
        }
        case "before":
        case "append": {
            if (!target) return;
            const fragment = elements(patch.html);
            const first = fragment.firstElementChild;
            const known = first?.id ? byId(first.id) : null;
            if (known && patch.op === "before") {
                // A message that is drawn again keeps its place.
                keepState(known, fragment);
                known.replaceWith(fragment);
                return;
            }
            known?.remove();
            if (patch.op === "before") target.before(fragment);
            else target.append(fragment);
            return;
        }
        case "text":
            target?.append(patch.text);
            return;
        case "drop":
            target?.remove();
            return;
        case "mark":
            target?.setAttribute(`data-${patch.name}`, patch.value);
            if (patch.name === "state") {
                if (patch.value === "running") target?.setAttribute("aria-busy", "true");
                else target?.removeAttribute("aria-busy");
            }
            return;
        case "status":
            say(patch.words);
            return;
        case "reload":
            location.reload();
            return;
    }
}

/**
 * Keeps the parts that a reader has opened, and the text of fields.
 * @param {Element} old @param {DocumentFragment} fragment
 */
function keepState(old, fragment) {
    for (const open of [old, ...old.querySelectorAll("details[open]")]) {
        if (!(open instanceof HTMLDetailsElement) || !open.open || !open.id) continue;
        const next = fragment.getElementById(open.id);
        if (next instanceof HTMLDetailsElement) next.open = true;
    }
    for (const form of old.querySelectorAll("form[id]")) {
        const next = fragment.getElementById(form.id);
        if (form instanceof HTMLFormElement && next instanceof HTMLFormElement) keepFields(form, next);
    }
}

/** @param {HTMLFormElement} old @param {HTMLFormElement} next */
function keepFields(old, next) {
    /** @param {any} field */
    const isBox = (field) => field.type === "radio" || field.type === "checkbox";
    /** @param {any} field */
    const name = (field) => isBox(field) ? `${field.name}=${field.value}` : field.name;
    /** @type {Map<string, any>} */
    const known = new Map([...old.elements].map((field) => [name(field), field]));
    for (const element of next.elements) {
        /** @type {any} */
        const field = element;
        const typed = known.get(name(field));
        if (!typed || !field.name || field.type === "hidden" || field.type === "submit") continue;
        if (isBox(field)) field.checked = typed.checked;
        else field.value = typed.value;
    }
}
