/** How sandboxes, servers and calls end. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { execPath, kill } from "node:process";
import { test } from "node:test";

import { Sandbox, SandboxClosedError, ServerDiedError } from "wardian";
import { fakeServer, until } from "./shared.js";

function lives(pid: number): boolean {
  try {
    kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test("a server that dies rejects everything pending, with its standard error", async () => {
  const program = fakeServer(`if (request.id === 3) { process.stderr.write("out of luck\\n"); process.exit(7); }`);
  const sandbox = await Sandbox.create({ binary: program });
  const first = sandbox.run("one");
  const calls = [first, sandbox.files.read("/x"), sandbox.run("two"), sandbox.env.get("x")];
  for (const outcome of await Promise.allSettled(calls)) {
    assert.equal(outcome.status, "rejected");
    assert.ok(outcome.reason instanceof ServerDiedError);
    assert.match(outcome.reason.message, /exited with status 7\n  out of luck/);
  }
  await assert.rejects(sandbox.run("later"), ServerDiedError);
});

test("a server that is killed is named so, and closing it is fine", async () => {
  await using sandbox = await Sandbox.create();
  const running = sandbox.run("sleep 1000", { timeoutMs: 0 });
  kill(sandbox.pid!, "SIGKILL");
  await assert.rejects(running, /was killed by SIGKILL/);
});

test("a server that violates the protocol is killed", async () => {
  const answers = {
    "no JSON": `say("hello")`,
    "a number": `say("3")`,
    "an id nobody asked for": `say({ id: 99, result: {} })`,
    "an error without an id": `say({ id: null, error: { code: -32700, message: "what?" } })`,
    "output of no stream": `say({ method: "output", params: { request_id: request.id, stream: "x", data: "" } })`,
  };
  for (const [what, code] of Object.entries(answers)) {
    const sandbox = await Sandbox.create({ binary: fakeServer(code) });
    await assert.rejects(sandbox.run("x"), { name: "ProtocolError" }, what);
    await until(() => !lives(sandbox.pid!));
    await sandbox.close();
  }
  const wrong = await Sandbox.create({ binary: fakeServer(`say({ id: request.id, result: { exitCode: "0" } })`) });
  await assert.rejects(wrong.run("x"), /exitCode is "0"/);
  await wrong.close();
});

test("calls after the end throw", async () => {
  const sandbox = await Sandbox.create();
  const fork = await sandbox.fork();
  await fork.destroy();
  await fork.destroy();
  await assert.rejects(fork.run("true"), SandboxClosedError);
  await assert.rejects(fork.files.read("/x"), SandboxClosedError);
  assert.throws(() => fork.runStream("true"), SandboxClosedError);
  const running = sandbox.run("sleep 1000", { timeoutMs: 0 });
  const [pid] = [sandbox.pid!];
  await Promise.all([sandbox.close(), sandbox.close(), assert.rejects(running, SandboxClosedError)]);
  assert.equal(lives(pid), false);
  await assert.rejects(sandbox.run("true"), SandboxClosedError);
  await assert.rejects(sandbox.snapshot(), SandboxClosedError);
});

test("kill stops everything", async () => {
  const sandbox = await Sandbox.create();
  const running = sandbox.run("sleep 1000", { timeoutMs: 0 });
  // The server may still answer that it was cancelled.
  const ending = running.then((result) => assert.ok(result.cancelled), (error) => assert.ok(error instanceof SandboxClosedError));
  await Promise.all([ending, sandbox.kill()]);
  await sandbox.kill();
  assert.equal(lives(sandbox.pid!), false);
});

test("await using closes the first and destroys a fork", async () => {
  let outer: Sandbox;
  {
    await using sandbox = await Sandbox.create();
    outer = sandbox;
    {
      await using fork = await sandbox.fork();
      assert.ok((await fork.run("true")).ok);
    }
    await sandbox.fork();
    await assert.rejects(sandbox.destroy(), { name: "SandboxInUseError" });
  }
  assert.equal(lives(outer.pid!), false);
});

test("a program that cannot be started", async () => {
  await assert.rejects(Sandbox.create({ binary: "/no/such/program" }), { name: "BinaryNotFoundError" });
  await assert.rejects(Sandbox.create({ binary: "/etc/passwd" }), { name: "BinaryNotFoundError" });
  await assert.rejects(Sandbox.create({ binary: "/bin/false" }), { name: "ServerDiedError" });
});

test("an idle sandbox does not keep Node alive, and its server ends with it", () => {
  const index = import.meta.resolve("wardian");
  const code = `
    import { Sandbox } from ${JSON.stringify(index)};
    const sandbox = await Sandbox.create();
    console.log((await sandbox.run("echo $((6 * 7))")).stdout + sandbox.pid);
  `;
  const done = spawnSync(execPath, ["--input-type=module", "-e", code], { encoding: "utf8", timeout: 60_000 });
  assert.equal(done.status, 0, done.stderr);
  const [answer, pid] = done.stdout.trim().split("\n");
  assert.equal(answer, "42");
  return until(() => !lives(Number(pid)));
});
