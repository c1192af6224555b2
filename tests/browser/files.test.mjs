// Files of messages: picked, pasted, dropped, shown and refused.
import assert from "node:assert/strict";
import { Loomline } from "../js/loomline.mjs";
import { claim } from "./browser.mjs";
import { converse, until } from "./chromium.mjs";

const server = await Loomline.forTests(`
[limits]
message_bytes = 262144
[models.m]
provider = "scripted"
[agents.demo]
model = "m"
`);

/** A red square of 8 by 8 pixels. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP8z4APMOGVHbHSAEEsAQ8Rnr7aAAAAAElFTkSuQmCC",
  "base64",
);
const image = { name: "square.png", mimeType: "image/png", buffer: PNG };
const note = { name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("A note.") };

async function opened(visitor, key) {
  await converse(server, key, "Good morning");
  return visitor.chat(key);
}

/** Has the page receive an event with files, as a browser sends it. */
async function give(page, type, files) {
  const plain = files.map(({ name, mimeType, buffer }) => [name, mimeType, buffer.toString("base64")]);
  const given = await page.evaluateHandle((all) => {
    const transfer = new DataTransfer();
    for (const [name, mediaType, content] of all) {
      const bytes = Uint8Array.from(atob(content), (char) => char.charCodeAt(0));
      transfer.items.add(new File([bytes], name, { type: mediaType }));
    }
    return transfer;
  }, plain);
  await page.evaluate(([transfer, type]) => {
    const target = document.getElementById("message");
    const bubbles = { bubbles: true, cancelable: true };
    const event = type === "paste"
      ? new ClipboardEvent("paste", { ...bubbles, clipboardData: transfer })
      : new DragEvent(type, { ...bubbles, dataTransfer: transfer });
    target.dispatchEvent(event);
  }, [given, type]);
}

const attached = (page) => page.getByRole("list", { name: "Attached files" }).getByRole("listitem");

claim("an image is shown only after a click, from memory", server, async (visitor) => {
  const page = await opened(visitor, "image");
  await page.locator("#files").setInputFiles(image);
  await attached(page).getByText("square.png").waitFor();
  await visitor.send("A picture");
  await visitor.answered(1);
  const figure = page.locator("#log figure.file");
  await figure.getByText("square.png").waitFor();
  assert.equal(await page.locator("#log img").count(), 0);
  assert.equal(await attached(page).count(), 0);
  await visitor.equalsItsReload();
  await figure.getByRole("button", { name: "Show" }).click();
  const shown = figure.locator("img");
  assert.match(await shown.getAttribute("src"), /^blob:/);
  await until("the picture", () => shown.evaluate((element) => element.complete && element.naturalWidth === 8));
});

claim("files are picked, pasted and dropped", server, async (visitor) => {
  const page = await opened(visitor, "ways");
  await page.locator("#files").setInputFiles(note);
  await give(page, "paste", [image]);
  await give(page, "drop", [{ ...note, name: "dropped.txt" }]);
  await until("three files", async () => (await attached(page).count()) === 3);
  await page.getByRole("button", { name: "Remove note.txt" }).click();
  await until("two files", async () => (await attached(page).count()) === 2);
  await visitor.send("Two files");
  await visitor.answered(1);
  const names = page.locator("#log figure.file .name");
  assert.deepEqual(await names.allInnerTexts(), ["square.png", "dropped.txt"]);
});

claim("a message may have a file and no text", server, async (visitor) => {
  const page = await opened(visitor, "no-text");
  await page.locator("#files").setInputFiles(note);
  await attached(page).getByText("note.txt").waitFor();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.locator("#log figure.file").getByText("note.txt").waitFor();
  await visitor.answered(1);
});

claim("a file that is too large is refused before sending", server, async (visitor) => {
  const page = await opened(visitor, "large");
  let sent = 0;
  page.on("request", (request) => { if (request.method() === "POST") sent++; });
  await page.locator("#files").setInputFiles({ name: "large.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(300_000) });
  await page.getByText(/large\.bin is too large/).waitFor();
  assert.equal(await attached(page).count(), 0);
  assert.equal(sent, 0);
});

claim("a file that only claims to be an image is not shown", server, async (visitor) => {
  const page = await opened(visitor, "claims");
  const script = Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' onload='window.__pwned = 1'/>");
  await page.locator("#files").setInputFiles([
    { name: "fake.png", mimeType: "image/png", buffer: script },
    { name: "drawing.svg", mimeType: "image/svg+xml", buffer: script },
    { name: "page.html", mimeType: "text/html", buffer: Buffer.from("<script>window.__pwned = 1</script>") },
  ]);
  await visitor.send("Pictures?");
  await visitor.answered(1);
  const show = page.locator("#log").getByRole("button", { name: "Show" });
  assert.equal(await show.count(), 1);
  await show.click();
  await page.getByText("This is not an image.").waitFor();
  assert.equal(await page.locator("#log img, #log svg, #log iframe").count(), 0);
  assert.equal(await page.evaluate(() => window.__pwned), undefined);
});

claim("a file is sent without a script", server, { javaScriptEnabled: false }, async (visitor) => {
  await converse(server, "plain", "Good morning");
  const page = await visitor.open("/chat/plain");
  await page.locator("#files").setInputFiles(note);
  await page.getByLabel("Message", { exact: true }).fill("With a note");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.waitForURL(/\/chat\/plain$/);
  await page.locator("#log figure.file").getByText("note.txt").waitFor();
});
