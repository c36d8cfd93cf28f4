/** The results of calls. */

import { bytes, field, list, member, optional, type Json } from "./answers.js";
import { CommandError, CommandTimeoutError } from "./errors.js";

/** How much of standard error an error shows. */
const SHOWN = 2000;

/** The name of an output stream. */
export type StreamName = "stdout" | "stderr";

/** Why a run ended other than by itself, or what it was refused. */
export type ErrorClass = "TIMEOUT" | "CANCELLED" | "LIMIT_EXCEEDED" | "CAPABILITY_DENIED";

/** A file of the sandbox with the output of a run. */
export interface OutputFile {
  /** Its absolute path. */
  readonly path: string;
  /** How many bytes of the output it has. */
  readonly bytes: number;
  /** Why the rest is not in it, such as `"ENOSPC"`; undefined if it has everything. */
  readonly error: string | undefined;
}

/** The result of a command. */
export class RunResult {
  /** The script's exit code; 124 after a timeout, 125 when it was cancelled. */
  readonly exitCode: number;
  /** Standard output as it was written, up to `limits.stdoutBytes`. */
  readonly stdoutBytes: Buffer;
  /** Standard error as it was written, up to `limits.stderrBytes`. */
  readonly stderrBytes: Buffer;
  /** Both streams in the order in which they were written, each up to its limit. Where one was cut, a line says so. */
  readonly outputBytes: Buffer;
  /** How long it ran. */
  readonly executionTimeMs: number;
  /** How long of that it waited for Wardian's programs to be compiled, once per machine; not part of the timeout. */
  readonly waitedMs: number;
  /** Which output was longer than its limit. */
  readonly truncated: Readonly<Record<StreamName, boolean>>;
  /** Why it ended or what it was refused, where that applies. */
  readonly errorClass: ErrorClass | undefined;
  /**
   * The limit that ended a process, or else the first it ran into, such as `"stdoutBytes"`; without one, no limit changed
   * the result.
   */
  readonly limit: string | undefined;
  /** Where all of its output is, if `outputFile` was given. */
  readonly outputFile: OutputFile | undefined;

  /** @internal */
  constructor(answer: Json) {
    this.exitCode = field(answer, "exitCode", "number");
    this.stdoutBytes = bytes(answer, "stdout");
    this.stderrBytes = bytes(answer, "stderr");
    this.outputBytes = bytes(answer, "output");
    this.executionTimeMs = field(answer, "executionTimeMs", "number");
    this.waitedMs = optional(answer, "waitedMs", "number") ?? 0;
    const truncated = member(answer, "truncated") ?? {};
    this.truncated = {
      stdout: optional(truncated, "stdout", "boolean") ?? false,
      stderr: optional(truncated, "stderr", "boolean") ?? false,
    };
    this.errorClass = optional(answer, "errorClass", "string") as ErrorClass | undefined;
    this.limit = optional(answer, "limit", "string");
    this.outputFile = outputFile(member(answer, "outputFile"));
  }

  /** Standard output as text; bytes that are not UTF-8 become U+FFFD. */
  get stdout(): string {
    return this.stdoutBytes.toString("utf8");
  }

  /** Standard error as text; bytes that are not UTF-8 become U+FFFD. */
  get stderr(): string {
    return this.stderrBytes.toString("utf8");
  }

  /** Both streams in order, as text. */
  get output(): string {
    return this.outputBytes.toString("utf8");
  }

  /** Whether it exited with 0, in time and with nothing refused. */
  get ok(): boolean {
    return this.exitCode === 0 && this.errorClass === undefined;
  }

  /** Whether it timed out. */
  get timedOut(): boolean {
    return this.errorClass === "TIMEOUT";
  }

  /** Whether it was cancelled. */
  get cancelled(): boolean {
    return this.errorClass === "CANCELLED";
  }

  /** Returns itself if it is `ok`; else throws `CommandError` (`CommandTimeoutError`). */
  check(): this {
    if (this.ok) return this;
    throw this.timedOut ? new CommandTimeoutError(this) : new CommandError(this);
  }

  /** Returns what happened in one line, and the end of standard error. */
  describe(): string {
    const why = this.errorClass === undefined ? "" : `, ${this.errorClass}`;
    const what = `the command exited with ${this.exitCode}${why}`;
    const said = this.stderr.trim();
    if (said === "") return what;
    return `${what}: ${said.length > SHOWN ? `…${said.slice(-SHOWN)}` : said}`;
  }
}

function outputFile(file: Json): OutputFile | undefined {
  if (file === undefined || file === null) return undefined;
  const error = optional(file, "error", "string");
  return { path: field(file, "path", "string"), bytes: field(file, "bytes", "number"), error };
}

/** A piece of output. */
export class Piece {
  constructor(
    /** Which stream it was written to. */
    readonly stream: StreamName,
    /** The piece as it was written, never split inside a character. */
    readonly bytes: Buffer,
  ) {}

  /** The piece as text; bytes that are not UTF-8 become U+FFFD. */
  get data(): string {
    return this.bytes.toString("utf8");
  }
}

/** What a directory can have in it. */
export type FileType = "file" | "dir" | "symlink";

/** An entry of a directory. */
export interface FileEntry {
  readonly name: string;
  readonly type: FileType;
  readonly size: number;
}

/** A file's metadata. */
export interface FileStat extends FileEntry {
  /** The permission bits. */
  readonly mode: number;
  /** When it was last written, in milliseconds since 1970. */
  readonly mtimeMs: number;
}

/** A command that was run. */
export interface HistoryEntry {
  readonly index: number;
  readonly command: string;
  /** When it was run, as the server tells it. */
  readonly timestamp: number;
}

/** A sandbox of the server, as listed by `siblings()`. */
export interface SandboxInfo {
  readonly id: string;
  readonly label: string;
  readonly createdAt: Date;
}

/** @internal */
export function fileEntry(answer: Json): FileEntry {
  return {
    name: field(answer, "name", "string"),
    type: field(answer, "type", "string") as FileType,
    size: field(answer, "size", "number"),
  };
}

/** @internal */
export function fileStat(answer: Json): FileStat {
  const mode = field(answer, "mode", "number");
  return { ...fileEntry(answer), mode, mtimeMs: field(answer, "mtimeMs", "number") };
}

/** @internal */
export function history(answer: Json): HistoryEntry[] {
  return list(answer, "entries").map((entry) => ({
    index: field(entry, "index", "number"),
    command: field(entry, "command", "string"),
    timestamp: field(entry, "timestamp", "number"),
  }));
}

/** @internal */
export function sandboxInfo(answer: Json): SandboxInfo {
  return {
    id: field(answer, "sandboxId", "string"),
    label: optional(answer, "label", "string") ?? "",
    createdAt: new Date(field(answer, "createdAt", "string")),
  };
}
