// The page within another site: it loads the conversation with the token of the site, then becomes a chat.
// @ts-check

import { TokenSource, forget, request } from "./bearer.js";
import { banner, byId, elements } from "./dom.js";
import { transport } from "./transport.js";

transport.request = request;
transport.stream = (path) => new TokenSource(path);
transport.renew = () => {
    forget();
    return true;
};

const place = byId("embedded");
const { agent, thread } = place?.dataset ?? {};
const answer = await request("/ui/embedded", {
    method: "POST",
    body: new URLSearchParams({ agent: agent ?? "", thread: thread ?? "" }),
    headers: { accept: "application/json" },
});
const told = await answer.json();
if (answer.ok) {
    place?.replaceChildren(elements(told.html));
    await import("./page.js");
} else {
    banner(told.error?.message ?? `The server answered ${answer.status}.`);
}
