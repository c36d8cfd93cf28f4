/** Bytes into lines. */

const END = 10;

/**
 * Gathers chunks and hands out whole lines, up to a length.
 * @internal
 */
export class Lines {
  #held: Buffer[] = [];
  #size = 0;

  constructor(
    readonly longest: number,
    readonly onLine: (line: Buffer) => void,
    readonly onTooLong: () => void,
  ) {}

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(END); end !== -1; end = chunk.indexOf(END, start)) {
      this.#held.push(chunk.subarray(start, end));
      const line = this.#held.length === 1 ? this.#held[0]! : Buffer.concat(this.#held);
      this.#held = [];
      this.#size = 0;
      start = end + 1;
      this.onLine(line);
    }
    if (start === chunk.length) return;
    this.#held.push(chunk.subarray(start));
    this.#size += chunk.length - start;
    if (this.#size > this.longest) {
      this.#held = [];
      this.#size = 0;
      this.onTooLong();
    }
  }
}
