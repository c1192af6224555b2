import { Loomline } from "@loomline/client";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat.tsx";

const client = new Loomline({ baseUrl: "http://127.0.0.1:8787" });
createRoot(document.getElementById("root")).render(<Chat client={client} id="react-1" />);
