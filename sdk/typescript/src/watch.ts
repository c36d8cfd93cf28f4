/** Being told of what changes in a directory. */

import { field, list, optional, type Json } from "./answers.js";
import type { CallOptions, Handle } from "./handle.js";
import { done } from "./handle.js";
import { SandboxError, type WardianError } from "./errors.js";
import type { FileType } from "./results.js";

/** How many events are kept that nobody has taken. */
const MOST = 10_000;

/** What happened to a file; `rename` is of its old name. */
export type WatchChange = "create" | "write" | "remove" | "rename" | "chmod" | "overflow";

/** Something that happened to a file. */
export interface WatchEvent {
  /** Its path in the directory that is watched. */
  readonly path: string;
  /** What happened; `overflow`, with an empty path, if there were more events than are kept: look at everything again. */
  readonly change: WatchChange;
  readonly type: FileType;
}

/**
 * What happens in a directory, until `close`, or until the directory or its sandbox is gone:
 *
 * ```ts
 * await using events = await sandbox.files.watch("/work", { recursive: true });
 * for await (const event of events) console.log(event.change, event.path);
 * ```
 */
export class Watch implements AsyncIterable<WatchEvent>, AsyncDisposable {
  readonly #handle: Handle;
  readonly #events: WatchEvent[] = [];
  #wake: (() => void)[] = [];
  #ended = false;
  #failure: WardianError | undefined;
  #id = "";

  private constructor(handle: Handle) {
    this.#handle = handle;
  }

  /** @internal */
  static async start(handle: Handle, params: object, options: CallOptions<Watch>): Promise<Watch> {
    options.signal?.throwIfAborted();
    const watch = new Watch(handle);
    // At once: the next line may be the first one for it.
    const request = handle.send("files.watch", params, undefined, (answer) => watch.#open(answer));
    const undo = () => void watch.close().catch(() => {});
    return await handle.follow(request, false, () => watch, { signal: options.signal, undo });
  }

  #open(answer: Json): void {
    this.#id = field(answer, "watchId", "string");
    this.#handle.connection.watch(this.#id, {
      onEvents: (params) => this.#put(list(params, "events").map(event)),
      onEnd: (params) => {
        const error = optional(params, "error", "string");
        // That the directory is gone is no error.
        const why = `${error}: the directory cannot be watched any more`;
        this.#finish(error === undefined || error === "ENOENT" ? undefined : new SandboxError(why, error));
      },
      onFailure: (failure) => this.#finish(failure),
    });
  }

  #put(events: WatchEvent[]): void {
    for (const event of events) {
      if (this.#events.length < MOST) this.#events.push(event);
      else this.#events[MOST - 1] = { path: "", change: "overflow", type: "dir" };
    }
    this.#notice();
  }

  #finish(failure: WardianError | undefined): void {
    if (!this.#ended) [this.#ended, this.#failure] = [true, failure];
    this.#notice();
  }

  #notice(): void {
    const woken = this.#wake;
    this.#wake = [];
    for (const wake of woken) wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent, void, undefined> {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) {
        yield event;
        continue;
      }
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended) return;
      const release = this.#handle.connection.stayAwake();
      await new Promise<void>((woken) => this.#wake.push(woken));
      release();
    }
  }

  /** Ends it, at once. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#finish(undefined);
    this.#handle.connection.unwatch(this.#id);
    // It may have ended by itself, or its sandbox.
    if (!this.#handle.gone) await this.#handle.call("files.unwatch", { watchId: this.#id }, done).catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function event(told: Json): WatchEvent {
  const change = field(told, "change", "string") as WatchChange;
  return { path: field(told, "path", "string"), change, type: field(told, "type", "string") as FileType };
}
