/** Saved sandboxes and images, in the store of a sandbox's server. */

import { bytes, field, list, optional, type Json } from "./answers.js";
import { checkKeys } from "./check.js";
import { encode } from "./content.js";
import type { CallSignal } from "./files.js";
import { done, type Handle } from "./handle.js";

/** Under which name a sandbox is saved in the server's store, and when. */
export interface Persistence {
  /** `namespace/name`, or a name in the namespace `default`. */
  readonly name: string;
  /** `persistent`, the default: after every command and call; `session`: by `save` and at its end. */
  readonly mode?: "persistent" | "session";
  /** How long after a change it may be saved; without it, before the call returns. */
  readonly autosaveMs?: number;
  /** After how many seconds without a call it leaves memory, until the next one. */
  readonly idleSeconds?: number;
}

/** A commit, by its number or one of its tags. */
export type CommitLike = number | string;

/** A sandbox in the store. */
export interface SavedSandbox {
  readonly name: string;
  /** How many commits of it are kept. */
  readonly commits: number;
  readonly createdAt: Date;
  /** When it was last saved. */
  readonly changedAt: Date;
  /** Who has it open. */
  readonly holder: string | undefined;
}

/** A saved state of a sandbox, and what led to it. */
export interface Commit {
  readonly id: number;
  readonly parent: number | undefined;
  readonly time: Date;
  /** The command, or what else was done. */
  readonly command: string;
  /** Its exit code, if it was a command. */
  readonly exitCode: number | undefined;
  /** How many bytes were written to the store. */
  readonly bytes: number;
  readonly tags: readonly string[];
}

/** A file that differs between two commits. */
export interface Change {
  readonly path: string;
  /** `A` for added, `M` for modified, `D` for deleted. */
  readonly change: string;
}

/** An image: see the option `image`. */
export interface ImageInfo {
  readonly name: string;
  readonly createdAt: Date;
  /** The script that made it. */
  readonly script: string;
  /** The image that it was made from. */
  readonly base: string | undefined;
  /** The version of Wardian that made it. */
  readonly version: string;
}

/**
 * Checks it, and returns it as the protocol has it.
 * @internal
 */
export function persistenceParams(given: Persistence | undefined): object | undefined {
  if (given === undefined) return undefined;
  checkKeys("persistence", given, ["name", "mode", "autosaveMs", "idleSeconds"]);
  return { ...given, durability: given.autosaveMs === undefined ? undefined : "interval" };
}

/** The sandboxes in the store, by name. */
export class Saved<S> {
  readonly #handle: Handle;
  readonly #opened: (id: string) => S;

  /** @internal */
  constructor(handle: Handle, opened: (id: string) => S) {
    this.#handle = handle;
    this.#opened = opened;
  }

  /** Opens a sandbox as it was last saved, until it is destroyed here; it stays in the store. */
  async open(name: string, options: CallSignal & { idleSeconds?: number } = {}): Promise<S> {
    checkKeys("open", options, ["idleSeconds", "signal"]);
    const params = { name, idleSeconds: options.idleSeconds };
    const read = (answer: Json) => this.#opened(field(answer, "sandboxId", "string"));
    return await this.#handle.ask("sandbox.open", params, read, options);
  }

  /** Returns all of them, sorted by name. */
  async list(options: CallSignal = {}): Promise<SavedSandbox[]> {
    return await this.#call("persistence.sandboxes", {}, (answer) => list(answer, "sandboxes").map(savedSandbox), options);
  }

  /** Returns the commits of a sandbox, newest first: 100 unless `limit` says otherwise, those before `before`. */
  async log(name: string, options: CallSignal & { before?: number; limit?: number } = {}): Promise<Commit[]> {
    checkKeys("log", options, ["before", "limit", "signal"]);
    const params = { name, before: options.before, limit: options.limit };
    return await this.#handle.ask("persistence.log", params, (answer) => list(answer, "commits").map(commit), options);
  }

  /** Returns which files differ between two commits; without a second one, from what was last saved. */
  async diff(name: string, from: CommitLike, to?: CommitLike, options: CallSignal = {}): Promise<Change[]> {
    const params = { name, from: String(from), to: to === undefined ? undefined : String(to) };
    return await this.#call("persistence.diff", params, (answer) => list(answer, "changes").map(change), options);
  }

