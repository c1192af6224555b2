import type { Transport } from "./transport.js";
import type { AnsweredRequest, AnswerOptions, KeyedOptions, RequestOptions, RequestView } from "./types.js";

type RequestAnswerOptions = AnswerOptions & {
  /** The agent that continues. Default: the agent that made the request. */
  agent?: string;
};

/** A request of a thread: a decision, data or a payment that an agent or an actor asks for. */
export class ThreadRequest {
  readonly id: string;
  readonly #transport: Transport;
  readonly #path: string;

  /** @internal */
  constructor(transport: Transport, path: string, id: string) {
    this.#transport = transport;
    this.#path = path;
    this.id = id;
  }

  read(options?: RequestOptions): Promise<RequestView> {
    return this.#transport.json({ method: "GET", path: this.#path, ...options });
  }

  /** Answers with a value that fits `answerSchema` of the request. */
  answer(value: Record<string, unknown>, { actor, agent, ...options }: RequestAnswerOptions = {}): Promise<AnsweredRequest> {
    return this.#post("answer", { value, actor, agent }, options);
  }

  decline(options: RequestAnswerOptions & { reason?: string; code?: string } = {}): Promise<AnsweredRequest> {
    const { reason, code, actor, agent, ...rest } = options;
    return this.#post("decline", { reason, code, actor, agent }, rest);
  }

  /** Cancels the request. Only the party that made it may do so. */
  cancel({ reason, actor, ...options }: AnswerOptions & { reason?: string } = {}): Promise<AnsweredRequest> {
    return this.#post("cancel", { reason, actor }, options);
  }

  #post(action: string, body: object, options: KeyedOptions): Promise<AnsweredRequest> {
    return this.#transport.postKeyed(`${this.#path}/${action}`, body, options);
  }
}
