/**
 * A sandbox as a tool of Anthropic's Messages API: the whole loop of an agent.
 *
 * `create` is `client.messages.create` of `@anthropic-ai/sdk`. Without a key, the model here is a script, which calls
 * the tool as the real one would.
 */

import { Sandbox, ShellTool } from "wardian";

import { isMain, load, LOG, TASK } from "./shared.js";

/** What is used of the vendor's types. */
interface Message {
  readonly stop_reason: string | null;
  readonly content: readonly any[];
}
export type Create = (request: any) => PromiseLike<Message>;

/** Lets the model use the sandbox until it has an answer. */
export async function agent(create: Create, sandbox: Sandbox, task: string): Promise<string> {
  const tool = new ShellTool(sandbox, { maxTimeoutMs: 20_000 });
  const messages: object[] = [{ role: "user", content: task }];
  for (;;) {
    const request = { model: "claude-sonnet-4-5", max_tokens: 4096, tools: [tool.anthropicSchema()], messages };
    const { stop_reason, content } = await create(request);
    messages.push({ role: "assistant", content });
    if (stop_reason !== "tool_use") return content.map((block) => (block.type === "text" ? block.text : "")).join("");
    const calls = content.filter((block) => block.type === "tool_use");
    messages.push({ role: "user", content: await Promise.all(calls.map((block) => tool.anthropicResult(block))) });
  }
}

/** Calls the tool once, and answers with what it said. */
const scriptedModel: Create = async ({ messages, tools }) => {
  if (messages.length === 1) {
    const call = { type: "tool_use", id: "toolu_1", name: tools[0].name, input: { command: "grep -c error /tmp/log" } };
    return { stop_reason: "tool_use", content: [call] };
  }
  const [result] = messages.at(-1).content;
  return { stop_reason: "end_turn", content: [{ type: "text", text: `It is ${result.content.split("\n")[0]}.` }] };
};

if (isMain(import.meta.url)) {
  let create = scriptedModel;
  if (process.env["ANTHROPIC_API_KEY"] !== undefined) {
    const client = new (await load("@anthropic-ai/sdk")).default();
    create = (request) => client.messages.create(request);
  }
  await using sandbox = await Sandbox.create();
  await sandbox.files.write("/tmp/log", LOG);
  console.log(await agent(create, sandbox, TASK));
}
