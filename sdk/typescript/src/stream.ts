/** A command's output as it arrives. */

import type { Json } from "./answers.js";
import type { Request } from "./connection.js";
import type { Handle } from "./handle.js";
import { Pieces } from "./pieces.js";
import type { Piece } from "./results.js";

/** How much output waits to be taken before the guest has to. */
const MARK = 256 << 10;

/**
 * A command's output, piece by piece in the order in which it was written, and then its result:
 *
 * ```ts
 * await using stream = sandbox.runStream("make");
 * for await (const piece of stream) process[piece.stream].write(piece.bytes);
 * console.log((await stream.result()).exitCode);
 * ```
 *
 * If the pieces are not taken, the command waits. Leaving the loop early cancels it.
 */
export class RunStream<R> implements AsyncIterableIterator<Piece>, AsyncDisposable {
  readonly #handle: Handle;
  readonly #request: Request;
  readonly #result: Promise<R>;
  readonly #pieces = new Pieces();
  #wake: (() => void) | undefined;
  #settled = false;
  #behind = false;
  /** Whether what comes is dropped. */
  #dropping = false;

  /** @internal */
  constructor(handle: Handle, method: string, params: object, read: (answer: Json) => R, signal: AbortSignal | undefined) {
    signal?.throwIfAborted();
    this.#handle = handle;
    this.#request = handle.send(method, { ...params, stream: true }, (stream, data) => {
      if (this.#dropping) return;
      this.#pieces.put(stream, data);
      this.#notice();
    });
    this.#result = handle.follow(this.#request, true, read, { signal });
    const settle = () => {
      this.#settled = true;
      this.#notice();
    };
    this.#result.then(settle, settle);
  }

  #notice(): void {
    this.#setBehind(!this.#dropping && this.#pieces.size >= MARK);
    this.#wake?.();
    this.#wake = undefined;
  }

  #setBehind(behind: boolean): void {
    if (behind === this.#behind) return;
    this.#behind = behind;
    this.#handle.connection.setBehind(this.#request, behind);
  }

  /** Returns the next piece; throws what the run failed with, once all pieces were taken. */
  async next(): Promise<IteratorResult<Piece, undefined>> {
    for (;;) {
      const piece = this.#pieces.take();
      if (piece !== undefined) {
        if (this.#pieces.size < MARK / 2) this.#setBehind(false);
        return { done: false, value: piece };
      }
      if (this.#settled) {
        await this.#result;
        return { done: true, value: undefined };
      }
      await new Promise<void>((woken) => {
        const others = this.#wake;
        this.#wake = () => {
          others?.();
          woken();
        };
      });
    }
  }

  /** Cancels the command, unless it has finished, and waits until it has. `for await` does that when it is left. */
  async return(): Promise<IteratorResult<Piece, undefined>> {
    this.#drop();
    this.#handle.abandon(this.#request, true);
    await this.#request.answer.catch(() => {});
    return { done: true, value: undefined };
  }

  /** Returns the command's result when it has finished. Drops pieces that were not taken; the result contains them. */
  async result(): Promise<R> {
    this.#drop();
    return await this.#result;
  }

  #drop(): void {
    this.#dropping = true;
    while (this.#pieces.take() !== undefined);
    this.#notice();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Cancels the command, unless it has finished. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}
