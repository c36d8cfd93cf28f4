/** A sandbox's files. */

import { bytes, field, list } from "./answers.js";
import { checkKeys } from "./check.js";
import { encode, PART, parts, type Source } from "./content.js";
import { SandboxError } from "./errors.js";
import { done, type Handle } from "./handle.js";
import { fileEntry, fileStat, type FileEntry, type FileStat } from "./results.js";
import { Watch } from "./watch.js";

/** What every call takes. */
export interface CallSignal {
  /** Gives up the call. What was sent may still be done. */
  readonly signal?: AbortSignal;
}

/** What `files.write` takes. */
export interface WriteOptions extends CallSignal {
  /** The permission bits. */
  readonly mode?: number;
}

/** What `files.list` takes. */
export interface ListOptions extends CallSignal {
  /** Everything below the directory, by its path in it. */
  readonly recursive?: boolean;
}

/**
 * A sandbox's files. These calls act immediately, even while a command runs. Relative paths start from the shell's
 * directory, as the last command left it.
 */
export class Files {
  readonly #handle: Handle;

  /** @internal */
  constructor(handle: Handle) {
    this.#handle = handle;
  }

  /** Reads a file, however long. One of up to 4 MiB is read at one moment. */
  async read(path: string, options: CallSignal = {}): Promise<Buffer> {
    const read: Buffer[] = [];
    for await (const part of this.readParts(path, options)) read.push(part);
    return read.length === 1 ? read[0]! : Buffer.concat(read);
  }

  /** Reads a file as text, which must be UTF-8. */
  async readText(path: string, options: CallSignal = {}): Promise<string> {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await this.read(path, options));
  }

  /** Reads a file part by part, for one that is too long for memory. */
  async *readParts(path: string, options: CallSignal = {}): AsyncGenerator<Buffer, void> {
    checkKeys("files.read", options, ["signal"]);
    let offset = 0;
    for (;;) {
      const part = await this.#handle.call(
        "files.read",
        { path, offset, length: PART },
        (answer) => ({ data: bytes(answer, "data"), size: field(answer, "size", "number") }),
        options,
      );
      offset += part.data.length;
      if (part.data.length > 0) yield part.data;
      // A file of the kernel's own has no size; it ends where nothing comes.
      if (part.data.length === 0 || (part.size > 0 && offset >= part.size)) return;
    }
  }

  /**
   * Writes a file, and creates missing directories on the way. Text is encoded as UTF-8; pieces are sent part by part.
   * Up to 4 MiB are written at once or not at all.
   */
  async write(path: string, content: Source, options: WriteOptions = {}): Promise<void> {
    checkKeys("files.write", options, ["mode", "signal"]);
    let offset = 0;
    for await (const part of parts(content)) {
      const place = offset === 0 ? {} : { offset };
      const params = { path, data: encode(part), parents: true, mode: options.mode, ...place };
      await this.#handle.call("files.write", params, done, options);
      offset += part.length;
    }
  }

  /** Lists a directory, sorted by name. */
  async list(path = ".", options: ListOptions = {}): Promise<FileEntry[]> {
    checkKeys("files.list", options, ["recursive", "signal"]);
    const params = { path, recursive: options.recursive };
    return await this.#handle.call("files.list", params, (answer) => list(answer, "entries").map(fileEntry), options);
  }

  /** Renames a file or a directory; replaces a file that is there. */
  async rename(path: string, to: string, options: CallSignal = {}): Promise<void> {
    checkKeys("files.rename", options, ["signal"]);
    await this.#handle.call("files.rename", { path, to }, done, options);
  }

  /** Copies a file with its permissions. */
  async copy(path: string, to: string, options: CallSignal = {}): Promise<void> {
    checkKeys("files.copy", options, ["signal"]);
    await this.#handle.call("files.copy", { path, to }, done, options);
  }

  /** Sets permission bits. */
  async chmod(path: string, mode: number, options: CallSignal = {}): Promise<void> {
    checkKeys("files.chmod", options, ["signal"]);
    await this.#handle.call("files.chmod", { path, mode }, done, options);
  }

  /** Creates a symbolic link at `path` that leads to `target`. */
  async symlink(path: string, target: string, options: CallSignal = {}): Promise<void> {
    checkKeys("files.symlink", options, ["signal"]);
    await this.#handle.call("files.symlink", { path, target }, done, options);
  }

  /** Tells of what changes in a directory from now on; with `recursive`, of everything below it. */
  async watch(path: string, options: ListOptions = {}): Promise<Watch> {
    checkKeys("files.watch", options, ["recursive", "signal"]);
    return await Watch.start(this.#handle, { path, recursive: options.recursive }, { signal: options.signal });
  }

  /** Returns a file's metadata. */
  async stat(path: string, options: CallSignal = {}): Promise<FileStat> {
    checkKeys("files.stat", options, ["signal"]);
    return await this.#handle.call("files.stat", { path }, fileStat, options);
  }

  /** Returns whether there is something at a path, including a link that leads nowhere. */
  async exists(path: string, options: CallSignal = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (error) {
      if (error instanceof SandboxError && (error.errno === "ENOENT" || error.errno === "ENOTDIR")) return false;
      throw error;
    }
  }

  /** Creates a directory and missing parents. */
  async mkdir(path: string, options: CallSignal = {}): Promise<void> {
    checkKeys("files.mkdir", options, ["signal"]);
    await this.#handle.call("files.mkdir", { path }, done, options);
  }

  /** Removes a file, or a directory recursively. */
  async remove(path: string, options: CallSignal = {}): Promise<void> {
    checkKeys("files.remove", options, ["signal"]);
    await this.#handle.call("files.rm", { path }, done, options);
  }
}
