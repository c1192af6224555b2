// What only a browser can do: the live stream and its patches, the composer, scrolling, keys, dialogs.
// Every page works without this script, but does not change by itself.
// @ts-check

const NEAR_END = 80;
const HIDDEN_FOR = 20_000;
const MAX_PAUSE = 30_000;

/** @param {string} id */
const byId = (id) => document.getElementById(id);

// --- HTML from the server ------------------------------------------------------------------------
// The server escapes what others write. The policy is the only place that turns text into elements.

// @ts-ignore Trusted Types are not in every browser.
const policy = window.trustedTypes?.createPolicy("loomline", { createHTML: (/** @type {string} */ html) => html });

/** @param {string} html @returns {DocumentFragment} */
function elements(html) {
    const template = document.createElement("template");
    template.innerHTML = policy ? policy.createHTML(html) : html;
    dates(template.content);
    return template.content;
}

// --- Patches -------------------------------------------------------------------------------------

/** @typedef {{op: string, id: string, html: string, text: string, name: string, value: string, words: string}} Patch */
/** @type {Patch[]} */
let waiting = [];
let isDrawing = false;

/** @param {Patch[]} patches */
function apply(patches) {
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
    noteScroll();
    const height = log?.scrollHeight ?? 0;
    for (const patch of patches) drawOne(patch);
    if (follows) scrollToEnd();
    else if (log && log.scrollHeight > height) showNews();
}

/** @param {Patch} patch */
function drawOne(patch) {
    const target = byId(patch.id);
    switch (patch.op) {
        case "put": {
            if (!target) return;
            const fragment = elements(patch.html);
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
 * What a reader has opened or typed stays.
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

/** @param {string} words */
function say(words) {
    const line = byId("say");
    if (line) line.textContent = words;
}

// --- Scrolling -----------------------------------------------------------------------------------

const log = byId("log");
const thread = log?.dataset.thread;

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

function scrollToEnd() {
    setFollows(true);
    if (!log) return;
    log.scrollTop = log.scrollHeight;
    scrolledTo = log.scrollTop;
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
async function older() {
    const place = byId("earlier");
    const link = place?.querySelector("a[data-older]");
    if (!log || !place || !link || isLoading) return;
    isLoading = true;
    try {
        const answer = await fetch(String(link.getAttribute("data-older")));
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

// --- The live stream -----------------------------------------------------------------------------

/** @type {EventSource | null} */
let source = null;
let after = log?.dataset.after ?? "";
let pause = 1_000;
/** @type {number | undefined} */
let retry;
/** @type {number | undefined} */
let lostAt;

function open() {
    if (!thread || source) return;
    clearTimeout(retry);
    source = new EventSource(`/ui/live?thread=${encodeURIComponent(thread)}&after=${encodeURIComponent(after)}`);
    source.addEventListener("open", () => {
        pause = 1_000;
        if (lostAt) {
            const seconds = Math.max(1, Math.round((Date.now() - lostAt) / 1_000));
            banner(`The server was away for ${seconds} s. Nothing is lost.`, 6_000);
        }
        lostAt = undefined;
        unsent();
    });
    source.addEventListener("patch", (event) => {
        if (event.lastEventId) after = event.lastEventId;
        apply(JSON.parse(event.data));
    });
    source.addEventListener("refused", (event) => {
        close();
        banner(JSON.parse(event.data).message);
    });
    source.addEventListener("error", () => {
        close();
        lostAt ??= Date.now();
        banner(`Not connected. Trying again in ${Math.round(pause / 1_000)} s.`);
        retry = setTimeout(open, pause);
        pause = Math.min(pause * 2, MAX_PAUSE);
    });
}

function close() {
    source?.close();
    source = null;
}

/** @type {number | undefined} */
let hiding;
document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(close, HIDDEN_FOR);
    else open();
});
addEventListener("online", () => { pause = 1_000; open(); });

/** @type {number | undefined} */
let fading;

/** @param {string} words @param {number} [time] */
function banner(words, time) {
    const line = byId("offline");
    if (!line) return;
    clearTimeout(fading);
    line.textContent = words;
    line.hidden = false;
    if (time) fading = setTimeout(() => { line.hidden = true; }, time);
}

// --- Forms ---------------------------------------------------------------------------------------

const composer = /** @type {HTMLFormElement | null} */ (byId("composer"));
const message = /** @type {HTMLTextAreaElement | null} */ (byId("message"));
const draftKey = `draft:${thread ?? "new"}`;

/**
 * Sends a form. The answer arrives through the stream.
 * @param {HTMLFormElement} form @param {HTMLElement | null} submitter
 */
async function send(form, submitter) {
    const data = new FormData(form, submitter);
    if (form.enctype === "multipart/form-data") {
        data.delete("file");
        for (const file of files) data.append("file", file);
    }
    /** @type {BodyInit} */
    // @ts-ignore The values of the other forms are texts.
    const body = form.enctype === "multipart/form-data" ? data : new URLSearchParams(data);
    const answer = await fetch(form.action, { method: "POST", body, headers: { accept: "application/json" } });
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) {
        mark(form, told.error?.details?.violations ?? []);
        throw new Error(told.error?.message ?? `The server answered ${answer.status}.`);
    }
    if (told.location) location.assign(told.location);
    return told;
}

/** @param {HTMLFormElement} form @param {string} words */
function refuse(form, words) {
    let line = form.querySelector(".refused");
    if (!line) {
        line = document.createElement("p");
        line.className = "refused";
        line.setAttribute("role", "alert");
        form.append(line);
    }
    line.textContent = words;
    if (form === composer || !(line instanceof HTMLElement)) return;
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
    event.preventDefault();
    if (form.dataset.busy) return;
    if (form === composer) return submitMessage(event.submitter);
    form.dataset.busy = "1";
    form.querySelector(".refused")?.remove();
    unmark(form);
    try {
        await send(form, event.submitter);
        for (const open of form.closest("details.edit") ? [form.closest("details.edit")] : []) {
            if (open instanceof HTMLDetailsElement) open.open = false;
        }
    } catch (error) {
        refuse(form, String(error instanceof Error ? error.message : error));
    } finally {
        delete form.dataset.busy;
    }
});

/** @param {HTMLElement | null} submitter */
async function submitMessage(submitter) {
    if (!composer || !message) return;
    const isStarter = submitter?.getAttribute("name") === "starter";
    if (!isStarter && !message.value.trim() && files.length === 0) return;
    composer.dataset.busy = "1";
    composer.querySelector(".refused")?.remove();
    const text = message.value;
    try {
        const told = await send(composer, submitter);
        message.value = "";
        files = [];
        drawFiles();
        sessionStorage.removeItem(draftKey);
        delete composer.dataset.unsent;
        const key = composer.elements.namedItem("idempotency_key");
        if (key instanceof HTMLInputElement && told.idempotencyKey) key.value = told.idempotencyKey;
        grow();
        scrollToEnd();
    } catch (error) {
        message.value = text;
        if (error instanceof TypeError) {
            composer.dataset.unsent = "1";
            refuse(composer, "Not sent: the server can't be reached. The page sends it when it is back.");
        } else {
            refuse(composer, String(error instanceof Error ? error.message : error));
        }
    } finally {
        delete composer.dataset.busy;
    }
}

/** Sends what could not be sent while the server was away. */
function unsent() {
    if (composer?.dataset.unsent) submitMessage(null);
}

function grow() {
    if (!message) return;
    message.rows = Math.min(12, Math.max(1, message.value.split("\n").length));
}

if (message) {
    const draft = sessionStorage.getItem(draftKey);
    if (draft && !message.value) message.value = draft;
    grow();
    message.addEventListener("input", () => {
        sessionStorage.setItem(draftKey, message.value);
        grow();
    });
    message.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            composer?.requestSubmit();
        }
    });
}

