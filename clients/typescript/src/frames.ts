import { ConnectionError } from "./errors.js";

/** An event of a stream as it was sent. */
export interface Frame {
  id: string;
  name: string;
  data: string;
}

/** Reads the frames of a stream. Fails if the stream is silent for too long. */
export async function* frames(
  body: ReadableStream<Uint8Array>,
  silenceMs: number,
  onBytes: () => void,
): AsyncGenerator<Frame, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let frame: Partial<Frame> = {};
  try {
    for (;;) {
      const { done, value } = await read(reader, silenceMs);
      if (done) return;
      onBytes();
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line !== "" && line !== "\r") {
          addField(frame, line.endsWith("\r") ? line.slice(0, -1) : line);
          continue;
        }
        const { id = "", name = "message", data } = frame;
        frame = {};
        if (data !== undefined) yield { id, name, data };
      }
    }
  } finally {
    // Closes the connection. It may be broken, and then there is nothing to close.
    void reader.cancel().catch(() => {});
  }
}

function addField(frame: Partial<Frame>, line: string): void {
  const colon = line.indexOf(":");
  const value = line.slice(colon + 1).replace(/^ /, "");
  switch (line.slice(0, colon)) {
    case "id":
      frame.id = value;
      break;
    case "event":
      frame.name = value;
      break;
    case "data":
      frame.data = frame.data === undefined ? value : `${frame.data}\n${value}`;
      break;
  }
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>, ms: number) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the stream was silent for ${ms / 1_000} s`)), ms);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } catch (error) {
    throw new ConnectionError("the stream was cut off", { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
