/** Each example runs, without a network, and does what it says; the tool tells a model what it did wrong. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { env, execPath } from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Sandbox, ShellTool } from "wardian";

const EXAMPLES = fileURLToPath(new URL("../examples/", import.meta.url));

for (const name of readdirSync(EXAMPLES).filter((name) => name.endsWith(".js") && name !== "shared.js")) {
  test(`the example ${name}`, () => {
    const plain = Object.fromEntries(Object.entries(env).filter(([name]) => !name.endsWith("_API_KEY")));
    const done = spawnSync(execPath, [EXAMPLES + name], { encoding: "utf8", timeout: 120_000, env: plain });
    assert.deepEqual([done.stdout, done.stderr], ["It is 2.\n", ""]);
  });
}

test("a tool answers whatever a model asks for", async () => {
  await using sandbox = await Sandbox.create({ limits: { stdoutBytes: 100 } });
  const tool = new ShellTool(sandbox, { maxTimeoutMs: 500, maxOutput: 60 });
  assert.deepEqual(await tool.call({ command: "echo hi" }), { content: "hi\n[exit code 0]", isError: false });
  assert.deepEqual(await tool.call('{"command": "exit 3"}'), { content: "[exit code 3]", isError: true });
  assert.match((await tool.call("{")).content, /^error: the arguments are not JSON/);
  assert.match((await tool.call({ cmd: "x" })).content, /string 'command'/);
  assert.match((await tool.call({ command: "x", cwd: "/" })).content, /unknown option 'cwd'/);
  assert.match((await tool.call({ command: "x", timeout: "1" })).content, /positive number/);
  assert.match((await tool.call({ command: "sleep 9", timeout: 60 })).content, /exit code 124, TIMEOUT/);
  const long = (await tool.call({ command: "seq 1 100" })).content;
  assert.match(long, /characters left out/);
  assert.match(long, /stdout longer than its limit.*\n\[exit code 0, limit reached: stdoutBytes\]$/);
  const block = { id: "1", name: "shell", input: { command: "set -e; false" } };
  assert.equal((await tool.anthropicResult(block)).is_error, true);
  assert.equal((await tool.anthropicResult({ ...block, input: { command: "false; echo on" } })).content, "on\n[exit code 0]");
  assert.match((await tool.anthropicResult({ ...block, name: "other" })).content, /no tool called 'other'/);
  const item = { call_id: "2", name: "shell", arguments: '{"command":"echo hi"}' };
  assert.deepEqual(await tool.openaiResult(item), { type: "function_call_output", call_id: "2", output: "hi\n[exit code 0]" });
  await sandbox.close();
  await assert.rejects(tool.call({ command: "true" }), { name: "SandboxClosedError" });
});
