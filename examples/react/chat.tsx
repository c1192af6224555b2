import { type Loomline, textOf } from "@loomline/client";
import { useThread } from "@loomline/client/react";

/** A conversation with the agent `careful`: each call of its tools needs an approval. */
export function Chat({ client, id }: { client: Loomline; id: string }) {
  const { messages, status, pending, error, send, approve, deny, cancel } = useThread({ client, key: id, agent: "careful" });
  return (
    <main>
      <ol>
        {messages.filter((message) => textOf(message.content)).map((message) => (
          <li key={message.id}>
            {message.role}: {textOf(message.content)}
          </li>
        ))}
      </ol>
      {pending.map((call) => (
        <p key={call.toolCallId}>
          {call.toolName} {JSON.stringify(call.input)}
          <button onClick={() => approve(call.toolCallId)}>Approve</button>
          <button onClick={() => deny(call.toolCallId, { reason: "The user said no." })}>Deny</button>
        </p>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={(form) => void send(String(form.get("text")))}>
        <input name="text" aria-label="Message" autoFocus />
        {status === "running" && <button type="button" onClick={cancel}>Stop</button>}
      </form>
    </main>
  );
}
