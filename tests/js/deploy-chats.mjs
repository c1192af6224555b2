// Chats of the `ai` package through a load balancer, for scripts/check-deploy.
//
//   node deploy-chats.mjs URL KEY N PROMPT    opens N chats at once, prints a line of JSON when each of them speaks,
//                                             resumes those that break, and prints a line for each when it has ended
import { Chat, until } from "./chat.mjs";

const [base, key, n, prompt] = process.argv.slice(2);
const words = (message) =>
  (message?.role === "assistant" ? message.parts : [])
    .filter((part) => part.type === "text")
    .flatMap((part) => part.text.split(/\s+/).filter(Boolean)).length;

async function talk(id) {
  const servers = [];
  const chat = new Chat({
    base,
    id,
    transport: {
      headers: { authorization: `Bearer ${key}` },
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        servers.push(response.headers.get("x-served-by"));
        return response;
      },
    },
  });
  const asked = chat.sendMessage({ text: prompt });
  await until("some words", () => {
    if (chat.status === "error") throw chat.error;
    return words(chat.lastMessage) > 5;
  });
  console.log(JSON.stringify({ id, speaks: servers[0] }));
  await asked;
  let breaks = 0;
  while (chat.status === "error") {
    breaks += 1;
    if (breaks > 600) throw new Error(`${id} does not resume: ${chat.error?.message}`);
    await new Promise((done) => setTimeout(done, 100));
    await chat.resumeStream();
  }
  console.log(JSON.stringify({ id, words: words(chat.lastMessage), messages: chat.messages.length, breaks, servers }));
}

await Promise.all(Array.from({ length: Number(n) }, (_, i) => talk(`chat-${i}`)));
