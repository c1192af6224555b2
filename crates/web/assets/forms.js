// Forms: they are sent without leaving the page, and show what is wrong.
// @ts-check

import { transport } from "./transport.js";

/**
 * Sends a form. The answer arrives through the stream.
 * @param {HTMLFormElement} form @param {HTMLElement | null} submitter @param {File[]} [files]
 */
export async function send(form, submitter, files) {
    const data = new FormData(form, submitter);
    if (files) {
        data.delete("file");
        for (const file of files) data.append("file", file);
    }
    /** @type {BodyInit} */
    // @ts-ignore The values of a form without files are texts.
    const body = files ? data : new URLSearchParams(data);
    const answer = await transport.request(form.action, { method: "POST", body, headers: { accept: "application/json" } });
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) {
        mark(form, told.error?.details?.violations ?? []);
        throw new Error(told.error?.message ?? `The server answered ${answer.status}.`);
    }
    if (told.location) location.assign(told.location);
    return told;
}

/** Shows why a form was refused. @param {HTMLFormElement} form @param {string} words */
export function refuse(form, words) {
    let line = form.querySelector(".refused");
    if (!line) {
        line = document.createElement("p");
        line.className = "refused";
        line.setAttribute("role", "alert");
        form.append(line);
    }
    line.textContent = words;
    if (form.id === "composer" || !(line instanceof HTMLElement)) return;
    line.tabIndex = -1;
    line.focus();
}

/**
 * Shows what is wrong at the fields of an answer.
 * @param {HTMLFormElement} form @param {{pointer: string, expected: string}[]} violations
 */
function mark(form, violations) {
    unmark(form);
    for (const { pointer, expected } of violations) {
        /** @type {HTMLElement[]} */
        const places = [...form.querySelectorAll("[data-at]")].filter((place) => place instanceof HTMLElement);
        const place = places.find((place) => pointer === place.dataset.at || pointer.startsWith(`${place.dataset.at}/`));
        if (!place) continue;
        const line = document.createElement("p");
        line.className = "wrong";
        line.textContent = `expected ${expected}`;
        place.append(line);
        place.querySelector("input, select, textarea")?.setAttribute("aria-invalid", "true");
    }
}

/** @param {HTMLFormElement} form */
function unmark(form) {
    for (const line of form.querySelectorAll(".wrong")) line.remove();
    for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
}

document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || form.method !== "post" || !form.getAttribute("action")?.startsWith("/ui/")) return;
    if (event.defaultPrevented) return;
    event.preventDefault();
    if (form.dataset.busy) return;
    form.dataset.busy = "1";
    form.querySelector(".refused")?.remove();
    unmark(form);
    try {
        await send(form, event.submitter);
        const edit = form.closest("details.edit");
        if (edit instanceof HTMLDetailsElement) edit.open = false;
    } catch (error) {
        refuse(form, String(error instanceof Error ? error.message : error));
    } finally {
        delete form.dataset.busy;
    }
});
