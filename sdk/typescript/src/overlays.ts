/** What a sandbox has changed in an overlay over a directory of the server's machine. */

import { field, list, optional, type Json } from "./answers.js";
import type { FileType } from "./results.js";

/** A difference between an overlay and the directory below it. */
export interface OverlayChange {
  /** The path below the mount. */
  readonly path: string;
  /** Added, modified, deleted, or with other permissions. */
  readonly change: "A" | "M" | "D" | "P";
  /** Of what is deleted, what it was. */
  readonly type: FileType;
  /** Its permission bits, or those it had; undefined for what is modified. */
  readonly mode: number | undefined;
}

/** @internal */
export function overlayChanges(answer: Json): OverlayChange[] {
  return list(answer, "changes").map((one) => ({
    path: field(one, "path", "string"),
    change: field(one, "change", "string") as OverlayChange["change"],
    type: field(one, "type", "string") as FileType,
    mode: optional(one, "mode", "number"),
  }));
}
