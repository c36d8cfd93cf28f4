/**
 * Pieces of output that wait to be taken, in as little memory as they need.
 *
 * A guest may write a million single bytes, to both streams by turns. As a million objects they would take a hundred
 * times the memory of the output itself; here a piece takes its bytes and one number.
 */

import { Piece, type StreamName } from "./results.js";

/** How many bytes of pieces are kept together, and freed together. */
const BLOCK = 1 << 16;
const STREAMS: readonly StreamName[] = ["stdout", "stderr"];

interface Block {
  readonly data: Buffer;
  used: number;
  /** For each piece its length and stream, in one number. */
  readonly pieces: number[];
  taken: number;
  at: number;
}

/**
 * A queue of pieces.
 * @internal
 */
export class Pieces {
  readonly #blocks: Block[] = [];
  /** How many bytes wait. */
  size = 0;

  put(stream: StreamName, data: Buffer): void {
    let block = this.#blocks.at(-1);
    if (block === undefined || block.data.length - block.used < data.length) {
      block = { data: Buffer.allocUnsafe(Math.max(BLOCK, data.length)), used: 0, pieces: [], taken: 0, at: 0 };
      this.#blocks.push(block);
    }
    data.copy(block.data, block.used);
    block.used += data.length;
    block.pieces.push(data.length * 2 + STREAMS.indexOf(stream));
    this.size += data.length;
  }

  /** Takes the first, if there is one. */
  take(): Piece | undefined {
    const block = this.#blocks[0];
    const number = block?.pieces[block.taken];
    if (block === undefined || number === undefined) return undefined;
    const length = Math.floor(number / 2);
    // Copied, so that who keeps a piece does not keep its block.
    const data = Buffer.from(block.data.subarray(block.at, block.at + length));
    block.taken += 1;
    block.at += length;
    this.size -= length;
    if (block.taken === block.pieces.length) this.#blocks.shift();
    return new Piece(number % 2 === 0 ? "stdout" : "stderr", data);
  }
}
