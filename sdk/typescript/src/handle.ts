/** Which sandbox of which connection: what `Sandbox`, its files and its variables share. */

import type { Json } from "./answers.js";
import type { Connection, OnOutput, Receiver, Request } from "./connection.js";
import { SandboxClosedError, SandboxInUseError } from "./errors.js";

/**
 * How a sandbox was created, which determines how it is destroyed.
 * @internal
 */
export type Origin = "root" | "fork" | "sibling";

/** The commands, which `cancel` cancels. */
const RUNS = ["run", "python.run"];
/** The calls that the server makes wait for commands. They keep their order among them. */
const ORDERED = [
  ...RUNS,
  ...["env.set", "env.get", "env.unset", "env.list", "mount", "mount.apply", "offload", "rehydrate", "sandbox.fork"],
  ...["snapshot.create", "snapshot.restore", "persistence.export", "persistence.import"],
];

/** @internal */
export interface CallOptions<T> {
  readonly signal?: AbortSignal | undefined;
  /** Undoes what came of a call whose caller gave up. */
  readonly undo?: (result: T) => void;
}

/** @internal */
export class Handle {
  /** Set once it was destroyed. */
  gone = false;

  constructor(
    readonly connection: Connection,
    readonly origin: Origin,
    readonly id: string | undefined = undefined,
  ) {}

  /** Returns another sandbox of the same server, which has just been created. */
  beside(origin: Origin, id: string): Handle {
    this.connection.others.add(id);
    return new Handle(this.connection, origin, id);
  }

  /** Throws if destroying the first sandbox would destroy others, too. */
  checkAlone(): void {
    const others = this.connection.others.size;
    if (others === 0) return;
    const noun = others === 1 ? "fork or sibling is" : "forks and siblings are";
    throw new SandboxInUseError(
      `${others} ${noun} still alive on this sandbox's server: destroy them first, or end all with close()`,
    );
  }

  /** Sends a request about this sandbox. */
  send(method: string, params: object, onOutput?: OnOutput, onAnswer?: (answer: Json) => void): Request {
    if (this.gone) throw new SandboxClosedError("the sandbox has been destroyed");
    const lane = ORDERED.includes(method) ? (this.id ?? "") : undefined;
    return this.connection.request(method, { ...params, ...this.#named() }, { lane, onOutput, onAnswer });
  }

  /** Connects to a port of this sandbox. */
  claim(params: object, receiver: Receiver): Request {
    if (this.gone) throw new SandboxClosedError("the sandbox has been destroyed");
    return this.connection.request("net.connect", { ...params, ...this.#named() }, { receiver });
  }

  /** Gives up a request; if it is a command in progress, it is cancelled. */
  abandon(request: Request, isRun: boolean): void {
    this.connection.abandon(request, isRun ? this.#named() : undefined);
  }

  /** Makes a call, and reads its answer. */
  async call<T>(method: string, params: object, read: (answer: Json) => T, options: CallOptions<T> = {}): Promise<T> {
    options.signal?.throwIfAborted();
    const request = this.send(method, params);
    return await this.follow(request, RUNS.includes(method), read, options);
  }

  /** Makes a call that is about no sandbox of this server. */
  async ask<T>(method: string, params: object, read: (answer: Json) => T, { signal }: CallOptions<T> = {}): Promise<T> {
    signal?.throwIfAborted();
    if (this.gone) throw new SandboxClosedError("the sandbox has been destroyed");
    const request = this.connection.request(method, params, {});
    return await this.follow(request, false, read, { signal });
  }

  /** Waits for a request that was sent, unless the signal says otherwise. */
  async follow<T>(
    request: Request,
    isRun: boolean,
    read: (answer: Json) => T,
    { signal, undo }: CallOptions<T>,
  ): Promise<T> {
    if (signal === undefined) return read(await request.answer);
    let stop = () => {};
    const aborted = new Promise<never>((_, reject) => {
      stop = () => {
        reject(signal.reason as Error);
        this.abandon(request, isRun);
        // It may have been done all the same.
        if (undo !== undefined) request.answer.then((answer) => undo(read(answer))).catch(() => {});
      };
      signal.addEventListener("abort", stop, { once: true });
    });
    // Already aborted, or not yet: an aborted signal fires no more events.
    if (signal.aborted) stop();
    try {
      return read(await Promise.race([request.answer, aborted]));
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  #named(): { sandboxId?: string } {
    return this.id === undefined ? {} : { sandboxId: this.id };
  }
}

/**
 * For answers that only confirm that something was done.
 * @internal
 */
export function done(): void {}