// --- Files ---------------------------------------------------------------------------------------

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

/** The first bytes of the images that a page shows. */
const MAGIC = [["image/png", "89504e47"], ["image/jpeg", "ffd8ff"], ["image/gif", "47494638"], ["image/webp", "52494646"]];

/** Shows an image from memory, if its bytes are those of an image. @param {Element} button */
function showImage(button) {
    const bytes = Uint8Array.from(atob(button.getAttribute("data-image") ?? ""), (char) => char.charCodeAt(0));
    const start = [...bytes.slice(0, 12)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const kind = MAGIC.find(([, magic]) => start.startsWith(magic))?.[0] ?? (start.slice(8).startsWith("66747970") ? "image/avif" : undefined);
    if (!kind) {
        button.replaceWith("This is not an image.");
        return;
    }
    const image = document.createElement("img");
    image.alt = button.parentElement?.querySelector(".name")?.textContent ?? "image";
    image.src = URL.createObjectURL(new Blob([bytes], { type: kind }));
    button.replaceWith(image);
}

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
    if (image) return showImage(image);
    const link = target.closest("a[data-older]");
    if (link) {
        event.preventDefault();
        await older();
        return;
    }
    const copy = target.closest("button.copy");
    if (copy) {
        const texts = [...copy.closest(".message")?.querySelectorAll(".text .md") ?? []];
        await navigator.clipboard?.writeText(texts.map((text) => text instanceof HTMLElement ? text.innerText : "").join("\n\n"));
        say("Copied.");
    }
});

/** Opens an address of somebody else, if the reader agrees. @param {string} address */
async function ask(address) {
    const dialog = byId("ask");
    const line = byId("ask-address");
    if (!(dialog instanceof HTMLDialogElement) || !line) return;
    line.textContent = address;
    dialog.returnValue = "";
    dialog.showModal();
    await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
    if (dialog.returnValue === "open") window.open(address, "_blank", "noopener,noreferrer");
}

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

// --- Dates, colours ------------------------------------------------------------------------------

/** Shows instants in the reader's time zone. @param {ParentNode} within */
function dates(within) {
    for (const time of within.querySelectorAll("time:not([data-local])")) {
        const at = new Date(time.getAttribute("datetime") ?? "");
        time.setAttribute("data-local", "");
        if (Number.isNaN(at.getTime())) continue;
        const isToday = at.toDateString() === new Date().toDateString();
        time.setAttribute("title", at.toLocaleString());
        time.textContent = isToday ? at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    }
}

const theme = byId("theme");
const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
if (theme) {
    theme.hidden = false;
    theme.addEventListener("click", () => {
        const now = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
        const next = now === "dark" ? "light" : "dark";
        document.documentElement.dataset.theme = next;
        localStorage.setItem("theme", next);
    });
}
const threads = document.querySelector(".rail details.threads");
if (threads instanceof HTMLDetailsElement && matchMedia("(max-width: 50rem)").matches) threads.open = false;

dates(document);
scrollToEnd();
open();
