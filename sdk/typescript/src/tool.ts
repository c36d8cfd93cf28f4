/**
 * A sandbox as a tool for a language model.
 *
 * A `ShellTool` has the schema to send with a request and answers the calls that come back, as plain objects: no vendor
 * package is needed. Whatever the model asks for, it gets a reply: failing commands, arguments that do not match the
 * schema and limits are reported to the model, not thrown. A server that died is thrown.
 */

import { checkKeys } from "./check.js";
import { InvalidRequestError, RequestTooLargeError, SandboxError } from "./errors.js";
import type { RunResult } from "./results.js";
import type { Sandbox } from "./sandbox.js";

const DESCRIPTION =
  "Runs a script in a sandbox with a bash-compatible shell, the usual Unix tools and an in-memory file system. " +
  "Shell state persists between calls: variables, functions and the working directory. " +
  "Returns standard output and standard error, in the order they were written, and the exit code.";

/** What `ShellTool` takes. */
export interface ShellToolOptions {
  /** The tool's name for the model; `shell` if left out. */
  readonly name?: string;
  /** The tool's description for the model. */
  readonly description?: string;
  /** The longest timeout, whatever the model asks for, and the default; 30,000 if left out. */
  readonly maxTimeoutMs?: number;
  /** How many characters of output the model is shown; 20,000 if left out. */
  readonly maxOutput?: number;
  /** Whether shell options and traps end with the command that set them; true if left out. */
  readonly contained?: boolean;
}

/** What the model is told. */
export interface ToolAnswer {
  readonly content: string;
  /** Whether the command or the call failed. */
  readonly isError: boolean;
}

/** The tool over a sandbox. */
export class ShellTool {
  readonly name: string;
  readonly description: string;
  readonly #sandbox: Sandbox;
  readonly #maxTimeoutMs: number;
  readonly #maxOutput: number;
  readonly #contained: boolean;

  constructor(sandbox: Sandbox, options: ShellToolOptions = {}) {
    checkKeys("ShellTool", options, ["name", "description", "maxTimeoutMs", "maxOutput", "contained"]);
    this.#sandbox = sandbox;
    this.name = options.name ?? "shell";
    this.description = options.description ?? DESCRIPTION;
    this.#maxTimeoutMs = options.maxTimeoutMs ?? 30_000;
    this.#maxOutput = options.maxOutput ?? 20_000;
    this.#contained = options.contained ?? true;
  }

  /** The JSON schema of the tool's arguments. */
  get parameters() {
    const longest = this.#maxTimeoutMs / 1000;
    return {
      type: "object" as const,
      properties: {
        command: { type: "string" as const, description: "The script to run." },
        timeout: {
          type: "number" as const,
          description: `Timeout in seconds; ${longest} is the maximum and the default.`,
        },
      },
      required: ["command"],
      additionalProperties: false as const,
    };
  }

  /** Runs what a model asked for: an object, or the text of one. */
  async call(given: unknown, signal?: AbortSignal): Promise<ToolAnswer> {
    try {
      const { command, timeoutMs } = this.#read(given);
      const options = { timeoutMs, contained: this.#contained, ...(signal === undefined ? {} : { signal }) };
      const result = await this.#sandbox.run(command, options);
      return { content: this.describe(result), isError: !result.ok };
    } catch (error) {
      if (!REFUSALS.some((kind) => error instanceof kind)) throw error;
      return { content: `error: ${(error as Error).message}`, isError: true };
    }
  }

  /** Answers a `tool_use` block of Anthropic's Messages API with the `tool_result` block for the next message. */
  async anthropicResult(block: { readonly id: string; readonly name: string; readonly input: unknown }, signal?: AbortSignal) {
    const { content, isError } = block.name === this.name ? await this.call(block.input, signal) : this.#noSuch(block.name);
    return { type: "tool_result" as const, tool_use_id: block.id, content, is_error: isError };
  }

  /** Answers a `function_call` item of OpenAI's Responses API with its `function_call_output`. */
  async openaiResult(item: { readonly call_id: string; readonly name: string; readonly arguments: string }, signal?: AbortSignal) {
    const { content } = item.name === this.name ? await this.call(item.arguments, signal) : this.#noSuch(item.name);
    return { type: "function_call_output" as const, call_id: item.call_id, output: content };
  }

  /** The tool, as an entry of `tools` in Anthropic's Messages API. */
  anthropicSchema() {
    return { name: this.name, description: this.description, input_schema: this.parameters };
  }

  /** The tool, as an entry of `tools` in OpenAI's Responses API. */
  openaiSchema() {
    const { name, description, parameters } = this;
    return { type: "function" as const, name, description, parameters, strict: false as const };
  }

  /** Describes a result for the model: the output, then what it needs to know to interpret it. */
  describe(result: RunResult): string {
    const told: string[] = [];
    if (result.output !== "") told.push(this.#shorten(result.output).replace(/\n+$/, ""));
    const cut = (["stdout", "stderr"] as const).filter((name) => result.truncated[name]);
    // The place is marked in the output, but may be in what is left out of it here.
    if (cut.length > 0) told.push(`[${cut.join(" and ")} longer than its limit: only the beginning was kept]`);
    const notes = [`exit code ${result.exitCode}`];
    if (result.errorClass !== undefined) notes.push(result.errorClass);
    if (result.limit !== undefined) notes.push(`limit reached: ${result.limit}`);
    return [...told, `[${notes.join(", ")}]`].join("\n");
  }

  #read(given: unknown): { command: string; timeoutMs: number } {
    const asked = typeof given === "string" ? parse(given) : given;
    if (typeof asked !== "object" || asked === null) throw new TypeError("the arguments must be an object");
    const { command, timeout } = asked as { command?: unknown; timeout?: unknown };
    if (typeof command !== "string") throw new TypeError("the arguments must have a string 'command'");
    checkKeys(this.name, asked, ["command", "timeout"]);
    if (timeout === undefined || timeout === null) return { command, timeoutMs: this.#maxTimeoutMs };
    if (typeof timeout !== "number" || !(timeout > 0)) {
      throw new TypeError("'timeout' must be a positive number of seconds");
    }
    return { command, timeoutMs: Math.min(timeout * 1000, this.#maxTimeoutMs) };
  }

  #noSuch(name: string): ToolAnswer {
    return { content: `error: there is no tool called '${name}', only '${this.name}'`, isError: true };
  }

  /** The beginning and the end of a text that is too long, and how much is missing. */
  #shorten(text: string): string {
    const missing = text.length - this.#maxOutput;
    if (missing <= 0) return text;
    const half = Math.floor(this.#maxOutput / 2);
    const [head, tail] = [text.slice(0, half), text.slice(text.length - (this.#maxOutput - half))];
    return `${head}\n[… ${missing} characters left out …]\n${tail}`;
  }
}

/** What is the call's fault, and therefore told to the model. */
const REFUSALS = [TypeError, SyntaxError, InvalidRequestError, RequestTooLargeError, SandboxError];

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SyntaxError(`the arguments are not JSON: ${(error as Error).message}`);
  }
}
