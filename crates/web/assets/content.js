// Content of others: images are shown and addresses opened when the reader asks for it.
// @ts-check

import { byId } from "./dom.js";
import { transport } from "./transport.js";

/** The first bytes of the images that a page shows. */
const MAGIC = [["image/png", "89504e47"], ["image/jpeg", "ffd8ff"], ["image/gif", "47494638"], ["image/webp", "52494646"]];

/** Shows a file of the thread, if its bytes are those of an image. @param {Element} button */
export async function showImage(button) {
    const answer = await transport.request(button.getAttribute("data-image") ?? "");
    if (!answer.ok) {
        button.replaceWith("The image can't be read.");
        return;
    }
    const bytes = new Uint8Array(await answer.arrayBuffer());
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

/** Opens an address of somebody else, if the reader agrees. @param {string} address */
export async function ask(address) {
    const dialog = byId("ask");
    const line = byId("ask-address");
    if (!(dialog instanceof HTMLDialogElement) || !line) return;
    line.textContent = address;
    dialog.returnValue = "";
    dialog.showModal();
    await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
    if (dialog.returnValue === "open") window.open(address, "_blank", "noopener,noreferrer");
}
