/** How the server's answers are read: each field is checked, and one of the wrong type is a `ProtocolError`. */

import { ProtocolError } from "./errors.js";

/** An answer, or a part of one. */
export type Json = unknown;

interface Kinds {
  string: string;
  number: number;
  boolean: boolean;
}

/** Returns a field that must have this type. */
export function field<K extends keyof Kinds>(answer: Json, name: string, kind: K): Kinds[K] {
  const value = member(answer, name);
  if (typeof value !== kind) throw unexpected(name, value);
  return value as Kinds[K];
}

/** Returns a field that may be absent. */
export function optional<K extends keyof Kinds>(answer: Json, name: string, kind: K): Kinds[K] | undefined {
  const value = member(answer, name);
  return value === undefined || value === null ? undefined : field(answer, name, kind);
}

/** Returns a field that must be a list. */
export function list(answer: Json, name: string): Json[] {
  const value = member(answer, name);
  if (!Array.isArray(value)) throw unexpected(name, value);
  return value as Json[];
}

/** Returns a field of any type. */
export function member(answer: Json, name: string): Json {
  if (typeof answer !== "object" || answer === null) throw unexpected("the answer", answer);
  return (answer as Record<string, Json>)[name];
}

/** Returns a field that holds base64, decoded. */
export function bytes(answer: Json, name: string): Buffer {
  return decode(field(answer, name, "string"));
}

/** Decodes base64. */
export function decode(data: string): Buffer {
  const decoded = Buffer.from(data, "base64");
  // Node skips what is not base64; a server that sends it is broken.
  if (data.length !== Math.ceil(decoded.length / 3) * 4) throw new ProtocolError("the server sent invalid base64");
  return decoded;
}

function unexpected(name: string, value: Json): ProtocolError {
  const shown = JSON.stringify(value) ?? "missing";
  return new ProtocolError(`unexpected response: ${name} is ${shown.slice(0, 200)}`);
}
