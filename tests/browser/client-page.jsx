// A page that uses the hook of @loomline/client. Its query names the server, the thread and the agent.
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { Loomline, textOf } from "../../clients/typescript/dist/index.js";
import { useThread } from "../../clients/typescript/dist/react.js";

const query = new URLSearchParams(location.search);
const client = new Loomline({ baseUrl: query.get("server") });

function Conversation() {
  const thread = useThread({ client, key: query.get("key"), agent: query.get("agent") ?? undefined });
  return (
    <main data-status={thread.status}>
      <form action={(form) => void thread.send(String(form.get("text")))}>
        <input name="text" aria-label="Message" />
      </form>
      <ol>
        {thread.messages.map((message) => (
          <li key={message.id} data-role={message.role} data-status={message.status}>
            {textOf(message.content)}
          </li>
        ))}
      </ol>
      {thread.pending.map((call) => (
        <p key={call.toolCallId}>
          {call.toolName} {JSON.stringify(call.input)}
          <button type="button" onClick={() => thread.approve(call.toolCallId)}>Approve</button>
          <button type="button" onClick={() => thread.deny(call.toolCallId, { reason: "too expensive" })}>Deny</button>
        </p>
      ))}
      {thread.requests.map((request) => (
        <p key={request.id}>
          {request.title}
          <button type="button" onClick={() => thread.answerRequest(request.id, { option: "aisle" })}>Aisle</button>
        </p>
      ))}
      {thread.status === "running" && <button type="button" onClick={() => thread.cancel()}>Stop</button>}
      {thread.error && <p role="alert">{thread.error.message}</p>}
    </main>
  );
}

function Page() {
  const [isOpen, setOpen] = useState(true);
  return (
    <>
      <button type="button" onClick={() => setOpen(!isOpen)}>{isOpen ? "Leave" : "Enter"}</button>
      {isOpen && <Conversation />}
    </>
  );
}

createRoot(document.getElementById("root")).render(<StrictMode><Page /></StrictMode>);
