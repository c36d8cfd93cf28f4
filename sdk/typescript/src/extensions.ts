/**
 * Your functions as commands in the sandbox.
 *
 * A function becomes the program `/usr/bin/NAME`, which pipes, `xargs` and `type` see like any other:
 *
 * ```ts
 * const sandbox = await Sandbox.create({
 *   extensions: { weather: ([city]) => `${city}: rain\n` },
 * });
 * await sandbox.run("weather Bergen | tr a-z A-Z");
 * ```
 */

import { field, list, member, type Json } from "./answers.js";
import { checkKeys } from "./check.js";

/** What comes with a command line, in addition to its arguments. */
export interface ExtensionCall {
  /** Standard input, as text. */
  readonly stdin: string;
  /** The command's variables. */
  readonly env: Readonly<Record<string, string>>;
  /** The directory it was called in. */
  readonly cwd: string;
}

/** The result of a call; what is left out is empty, or 0. */
export interface ExtensionResult {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exitCode?: number;
}

/**
 * A function as a command. It returns its standard output, nothing, or an `ExtensionResult`. An error that it throws
 * becomes exit code 1 and a line on standard error. It runs under the command's timeout: after that the sandbox no
 * longer waits for it.
 */
export type ExtensionFunction = (
  args: string[],
  call: ExtensionCall,
) => string | ExtensionResult | undefined | void | Promise<string | ExtensionResult | undefined | void>;

/** A function and its description in `NAME --help` and `extensions list`. */
export interface Extension {
  readonly run: ExtensionFunction;
  readonly description?: string;
  readonly usage?: string;
  readonly examples?: readonly string[];
  readonly category?: string;
  /** A package for the sandbox's Python: `files` has its sources by path. */
  readonly pythonPackage?: {
    readonly version?: string;
    readonly summary?: string;
    readonly files: Readonly<Record<string, string>>;
  };
}

/** Commands by name. */
export type Extensions = Readonly<Record<string, ExtensionFunction | Extension>>;

const FIELDS = ["run", "description", "usage", "examples", "category", "pythonPackage"];

/**
 * The commands of a server.
 * @internal
 */
export class Commands {
  readonly #byName = new Map<string, Extension>();

  constructor(given: Extensions = {}) {
    for (const [name, one] of Object.entries(given)) {
      const extension = typeof one === "function" ? { run: one } : one;
      checkKeys(`the extension '${name}'`, extension, FIELDS);
      if (typeof extension.run !== "function") throw new TypeError(`the extension '${name}' has no function 'run'`);
      this.#byName.set(name, extension);
    }
  }

  /** Returns their protocol representation. */
  specs(): object[] {
    return [...this.#byName].map(([name, { run: _, ...rest }]) => ({
      ...{ name, description: "", usage: `${name} [ARGUMENT…]`, examples: [], category: "", hasCommand: true },
      ...rest,
    }));
  }

  /** Answers `extension.invoke`, whatever the function does. */
  async invoke(params: Json): Promise<ExtensionResult> {
    const name = field(params, "name", "string");
    const extension = this.#byName.get(name);
    if (extension === undefined) return { stderr: `no extension is called '${name}'\n`, exitCode: 127 };
    try {
      const call = {
        stdin: field(params, "stdin", "string"),
        env: member(params, "env") as Record<string, string>,
        cwd: field(params, "cwd", "string"),
      };
      return readResult(await extension.run(list(params, "args").map(String), call));
    } catch (error) {
      return { stderr: `${name}: ${describe(error)}\n`, exitCode: 1 };
    }
  }
}

function readResult(returned: unknown): ExtensionResult {
  if (returned === undefined || returned === null) return {};
  if (typeof returned === "string") return { stdout: returned };
  if (typeof returned !== "object") throw new TypeError(`returned a ${typeof returned}, not text or an ExtensionResult`);
  checkKeys("its result", returned, ["stdout", "stderr", "exitCode"]);
  return returned;
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
