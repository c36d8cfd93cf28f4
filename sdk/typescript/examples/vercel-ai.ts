/**
 * A sandbox as a tool of Vercel's AI SDK (package `ai`):
 *
 * ```ts
 * import { generateText, jsonSchema, stepCountIs } from "ai";
 *
 * await generateText({ model, prompt, tools: { shell: shellTool(sandbox, jsonSchema) }, stopWhen: stepCountIs(10) });
 * ```
 */

import { Sandbox, ShellTool } from "wardian";

import { isMain, load, LOG, TASK } from "./shared.js";

/** The tool. `jsonSchema` is the function of that name in `ai`. */
export function shellTool<Schema>(sandbox: Sandbox, jsonSchema: (schema: any) => Schema) {
  const shell = new ShellTool(sandbox, { maxTimeoutMs: 20_000 });
  return {
    description: shell.description,
    inputSchema: jsonSchema(shell.parameters),
    execute: async (input: unknown, options?: { readonly abortSignal?: AbortSignal | undefined }): Promise<string> =>
      (await shell.call(input, options?.abortSignal)).content,
  };
}

/** Calls the tool once, as `generateText` would for a model that asks for it. */
async function scripted(sandbox: Sandbox): Promise<string> {
  const tool = shellTool(sandbox, (schema) => schema);
  const answer = await tool.execute({ command: "grep -c error /tmp/log" }, { abortSignal: AbortSignal.timeout(60_000) });
  return `It is ${answer.split("\n")[0]}.`;
}

async function real(sandbox: Sandbox): Promise<string> {
  const { generateText, jsonSchema, stepCountIs } = await load("ai");
  const tools = { shell: shellTool(sandbox, jsonSchema) };
  const { text } = await generateText({ model: "anthropic/claude-sonnet-4.5", prompt: TASK, tools, stopWhen: stepCountIs(10) });
  return text;
}

if (isMain(import.meta.url)) {
  await using sandbox = await Sandbox.create();
  await sandbox.files.write("/tmp/log", LOG);
  console.log(await (process.env["AI_GATEWAY_API_KEY"] === undefined ? scripted : real)(sandbox));
}
