// A stream of patches from the server. A hidden page closes it, because browsers open only six at a time.
// @ts-check

import { banner } from "./dom.js";
import { transport } from "./transport.js";

const HIDDEN_FOR = 20_000;
const MAX_PAUSE = 30_000;

/** @typedef {import("./patches.js").Patch} Patch */

export class LiveStream {
    /** @type {ReturnType<typeof transport.stream> | null} */
    #source = null;
    #pause = 1_000;
    #isPaused = false;
    /** @type {number | undefined} */
    #retry;
    /** @type {number | undefined} */
    #lostAt;
    /** @type {number | undefined} */
    #hiding;
    #address;
    #after;
    #apply;
    #opened;

    /**
     * @param {(after: string) => string} address the address of the stream after an event
     * @param {string} after the id of the last event that the page shows
     * @param {(patches: Patch[]) => void} apply
     * @param {() => void} [opened]
     */
    constructor(address, after, apply, opened) {
        this.#address = address;
        this.#after = after;
        this.#apply = apply;
        this.#opened = opened;
        document.addEventListener("visibilitychange", () => {
            clearTimeout(this.#hiding);
            if (document.hidden) this.#hiding = setTimeout(() => this.#close(), HIDDEN_FOR);
            else this.open();
        });
        addEventListener("online", () => {
            this.#pause = 1_000;
            this.open();
        });
    }

    open() {
        if (this.#source || this.#isPaused) return;
        clearTimeout(this.#retry);
        const address = this.#address(this.#after);
        const source = transport.stream(address);
        this.#source = source;
        source.addEventListener("open", () => this.#open());
        source.addEventListener("patch", (/** @type {any} */ event) => {
            if (event.lastEventId) this.#after = event.lastEventId;
            this.#apply(JSON.parse(event.data));
        });
        source.addEventListener("refused", (/** @type {any} */ event) => {
            const told = JSON.parse(event.data);
            if (told.code === "not_logged_in" && transport.renew()) {
                this.#later();
                return;
            }
            this.#close();
            banner(told.message);
        });
        source.addEventListener("error", () => {
            this.#lostAt ??= Date.now();
            banner(`Not connected. Trying again in ${Math.round(this.#pause / 1_000)} s.`);
            this.#later();
        });
    }

    /** Opens it again after a pause. */
    #later() {
        this.#close();
        this.#retry = setTimeout(() => this.open(), this.#pause);
        this.#pause = Math.min(this.#pause * 2, MAX_PAUSE);
    }

    #open() {
        this.#pause = 1_000;
        if (this.#lostAt) {
            const seconds = Math.max(1, Math.round((Date.now() - this.#lostAt) / 1_000));
            banner(`The server was away for ${seconds} s. Nothing is lost.`, 6_000);
        }
        this.#lostAt = undefined;
        this.#opened?.();
    }

    /** Closes it until it is resumed. */
    pause() {
        this.#isPaused = true;
        clearTimeout(this.#retry);
        this.#close();
    }

    /** Opens it after a pause: the events of the pause come first. */
    resume() {
        this.#isPaused = false;
        this.open();
    }

    #close() {
        this.#source?.close();
        this.#source = null;
    }
}
