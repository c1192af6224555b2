// OpenAI's own client, as this folder's tests use it.
import OpenAI from "openai";

/** A client of a server of ours. It asks once, so that no refusal is hidden by a second try. */
export const openai = (server) =>
  new OpenAI({ apiKey: "llk_none", baseURL: `${server.base}/v1`, maxRetries: 0 });
