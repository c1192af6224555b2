// Puts a chat into a page of another site:
//   <script src="https://agents.example/embed.js"></script>
//   Loomline.embed(place, { agent, thread, token: async () => "…", title })
// `token` asks the site's own server, which gets it with its key from POST /api/v1/web/tokens.
// @ts-check
(() => {
    const script = document.currentScript;
    if (!(script instanceof HTMLScriptElement)) return;
    const own = new URL(script.src).origin;

    /**
     * @param {Element} place where the frame goes
     * @param {{agent: string, thread: string, token: () => Promise<string>, title?: string}} options
     */
    function embed(place, { agent, thread, token, title = "Chat" }) {
        const frame = document.createElement("iframe");
        frame.title = title;
        frame.src = `${own}/embed/${encodeURIComponent(agent)}?thread=${encodeURIComponent(thread)}`;
        addEventListener("message", async (event) => {
            if (event.origin !== own || event.source !== frame.contentWindow || event.data?.loomline !== "token?") return;
            const told = { loomline: "token", token: await token() };
            frame.contentWindow?.postMessage(told, own);
        });
        place.append(frame);
        return frame;
    }

    Object.assign(window, { Loomline: { embed } });
})();
