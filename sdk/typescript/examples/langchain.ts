/**
 * A sandbox as a tool of LangChain.js (package `@langchain/core`):
 *
 * ```ts
 * import { tool } from "@langchain/core/tools";
 *
 * const shell = shellTool(sandbox, tool);
 * const answer = await model.bindTools([shell]).invoke(messages);
 * messages.push(await shell.invoke(answer.tool_calls[0]));
 * ```
 */

import { Sandbox, ShellTool } from "wardian";

import { isMain, LOG } from "./shared.js";

/** What is used of the vendor's `tool`. */
export type MakeTool<Tool> = (
  run: (input: any, config?: { signal?: AbortSignal }) => Promise<string>,
  fields: { name: string; description: string; schema: any },
) => Tool;

/** The tool. `tool` is the function of that name in `@langchain/core/tools`. */
export function shellTool<Tool>(sandbox: Sandbox, tool: MakeTool<Tool>): Tool {
  const shell = new ShellTool(sandbox, { maxTimeoutMs: 20_000 });
  const run = async (input: unknown, config?: { signal?: AbortSignal }) => (await shell.call(input, config?.signal)).content;
  return tool(run, { name: shell.name, description: shell.description, schema: shell.parameters });
}

if (isMain(import.meta.url)) {
  await using sandbox = await Sandbox.create();
  await sandbox.files.write("/tmp/log", LOG);
  // The vendor's tools are called like this by a graph or an agent.
  const shell = shellTool(sandbox, (run) => ({ invoke: run }));
  const answer = await shell.invoke({ command: "grep -c error /tmp/log" });
  console.log(`It is ${answer.split("\n")[0]}.`);
}
