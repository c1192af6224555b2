// The route /api/chat of an app with its own model, as app/api/chat/route.ts of Next.js. Each chat is a thread.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Loomline } from "@loomline/client";
import { chatPersistence } from "@loomline/client/ai";
import { convertToModelMessages, createIdGenerator, streamText } from "ai";

const client = new Loomline();
const { loadChat, saveChat } = chatPersistence({ client, agent: "support" });

// The offline model of the server. Any provider of the AI SDK can replace it.
const server = process.env.LOOMLINE_SERVER ?? "http://127.0.0.1:8787";
const provider = createOpenAICompatible({ name: "loomline", baseURL: `${server}/v1` });
const model = provider(process.env.MODEL ?? "scripted");

/** Answers the newest message of a chat, and stores both. */
export async function POST(request) {
  const { id, message } = await request.json();
  const messages = [...(await loadChat(id)), message];
  const result = streamText({ model, messages: await convertToModelMessages(messages) });
  result.consumeStream(); // The answer is stored even if the page is closed.
  return result.toUIMessageStreamResponse({
    originalMessages: messages,
    generateMessageId: createIdGenerator({ prefix: "answer" }),
    onFinish: ({ messages }) => saveChat({ chatId: id, messages }),
  });
}

/** The stored messages of a chat, for `useChat({ messages })`. */
export async function GET(request) {
  return Response.json(await loadChat(new URL(request.url).searchParams.get("id")));
}
