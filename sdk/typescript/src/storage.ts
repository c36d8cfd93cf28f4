/** Where `offload` puts a sandbox's state, and `rehydrate` gets it back from. */

import { decode, field, type Json } from "./answers.js";

/** A place of yours for states. */
export interface Storage {
  /** Saves a sandbox's state. It has been saved when this returns. */
  save(sandboxId: string, state: Buffer): Promise<void> | void;
  /** Returns the state that was saved last for this sandbox. */
  load(sandboxId: string): Promise<Uint8Array> | Uint8Array;
}

/**
 * Answers `storage.save` and `storage.load`.
 * @internal
 */
export async function answerStorage(storage: Storage, method: string, params: Json): Promise<unknown> {
  const id = field(params, "sandbox_id", "string");
  if (method === "storage.save") {
    await storage.save(id, decode(field(params, "state", "string")));
    return { ok: true };
  }
  return Buffer.from(await storage.load(id)).toString("base64");
}
