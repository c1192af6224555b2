import type { UIMessage } from "ai";
import type { Loomline } from "./client.js";
import { LoomlineError, NotFoundError } from "./errors.js";
import type { Thread } from "./thread.js";

export interface ChatPersistenceOptions {
  client: Loomline;
  /** The agent that the record names as the author of the answers. */
  agent?: string;
  /**
   * What `saveChat` does if a stored message differs from the saved one or is missing there: `error` refuses;
   * `rewrite` stores all messages in a new thread, which replaces the old one with its log. Default: `error`.
   */
  onDifference?: "error" | "rewrite";
}

/** Stores the messages of the AI SDK. */
export interface ChatPersistence<Message extends UIMessage> {
  /** Creates an empty chat. Returns its id: the key of the thread. */
  createChat: () => Promise<string>;
  /** The stored messages; none if the chat does not exist. */
  loadChat: (id: string) => Promise<Message[]>;
  /** Stores the messages that the chat does not have yet. */
  saveChat: (chat: { chatId: string; messages: Message[] }) => Promise<void>;
}

/** A stored message differs from the saved one. Nothing was written. */
export class ChatDiffersError extends LoomlineError {
  override name = "ChatDiffersError";
  /** The position of the first message that differs. */
  readonly index: number;

  constructor(chatId: string, index: number) {
    const what = `message ${index} of the chat ${JSON.stringify(chatId)} is stored with other content`;
    super(`${what}: load the chat again, or use onDifference: "rewrite"`);
    this.index = index;
  }
}

const FORMAT = "ai-sdk-ui";

/** The persistence functions of the AI SDK, for chats that are threads. */
export function chatPersistence<Message extends UIMessage = UIMessage>({
  client,
  agent,
  onDifference = "error",
}: ChatPersistenceOptions): ChatPersistence<Message> {
  async function loadChat(id: string): Promise<Message[]> {
    const messages = await unlessAbsent(stored<Message>(client.thread(id)));
    // A crash can end a rewrite when only the copy has the messages.
    return messages?.length ? messages : ((await unlessAbsent(stored<Message>(copyOf(id)))) ?? []);
  }

  async function saveChat({ chatId, messages }: { chatId: string; messages: Message[] }): Promise<void> {
    const thread = await client.createThread({ key: chatId });
    const known = await stored<Message>(thread);
    const differs = known.findIndex((message, index) => !isSame(message, messages[index]));
    if (differs < 0) {
      await append(thread, messages.slice(known.length));
    } else if (onDifference === "error") {
      throw new ChatDiffersError(chatId, differs);
    } else {
      await rewrite(thread, messages);
    }
  }

  /** At each moment, the thread or its copy has the messages. */
  async function rewrite(thread: Thread, messages: Message[]): Promise<void> {
    const copy = copyOf(thread.key);
    await unlessAbsent(copy.delete());
    const store = ({ key }: Thread) => client.importDocument(messages, { source: FORMAT, key, agent });
    await store(copy);
    await thread.delete();
    await store(thread);
    await copy.delete();
  }

  function copyOf(chatId: string): Thread {
    return client.thread(`${chatId}~rewrite`);
  }

  async function append(thread: Thread, messages: Message[]): Promise<void> {
    // The position makes sure that nobody else has written since the messages were read.
    if (messages.length > 0) await thread.importMessages(messages, { source: FORMAT, agent, seq: thread.info?.seq });
  }

  return { createChat: async () => (await client.createThread()).key, loadChat, saveChat };
}

/** The result, or nothing if the thread does not exist. */
async function unlessAbsent<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

async function stored<Message extends UIMessage>(thread: Thread): Promise<Message[]> {
  const [{ messages }, { content }] = await Promise.all([thread.messages({ limit: 1 }), thread.document({ format: FORMAT })]);
  // The document of an empty thread has one message that carries the thread itself.
  return messages.length > 0 ? (content as Message[]) : [];
}

/** Whether two messages are equal as JSON, apart from what the server adds to messages of its own agents. */
function isSame(one: UIMessage, other: UIMessage | undefined): boolean {
  return other !== undefined && canonical(one) === canonical(other);
}

function canonical({ metadata, ...message }: UIMessage): string {
  const { loomline, ...own } = (metadata ?? {}) as Record<string, unknown>;
  return JSON.stringify({ ...message, metadata: own }, (_, value: unknown) => {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
