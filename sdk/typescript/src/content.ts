/** File contents: how they are encoded and cut into parts, and how a host directory is read into files for a sandbox. */

import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";

import { checkKeys } from "./check.js";

/** What a file can be written with. Text is written as UTF-8. */
export type Content = string | Uint8Array;

/** The same, or pieces of it, such as a readable stream; the whole need not fit into memory. */
export type Source = Content | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** What can be mounted: a file's content, alone or with its mode, a directory, or a symbolic link. */
export type MountEntry =
  | Content
  | { readonly content: Content; readonly mode?: number }
  | { readonly dir: true; readonly mode?: number }
  /** It is followed in the sandbox, never on the host. */
  | { readonly link: string };

/** What is mounted, by name; a name may have directories in it. */
export type MountFiles = Readonly<Record<string, MountEntry>>;

/**
 * How much of a file is sent in one request.
 * @internal
 */
export const PART = 4 << 20;

/** @internal */
export function encode(content: Content): string {
  return toBuffer(content).toString("base64");
}

/** @internal */
export function encodeMount(files: MountFiles): Record<string, unknown> {
  const encoded: [string, unknown][] = Object.entries(files).map(([name, entry]) => [name, encodeEntry(name, entry)]);
  return Object.fromEntries(encoded);
}

function encodeEntry(name: string, entry: MountEntry): unknown {
  if (typeof entry === "string" || entry instanceof Uint8Array) return encode(entry);
  if ("content" in entry) {
    checkKeys(`the mounted file '${name}'`, entry, ["content", "mode"]);
    return { data: encode(entry.content), mode: entry.mode };
  }
  if ("link" in entry) {
    checkKeys(`the mounted link '${name}'`, entry, ["link"]);
    return { link: entry.link };
  }
  checkKeys(`the mounted directory '${name}'`, entry, ["dir", "mode"]);
  return { dir: entry.dir, mode: entry.mode };
}

/**
 * Cuts a source into parts of at most `PART` bytes; one empty part if there is nothing.
 * @internal
 */
export async function* parts(source: Source): AsyncGenerator<Buffer, void> {
  let some = false;
  for await (const piece of gathered(source)) {
    for (let start = 0; start < piece.length; start += PART) {
      some = true;
      yield piece.subarray(start, start + PART);
    }
  }
  if (!some) yield Buffer.alloc(0);
}

/** Small pieces are gathered: each request takes its time. */
async function* gathered(source: Source): AsyncGenerator<Buffer, void> {
  if (typeof source === "string" || source instanceof Uint8Array) {
    yield toBuffer(source);
    return;
  }
  let held: Buffer[] = [];
  let size = 0;
  for await (const piece of source) {
    if (!(piece instanceof Uint8Array)) throw new TypeError("the pieces of a file must be Uint8Arrays");
    // Copied: the generator that yields it may reuse the memory.
    held.push(Buffer.from(piece));
    size += piece.length;
    if (size >= PART) {
      yield Buffer.concat(held);
      held = [];
      size = 0;
    }
  }
  yield Buffer.concat(held);
}

/** @internal */
export function toBuffer(content: Content): Buffer {
  if (typeof content === "string") {
    if (!content.isWellFormed()) throw new TypeError("the text has half a surrogate pair and cannot be UTF-8");
    return Buffer.from(content, "utf8");
  }
  if (content instanceof Uint8Array) return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  throw new TypeError("content must be a string or a Uint8Array");
}

/**
 * Returns what is below a host directory, by its path in it, to mount it.
 *
 * Files and directories keep their permission bits; symbolic links stay links, neither read nor followed on the host.
 * `keep` is called for each path (`"src/main.ts"`), directories included, so that `.git` need not be read. Sockets,
 * pipes and devices are left out.
 */
export async function readDirectory(
  directory: string,
  keep: (path: string) => boolean = () => true,
): Promise<Record<string, MountEntry>> {
  // Entries first: a file may be called `__proto__`.
  const files: [string, MountEntry][] = [];
  const waiting = [""];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    for (const name of (await readdir(join(directory, place))).sort()) {
      const below = place === "" ? name : `${place}/${name}`;
      if (!keep(below)) continue;
      const path = join(directory, below);
      const status = await lstat(path);
      const mode = status.mode & 0o777;
      if (status.isSymbolicLink()) files.push([below, { link: await readlink(path) }]);
      else if (status.isFile()) files.push([below, { content: await readFile(path), mode }]);
      else if (status.isDirectory()) {
        files.push([below, { dir: true, mode }]);
        waiting.push(below);
      }
    }
  }
  return Object.fromEntries(files);
}
