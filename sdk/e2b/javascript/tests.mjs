/** E2B's SDK for JavaScript against `wardian serve --http`. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";

import { Sandbox as CodeSandbox } from "@e2b/code-interpreter";
import { CommandExitError, NotFoundError, Sandbox, TimeoutError } from "e2b";

let server;

before(async () => {
  server = spawn(process.env.WARDIAN_BIN, ["serve", "--http", "127.0.0.1:0", "--network", "off"], {
    stdio: ["ignore", "inherit", "pipe"],
  });
  const address = await new Promise((found) => {
    let said = "";
    server.stderr.on("data", (data) => {
      said += data;
      const match = /listening on (http:\S+)/.exec(said);
      if (match) found(match[1]);
    });
  });
  Object.assign(process.env, { E2B_API_URL: address, E2B_SANDBOX_URL: address, E2B_API_KEY: `e2b_${"0".repeat(40)}` });
});

after(() => server.kill());

test("sandboxes are created, listed, paused, forked and killed", async () => {
  const sandbox = await Sandbox.create({ metadata: { test: "js" }, envs: { A: "b" }, timeoutMs: 60_000 });
  assert.equal((await sandbox.commands.run("echo $A")).stdout, "b\n");
  const page = await Sandbox.list({ query: { metadata: { test: "js" } } }).nextItems();
  assert.deepEqual(page.map((one) => one.sandboxId), [sandbox.sandboxId]);
  await sandbox.files.write("/tmp/kept", "content");
  assert.equal(await sandbox.pause(), true);
  assert.equal(await sandbox.isRunning(), false);
  const again = await Sandbox.connect(sandbox.sandboxId);
  assert.equal(await again.files.read("/tmp/kept"), "content");
  assert.equal(await again.kill(), true);
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false);
});

test("commands stream, take input, time out and are killed", async () => {
  const sandbox = await Sandbox.create();
  const out = [];
  await sandbox.commands.run("echo one; echo two", { onStdout: (data) => out.push(data) });
  assert.equal(out.join(""), "one\ntwo\n");
  await assert.rejects(sandbox.commands.run("exit 3"), (error) => error instanceof CommandExitError && error.exitCode === 3);
  await assert.rejects(sandbox.commands.run("sleep 100", { timeoutMs: 500 }), TimeoutError);
  const handle = await sandbox.commands.run("cat", { background: true, stdin: true, timeoutMs: 0 });
  await sandbox.commands.sendStdin(handle.pid, "typed");
  await sandbox.commands.closeStdin(handle.pid);
  assert.equal((await handle.wait()).stdout, "typed");
  const sleeper = await sandbox.commands.run("sleep 1000", { background: true, timeoutMs: 0 });
  assert.ok((await sandbox.commands.list()).some((one) => one.pid === sleeper.pid));
  assert.equal(await sleeper.kill(), true);
  await assert.rejects(sleeper.wait(), CommandExitError);
  await sandbox.kill();
});

test("a terminal runs what is typed", async () => {
  const sandbox = await Sandbox.create();
  let shown = "";
  const terminal = await sandbox.pty.create({ rows: 24, cols: 80, onData: (data) => (shown += Buffer.from(data)), timeoutMs: 0 });
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode("echo $((6*7)); exit\n"));
  await terminal.wait();
  assert.ok(shown.includes("42\r\n"), shown);
  await sandbox.kill();
});

test("files are written, read, listed, moved, watched and removed", async () => {
  const sandbox = await Sandbox.create();
  await sandbox.files.write("/tmp/dir/a", "text");
  await sandbox.files.write("/tmp/dir/b", new Uint8Array([0, 255, 1]).buffer);
  assert.deepEqual([...(await sandbox.files.read("/tmp/dir/b", { format: "bytes" }))], [0, 255, 1]);
  assert.deepEqual((await sandbox.files.list("/tmp/dir")).map((one) => one.name), ["a", "b"]);
  const seen = new Promise((found) => sandbox.files.watchDir("/tmp/dir", (event) => event.name === "c" && found(event)));
  await new Promise((done) => setTimeout(done, 500));
  await sandbox.files.rename("/tmp/dir/a", "/tmp/dir/c");
  await seen;
  await sandbox.files.remove("/tmp/dir/b");
  assert.equal(await sandbox.files.exists("/tmp/dir/b"), false);
  await assert.rejects(sandbox.files.read("/tmp/missing"), NotFoundError);
  const response = await fetch(await sandbox.downloadUrl("/tmp/dir/c", { useSignatureExpiration: 60 }));
  assert.equal(await response.text(), "text");
  await sandbox.kill();
});

test("code runs in contexts", async () => {
  const sandbox = await CodeSandbox.create();
  await sandbox.runCode("x = 20");
  const execution = await sandbox.runCode("print('hi'); x + 1");
  assert.equal(execution.text, "21");
  assert.equal(execution.logs.stdout.join(""), "hi\n");
  assert.equal((await sandbox.runCode("1/0")).error.name, "ZeroDivisionError");
  const context = await sandbox.createCodeContext({ cwd: "/tmp" });
  assert.equal((await sandbox.runCode("import os; os.getcwd()", { context })).text, "'/tmp'");
  await sandbox.kill();
});
