// A chat of the terminal with the transport of `useChat`. Its requests go to the route in this process.
import { DefaultChatTransport, readUIMessageStream } from "ai";
import { GET, POST } from "./route.mjs";

const [id, text] = process.argv.slice(2);
const transport = new DefaultChatTransport({
  api: "http://localhost/api/chat",
  fetch: (url, init) => POST(new Request(url, init)),
  prepareSendMessagesRequest: ({ id, messages }) => ({ body: { id, message: messages.at(-1) } }),
});
const message = { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] };
const stream = await transport.sendMessages({ chatId: id, trigger: "submit-message", messages: [message] });

let answer;
for await (const next of readUIMessageStream({ stream })) answer = next;
console.log(answer.parts.at(-1).text);

const stored = await (await GET(new Request(`http://localhost/api/chat?id=${id}`))).json();
console.log(`${stored.length} messages are stored`);
