/** Processes beside the shell, and terminals. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Sandbox, SandboxError } from "wardian";

test("processes run at once, beside the shell, and take input", async () => {
  await using sandbox = await Sandbox.create();
  const script = 'while read line; do echo "$0 $line"; done; echo end >&2; exit 3';
  const both = await Promise.all(["one", "two"].map((name) => sandbox.process.start(["bash", "-c", script, name], { stdin: true })));
  assert.equal((await sandbox.process.list()).length, 2);
  for (const process of both) await process.write("a\nb\n");
  assert.equal((await sandbox.run("echo shell")).stdout, "shell\n");
  for (const [at, process] of both.entries()) {
    await process.closeStdin();
    const result = await process.wait();
    const name = ["one", "two"][at];
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], [`${name} a\n${name} b\n`, "end\n", 3]);
    await assert.rejects(process.write("late"), SandboxError);
  }
});

test("output is iterated in order, however long, and a process is killed", async () => {
  await using sandbox = await Sandbox.create();
  const process = await sandbox.process.start("seq 200000", { env: { X: "y" }, cwd: "/tmp" });
  const pieces: Buffer[] = [];
  for await (const piece of process) pieces.push(piece.bytes);
  const numbers = Array.from({ length: 200_000 }, (_, n) => `${n + 1}\n`).join("");
  assert.equal(Buffer.concat(pieces).toString(), numbers);
  const sleeper = await sandbox.process.start("sleep 1000");
  await sleeper.kill();
  assert.equal((await sleeper.wait()).signal, 9);
  const late = await sandbox.process.start("sleep 1000", { timeoutMs: 50 });
  assert.equal((await late.wait()).errorClass, "TIMEOUT");
});

test("a terminal is typed at and resized", async () => {
  await using sandbox = await Sandbox.create();
  const terminal = await sandbox.pty.start({ rows: 10, columns: 40 });
  await terminal.write("echo $((6*7))\r");
  await terminal.resize(20, 50);
  await terminal.write("python3 -c 'import os; print(*os.get_terminal_size(0))'; exit 4\r");
  const result = await terminal.wait();
  assert.equal(result.exitCode, 4);
  assert.ok(result.pty.includes("42\r\n") && result.pty.includes("50 20\r\n"), result.pty);
});
