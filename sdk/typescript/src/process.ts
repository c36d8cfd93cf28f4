/** Processes beside the shell: several at once, each with a handle. */

import { decode, field, list, optional, type Json } from "./answers.js";
import { checkKeys, milliseconds } from "./check.js";
import { toBuffer, type Content } from "./content.js";
import type { WardianError } from "./errors.js";
import type { CallSignal } from "./files.js";
import { done, type Handle } from "./handle.js";
import type { ErrorClass } from "./results.js";

/** How much is written at once; the server takes at most 1 MiB. */
const PIECE = 256 << 10;

/** Where a process writes. */
export type ProcessStream = "stdout" | "stderr" | "pty";

/** A piece of what a process wrote. */
export interface ProcessPiece {
  readonly stream: ProcessStream;
  readonly bytes: Buffer;
}

/** What `process.start` takes. */
export interface ProcessOptions extends CallSignal {
  /** Variables, in addition to those of the sandbox. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where it starts. */
  readonly cwd?: string;
  /** Whether it has a standard input for `write`; otherwise that is empty. */
  readonly stdin?: boolean;
  /** After how long it is killed; 0 or `Infinity` for never, which is the default. */
  readonly timeoutMs?: number;
}

/** What `pty.start` takes. */
export interface PtyOptions extends CallSignal {
  /** A script, or a program and its arguments; an interactive shell if left out. */
  readonly command?: string | readonly string[];
  readonly rows?: number;
  readonly columns?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly timeoutMs?: number;
}

/** How a process ended, and the output that nobody had taken before. */
export interface ProcessResult {
  /** Its exit code; 128 and the signal if one ended it, 124 after its timeout. */
  readonly exitCode: number;
  /** The number of the signal that ended it. */
  readonly signal: number | undefined;
  readonly errorClass: ErrorClass | undefined;
  readonly limit: string | undefined;
  readonly executionTimeMs: number;
  readonly stdout: string;
  readonly stderr: string;
  /** What it wrote to its terminal. */
  readonly pty: string;
}

/** A running process. */
export interface ProcessInfo {
  readonly id: string;
  readonly pid: number;
  /** What it was started with, its beginning. */
  readonly command: string;
  readonly pty: boolean;
}

/**
 * A process that runs beside the shell. Iterating over it yields what it writes, up to its end:
 *
 * ```ts
 * const server = await sandbox.process.start("python3 -m http.server 8000");
 * for await (const piece of server) process[piece.stream].write(piece.bytes);
 * ```
 *
 * While nobody takes its output, it waits to write more than 256 KiB.
 */
export class Process implements AsyncIterable<ProcessPiece>, AsyncDisposable {
  readonly #handle: Handle;
  readonly #pieces: ProcessPiece[] = [];
  #wake: (() => void)[] = [];
  #end: Json | undefined;
  #failure: WardianError | undefined;
  /** Its id in the protocol. */
  readonly id: string;
  /** Its process id in the sandbox. */
  readonly pid: number;

  /** @internal */
  constructor(handle: Handle, answer: Json) {
    this.#handle = handle;
    this.id = field(answer, "processId", "string");
    this.pid = field(answer, "pid", "number");
    handle.connection.listen(this.id, {
      onOutput: (params) => {
        const stream = field(params, "stream", "string") as ProcessStream;
        this.#pieces.push({ stream, bytes: decode(field(params, "data", "string")) });
        this.#notice();
      },
      onExit: (params) => {
        this.#end = params;
        this.#notice();
      },
      onFailure: (failure) => {
        this.#failure = failure;
        this.#notice();
      },
    });
  }

