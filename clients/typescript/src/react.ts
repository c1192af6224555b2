import { useMemo, useSyncExternalStore } from "react";
import { ThreadStore, type ThreadSnapshot, type ThreadStoreOptions } from "./store.js";

type Actions = Pick<ThreadStore, "send" | "approve" | "deny" | "answer" | "answerRequest" | "declineRequest" | "cancel">;

/** The thread with this key, kept up to date, and the actions on it. Give it the same `client` on each render. */
export function useThread({ client, key, agent }: ThreadStoreOptions): ThreadSnapshot & Actions {
  const store = useMemo(() => new ThreadStore({ client, key, agent }), [client, key, agent]);
  const snapshot = useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot);
  return useMemo(() => {
    const { send, approve, deny, answer, answerRequest, declineRequest, cancel } = store;
    return { ...snapshot, send, approve, deny, answer, answerRequest, declineRequest, cancel };
  }, [store, snapshot]);
}
