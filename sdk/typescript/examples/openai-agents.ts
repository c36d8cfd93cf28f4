/**
 * A sandbox as a tool of the OpenAI Agents SDK (package `@openai/agents`):
 *
 * ```ts
 * import { Agent, run, tool } from "@openai/agents";
 *
 * const agent = new Agent({ name: "Assistant", tools: [shellTool(sandbox, tool)] });
 * console.log((await run(agent, task)).finalOutput);
 * ```
 */

import { Sandbox, ShellTool } from "wardian";

import { isMain, load, LOG, TASK } from "./shared.js";

/** What is given to the vendor's `tool`. */
export interface Definition {
  readonly name: string;
  readonly description: string;
  readonly parameters: any;
  readonly strict: false;
  readonly execute: (input: unknown, context?: unknown, details?: { readonly signal?: AbortSignal }) => Promise<string>;
}

/** The tool. `tool` is the function of that name in `@openai/agents`. */
export function shellTool<Tool>(sandbox: Sandbox, tool: (definition: Definition) => Tool): Tool {
  const shell = new ShellTool(sandbox, { maxTimeoutMs: 20_000 });
  return tool({
    name: shell.name,
    description: shell.description,
    // The vendor's schemas that are not strict allow more; what the model adds is told to it as a mistake.
    parameters: { ...shell.parameters, additionalProperties: true },
    strict: false,
    execute: async (input, _, details) => (await shell.call(input, details?.signal)).content,
  });
}

/** Calls the tool once, as `run` would for a model that asks for it. */
async function scripted(sandbox: Sandbox): Promise<string> {
  const tool = shellTool(sandbox, (definition) => definition);
  const answer = await tool.execute({ command: "grep -c error /tmp/log" });
  return `It is ${answer.split("\n")[0]}.`;
}

async function real(sandbox: Sandbox): Promise<string> {
  const { Agent, run, tool } = await load("@openai/agents");
  const agent = new Agent({ name: "Assistant", tools: [shellTool(sandbox, tool)] });
  return (await run(agent, TASK)).finalOutput;
}

if (isMain(import.meta.url)) {
  await using sandbox = await Sandbox.create();
  await sandbox.files.write("/tmp/log", LOG);
  console.log(await (process.env["OPENAI_API_KEY"] === undefined ? scripted : real)(sandbox));
}