  #notice(): void {
    const woken = this.#wake;
    this.#wake = [];
    for (const wake of woken) wake();
  }

  /** Returns the next piece; undefined at the end. */
  async #next(): Promise<ProcessPiece | undefined> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        // Nobody waits for the answer: it may have ended meanwhile.
        void this.#call("process.ack", { bytes: piece.bytes.length }).catch(() => {});
        return piece;
      }
      if (this.#end !== undefined) return undefined;
      if (this.#failure !== undefined) throw this.#failure;
      const release = this.#handle.connection.stayAwake();
      await new Promise<void>((woken) => this.#wake.push(woken));
      release();
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ProcessPiece, void, undefined> {
    for (;;) {
      const piece = await this.#next();
      if (piece === undefined) return;
      yield piece;
    }
  }

  /** Waits for its end, and returns it with the output that was not taken before. */
  async wait(): Promise<ProcessResult> {
    const taken: Record<ProcessStream, Buffer[]> = { stdout: [], stderr: [], pty: [] };
    for await (const piece of this) taken[piece.stream].push(piece.bytes);
    const text = (stream: ProcessStream) => Buffer.concat(taken[stream]).toString("utf8");
    return {
      exitCode: field(this.#end, "exitCode", "number"),
      signal: optional(this.#end, "signal", "number"),
      errorClass: optional(this.#end, "errorClass", "string") as ErrorClass | undefined,
      limit: optional(this.#end, "limit", "string"),
      executionTimeMs: field(this.#end, "executionTimeMs", "number"),
      stdout: text("stdout"),
      stderr: text("stderr"),
      pty: text("pty"),
    };
  }

  /** Writes to its standard input, or types at its terminal. Waits while too much of that is unread. */
  async write(data: Content): Promise<void> {
    const content = toBuffer(data);
    for (let start = 0; start < content.length; start += PIECE) {
      await this.#call("process.write", { data: content.subarray(start, start + PIECE).toString("base64") });
    }
  }

  /** Closes its standard input. */
  async closeStdin(): Promise<void> {
    await this.#call("process.closeStdin", {});
  }

  /** Sends a signal, such as `"TERM"`, to it and to what it started in its group. */
  async signal(name: string): Promise<void> {
    await this.#call("process.signal", { signal: name });
  }

  /** Kills it and everything it started. */
  async kill(): Promise<void> {
    await this.signal("KILL");
  }

  /** Changes the size of its terminal. */
  async resize(rows: number, columns: number): Promise<void> {
    await this.#call("process.resize", { rows, columns });
  }

  /** Kills it, unless it has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#end === undefined && this.#failure === undefined) await this.kill().catch(() => {});
  }

  async #call(method: string, params: object): Promise<void> {
    await this.#handle.call(method, { ...params, processId: this.id }, done);
  }
}

/** The processes beside the shell. */
export class Processes {
  readonly #handle: Handle;

  /** @internal */
  constructor(handle: Handle) {
    this.#handle = handle;
  }

  /** Starts a script in a fresh `bash`, or a program with arguments. */
  async start(command: string | readonly string[], options: ProcessOptions = {}): Promise<Process> {
    checkKeys("process.start", options, ["env", "cwd", "stdin", "timeoutMs", "signal"]);
    const { env, cwd, stdin } = options;
    return await launch(this.#handle, command, { env, cwd, stdin, timeoutMs: milliseconds(options.timeoutMs) }, options);
  }

  /** Returns those that run. */
  async list(options: CallSignal = {}): Promise<ProcessInfo[]> {
    checkKeys("process.list", options, ["signal"]);
    const read = (answer: Json) =>
      list(answer, "processes").map((one) => ({
        id: field(one, "processId", "string"),
        pid: field(one, "pid", "number"),
        command: field(one, "command", "string"),
        pty: field(one, "pty", "boolean"),
      }));
    return await this.#handle.call("process.list", {}, read, options);
  }
}

/** Processes at a terminal of their own. */
export class Pty {
  readonly #handle: Handle;

  /** @internal */
  constructor(handle: Handle) {
    this.#handle = handle;
  }

  /** Starts a program at a terminal; by default, an interactive shell. */
  async start(options: PtyOptions = {}): Promise<Process> {
    checkKeys("pty.start", options, ["command", "rows", "columns", "env", "cwd", "timeoutMs", "signal"]);
    const { command = ["/bin/bash", "-i"], rows = 24, columns = 80, env, cwd } = options;
    const params = { env, cwd, pty: { rows, columns }, timeoutMs: milliseconds(options.timeoutMs) };
    return await launch(this.#handle, command, params, options);
  }
}

async function launch(
  handle: Handle,
  command: string | readonly string[],
  params: object,
  { signal }: CallSignal,
): Promise<Process> {
  signal?.throwIfAborted();
  const what = typeof command === "string" ? { command } : { argv: command };
  let started: Process | undefined;
  // In the same turn as its response: the next line may be the first one for it.
  const request = handle.send("process.start", { ...what, ...params }, undefined, (answer) => {
    started = new Process(handle, answer);
  });
  const undo = () => void started?.kill().catch(() => {});
  return await handle.follow(request, false, () => started!, { signal, undo });
}
