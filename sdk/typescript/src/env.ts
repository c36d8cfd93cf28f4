/** A sandbox's variables. */

import { field, member, optional } from "./answers.js";
import { checkKeys } from "./check.js";
import type { CallSignal } from "./files.js";
import { done, type Handle } from "./handle.js";

/** The shell's variables. These calls wait for a command in progress. */
export class Env {
  readonly #handle: Handle;

  /** @internal */
  constructor(handle: Handle) {
    this.#handle = handle;
  }

  /** Returns a variable's value, if it is set. */
  async get(name: string, options: CallSignal = {}): Promise<string | undefined> {
    checkKeys("env.get", options, ["signal"]);
    return await this.#handle.call("env.get", { name }, (answer) => optional(answer, "value", "string"), options);
  }

  /** Sets and exports a variable. */
  async set(name: string, value: string, options: CallSignal = {}): Promise<void> {
    checkKeys("env.set", options, ["signal"]);
    await this.#handle.call("env.set", { name, value }, done, options);
  }

  /** Removes a variable. */
  async unset(name: string, options: CallSignal = {}): Promise<void> {
    checkKeys("env.unset", options, ["signal"]);
    await this.#handle.call("env.unset", { name }, done, options);
  }

  /** Returns all exported variables. */
  async all(options: CallSignal = {}): Promise<Record<string, string>> {
    checkKeys("env.all", options, ["signal"]);
    const read = (answer: unknown) => {
      const variables = member(answer, "variables") as object;
      return Object.fromEntries(Object.keys(variables).map((name) => [name, field(variables, name, "string")]));
    };
    return await this.#handle.call("env.list", {}, read, options);
  }
}
