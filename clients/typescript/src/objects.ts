import { paged } from "./paged.js";
import { type Transport, segment } from "./transport.js";
import type { ObjectFilter, RequestOptions, StoredObject } from "./types.js";

interface ObjectList<T> {
  objects: StoredObject<T>[];
  next?: string | null;
}

/** The objects of one kind that are stored beside a thread. */
export class ThreadObjects<T = unknown> {
  readonly #transport: Transport;
  readonly #path: string;

  /** @internal */
  constructor(transport: Transport, path: string) {
    this.#transport = transport;
    this.#path = path;
  }

  /** Lists the objects. */
  list({ order, limit, ids, ...options }: ObjectFilter = {}): AsyncGenerator<StoredObject<T>, void, undefined> {
    return paged<ObjectList<T>, StoredObject<T>>(
      (after) => {
        const query = ids ? { id: ids.slice(after === undefined ? 0 : ids.indexOf(after) + 1) } : { order, limit, after };
        return this.#transport.json({ method: "GET", path: this.#path, query, ...options });
      },
      (page) => page.objects,
    );
  }

  get(id: string, options?: RequestOptions): Promise<StoredObject<T>> {
    return this.#transport.json({ method: "GET", path: this.#of(id), ...options });
  }

  /** Creates or replaces an object. */
  put(id: string, value: T, options?: RequestOptions): Promise<StoredObject<T>> {
    return this.#transport.json({ method: "PUT", path: this.#of(id), body: { value }, ...options });
  }

  async delete(id: string, options?: RequestOptions): Promise<void> {
    await this.#transport.send({ method: "DELETE", path: this.#of(id), ...options }, (response) => response.text());
  }

  #of(id: string): string {
    return `${this.#path}/${segment(id)}`;
  }
}