  /** Creates another sandbox in the store from a commit, or from what was last saved; returns its first commit. */
  async branch(name: string, newName: string, commit?: CommitLike, options: CallSignal = {}): Promise<number> {
    const params = { name, newName, commit: commit === undefined ? undefined : String(commit) };
    return await this.#call("persistence.branch", params, (answer) => field(answer, "commit", "number"), options);
  }

  /** Names a commit, which is then kept. */
  async tag(name: string, tag: string, commit: number, options: CallSignal = {}): Promise<void> {
    await this.#call("persistence.tag", { name, tag, commit: String(commit) }, done, options);
  }

  /** Deletes a sandbox that is not open, with all its commits. */
  async delete(name: string, options: CallSignal = {}): Promise<void> {
    await this.#call("persistence.delete", { name }, done, options);
  }

  async #call<T>(method: string, params: object, read: (answer: Json) => T, options: CallSignal): Promise<T> {
    checkKeys(method, options, ["signal"]);
    return await this.#handle.ask(method, params, read, options);
  }
}

/** The images in the store: values to create sandboxes from. */
export class Images {
  readonly #handle: Handle;

  /** @internal */
  constructor(handle: Handle) {
    this.#handle = handle;
  }

  /** Keeps this sandbox, as it is, as an image. `script` is noted as what made it. */
  async save(name: string, options: CallSignal & { script?: string } = {}): Promise<void> {
    checkKeys("save", options, ["script", "signal"]);
    await this.#handle.call("image.save", { name, script: options.script }, done, options);
  }

  /** Returns all of them, sorted by name. */
  async list(options: CallSignal = {}): Promise<ImageInfo[]> {
    checkKeys("list", options, ["signal"]);
    return await this.#handle.ask("image.list", {}, (answer) => list(answer, "images").map(imageInfo), options);
  }

  /** Returns an image for another store, or has the server write it to a file in its state directory. */
  async export(name: string, options: CallSignal & { file: string }): Promise<undefined>;
  async export(name: string, options?: CallSignal): Promise<Buffer>;
  async export(name: string, options: CallSignal & { file?: string } = {}): Promise<Buffer | undefined> {
    checkKeys("export", options, ["file", "signal"]);
    const { file, signal } = options;
    const read = (answer: Json) => (file === undefined ? bytes(answer, "data") : undefined);
    return await this.#handle.ask("image.export", { name, file }, read, { signal });
  }

  /** Makes an image of an exported one, within the limits of this sandbox. */
  async load(name: string, image: Uint8Array | { readonly file: string }, options: CallSignal = {}): Promise<void> {
    checkKeys("load", options, ["signal"]);
    if (!(image instanceof Uint8Array)) checkKeys("load", image, ["file"]);
    const params = image instanceof Uint8Array ? { name, data: encode(image) } : { name, file: image.file };
    await this.#handle.ask("image.import", params, done, options);
  }

  /** Deletes an image. Sandboxes that were created from it stay as they are. */
  async delete(name: string, options: CallSignal = {}): Promise<void> {
    checkKeys("delete", options, ["signal"]);
    await this.#handle.ask("image.delete", { name }, done, options);
  }
}

function time(answer: Json, name: string): Date {
  return new Date(field(answer, name, "number"));
}

function savedSandbox(answer: Json): SavedSandbox {
  return {
    name: field(answer, "name", "string"),
    commits: field(answer, "commits", "number"),
    createdAt: time(answer, "createdMs"),
    changedAt: time(answer, "changedMs"),
    holder: optional(answer, "holder", "string"),
  };
}

function commit(answer: Json): Commit {
  return {
    id: field(answer, "commit", "number"),
    parent: optional(answer, "parent", "number"),
    time: time(answer, "timeMs"),
    command: field(answer, "command", "string"),
    exitCode: optional(answer, "exitCode", "number"),
    bytes: field(answer, "bytes", "number"),
    tags: list(answer, "tags").map(String),
  };
}

function change(answer: Json): Change {
  return { path: field(answer, "path", "string"), change: field(answer, "change", "string") };
}

function imageInfo(answer: Json): ImageInfo {
  return {
    name: field(answer, "name", "string"),
    createdAt: time(answer, "createdMs"),
    script: field(answer, "script", "string"),
    base: optional(answer, "base", "string"),
    version: field(answer, "version", "string"),
  };
}
