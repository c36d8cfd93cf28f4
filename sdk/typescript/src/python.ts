/** The result of code in a sandbox's own Python interpreter. */

import { bytes, field, list, member, optional, type Json } from "./answers.js";
import { RunResult } from "./results.js";

/** A value, as it describes itself. */
export interface PythonValue {
  /** `repr()`. */
  readonly repr: string;
  /** `_repr_html_()`, where it has one. */
  readonly html: string | undefined;
  /** `_repr_png_()`. */
  readonly png: Buffer | undefined;
  /** `_repr_json_()`. */
  readonly json: unknown;
}

/** An uncaught exception. */
export interface PythonFailure {
  /** `ValueError`, `json.decoder.JSONDecodeError`. */
  readonly type: string;
  readonly message: string;
  /** What Python prints, line by line. */
  readonly traceback: readonly string[];
}

/** The result of code: that of a command, and its value. */
export class PythonResult extends RunResult {
  /** The value of the last expression, if there is one and it is not `None`. */
  readonly value: PythonValue | undefined;
  /** What was given to `display()`. */
  readonly displays: readonly PythonValue[];
  /** What was raised and not caught; then the exit code is 1. */
  readonly error: PythonFailure | undefined;
  /** Whether a value or a traceback was longer than `limits.stdoutBytes`. */
  readonly valueTruncated: boolean;

  /** @internal */
  constructor(answer: Json) {
    super(answer);
    const value = member(answer, "value");
    this.value = value === undefined || value === null ? undefined : readValue(value);
    this.displays = (member(answer, "displays") ?? null) === null ? [] : list(answer, "displays").map(readValue);
    const error = member(answer, "error");
    this.error = error === undefined || error === null ? undefined : readFailure(error);
    this.valueTruncated = optional(answer, "valueTruncated", "boolean") ?? false;
  }

  /** Returns what happened: the traceback, if there is one. */
  override describe(): string {
    if (this.error === undefined) return super.describe();
    return this.error.traceback.join("\n") || `${this.error.type}: ${this.error.message}`;
  }
}

function readValue(answer: Json): PythonValue {
  return {
    repr: field(answer, "repr", "string"),
    html: optional(answer, "html", "string"),
    png: optional(answer, "png", "string") === undefined ? undefined : bytes(answer, "png"),
    json: member(answer, "json"),
  };
}

function readFailure(answer: Json): PythonFailure {
  return {
    type: field(answer, "type", "string"),
    message: field(answer, "message", "string"),
    traceback: list(answer, "traceback").map(String),
  };
}
