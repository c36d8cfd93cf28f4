/** The surface, beyond what the scenarios have. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { env } from "node:process";
import { after, before, test } from "node:test";

import { InvalidRequestError, readDirectory, RequestTooLargeError, Sandbox, SandboxError } from "wardian";
import { directory, until } from "./shared.js";

let sandbox: Sandbox;
before(async () => {
  sandbox = await Sandbox.create();
});
after(() => sandbox.close());

test("unknown options are refused by name", async () => {
  const loose = sandbox as any;
  await assert.rejects(Sandbox.create({ timeout: 3 } as any), /unknown option 'timeout'.*timeoutMs/);
  await assert.rejects(Sandbox.create({ limits: { memory: 3 } } as any), /limits: unknown option 'memory'/);
  await assert.rejects(loose.run("true", { timeout: 3 }), /run: unknown option 'timeout'/);
  assert.throws(() => loose.runStream("true", { check: true }), /unknown option 'check'/);
  await assert.rejects(loose.files.write("/tmp/x", "", { parents: true }), /unknown option 'parents'/);
  await assert.rejects(loose.snapshot({ name: "x" }), /unknown option 'name'/);
  await assert.rejects(Sandbox.create({ extensions: { a: { run() {}, help: "" } as any } }), /unknown option 'help'/);
  await assert.rejects(Sandbox.create({ stateToken: "0123456789abcdef" }), /needs 'socket'/);
});

test("what the server refuses is an error of its own class", async () => {
  await assert.rejects(Sandbox.create({ limits: { memoryBytes: 1 } }), InvalidRequestError);
  await assert.rejects(sandbox.run("true", { cwd: "/no/such" }), SandboxError);
  await assert.rejects(sandbox.run("true", { timeoutMs: -1 }), TypeError);
  await assert.rejects(sandbox.run("echo \ud800"), /half a surrogate pair/);
  assert.equal((await sandbox.run("echo on")).stdout, "on\n");
});

test("commands keep the order in which they were called", async () => {
  const calls = [sandbox.run("n=1"), sandbox.run("n=2$n"), sandbox.env.get("n"), sandbox.run("n=3$n"), sandbox.env.get("n")];
  const [, , second, , last] = await Promise.all(calls);
  assert.deepEqual([second, last], ["21", "321"]);
});

test("a request that is too large is not sent", async () => {
  await using small = await Sandbox.create({ limits: { rpcBytes: 2000 } });
  await assert.rejects(small.files.write("/tmp/x", "x".repeat(2000)), RequestTooLargeError);
  assert.equal(await small.files.exists("/tmp/x"), false);
});

test("a sandbox starts with large mounts", async () => {
  const large = Buffer.alloc(20 << 20, "0123456789");
  await using started = await Sandbox.create({ mounts: [{ path: "/data", files: { large } }] });
  assert.equal((await started.run("wc -c < /data/large")).stdout.trim(), String(large.length));
});

test("files are read and written in parts", async () => {
  const whole = Buffer.alloc((9 << 20) + 5, "0123456789");
  async function* pieces() {
    for (let at = 0; at < whole.length; at += 1 << 20) yield whole.subarray(at, at + (1 << 20));
  }
  await sandbox.files.write("/tmp/large", pieces());
  const sizes: number[] = [];
  for await (const part of sandbox.files.readParts("/tmp/large")) sizes.push(part.length);
  assert.deepEqual(sizes, [4 << 20, 4 << 20, (1 << 20) + 5]);
  assert.deepEqual(await sandbox.files.read("/tmp/large"), whole);
  await sandbox.files.write("/tmp/large", []);
  assert.equal((await sandbox.files.stat("/tmp/large")).size, 0);
  await assert.rejects(sandbox.files.write("/tmp/large", ["text"] as any), /Uint8Arrays/);
  assert.match(await sandbox.files.readText("/proc/uptime"), /^[0-9.]+ [0-9.]+\n$/);
  await sandbox.files.write("/tmp/bytes", Buffer.from([0xff]));
  await assert.rejects(sandbox.files.readText("/tmp/bytes"), TypeError);
});

test("all exported variables", async () => {
  await sandbox.env.set("EXPORTED", "1");
  assert.equal((await sandbox.env.all())["EXPORTED"], "1");
});

test("a host directory is mounted with modes, links and empty directories", async () => {
  const host = directory();
  mkdirSync(join(host, "src"));
  mkdirSync(join(host, "skipped"));
  writeFileSync(join(host, "src/run"), "echo ran\n");
  writeFileSync(join(host, "__proto__"), "odd\n");
  chmodSync(join(host, "src/run"), 0o750);
  symlinkSync("src/run", join(host, "link"));
  const files = await readDirectory(host, (path) => path !== "skipped");
  await sandbox.mount("/host", files);
  const script = "cd /host; ls; stat -c %a src/run; readlink link; sh link; cat __proto__";
  assert.equal((await sandbox.run(script)).stdout, "__proto__\nlink\nsrc\n750\nsrc/run\nran\nodd\n");
});

test("state goes to files of the server, and to a storage of the client", async () => {
  const kept = new Map<string, Buffer>();
  const storage = { save: (id: string, state: Buffer) => void kept.set(id, state), load: (id: string) => kept.get(id)! };
  await using own = await Sandbox.create({ stateDir: directory(), storage });
  await own.run("x=1");
  await own.exportState({ file: "one" });
  await own.run("x=2");
  await own.importState({ file: "one" });
  assert.equal(await own.env.get("x"), "1");
  await own.offload();
  assert.equal(kept.size, 1);
  await assert.rejects(own.run("true"), (error) => error instanceof SandboxError && error.errno === "EBUSY");
  await own.rehydrate();
  assert.equal(await own.env.get("x"), "1");
});

test("a server with a socket has many clients", async () => {
  const path = join(directory(), "socket");
  const server = spawn(env["WARDIAN_BIN"] ?? "wardian", ["serve", "--socket", path], { stdio: "ignore" });
  try {
    let first: Sandbox | undefined;
    await until(async () => (first = await Sandbox.create({ socket: path }).catch(() => undefined)) !== undefined);
    await using one = first!;
    await using two = await Sandbox.create({ socket: path });
    assert.equal(one.pid, undefined);
    const shown = await Promise.all([one.run("echo 1"), two.run("echo 2")]);
    assert.deepEqual(shown.map((result) => result.stdout), ["1\n", "2\n"]);
    await one.close();
    await assert.rejects(one.run("true"), { name: "SandboxClosedError" });
    assert.ok((await two.run("true")).ok);
    server.kill();
    await assert.rejects(until(async () => (await two.run("true")).exitCode > 200), { name: "ServerDiedError" });
  } finally {
    server.kill();
  }
  await assert.rejects(Sandbox.create({ socket: "/no/such/socket" }), { name: "ServerDiedError" });
  await assert.rejects(Sandbox.create({ socket: path, binary: "/bin/true" }), /cannot be combined/);
});

test("python has contexts, values and streams", async () => {
  await sandbox.python("x = 1", { context: "a" });
  assert.equal((await sandbox.python("x + 1", { context: "a" })).value?.repr, "2");
  const html = "class H:\n  def _repr_html_(self): return '<b>'\nH()";
  assert.equal((await sandbox.python(html)).value?.html, "<b>");
  const heard: string[] = [];
  await sandbox.python("print('a'); print('b')", { onStdout: (data) => heard.push(data) });
  assert.equal(heard.join(""), "a\nb\n");
  const failed = await sandbox.python("def f():\n  raise ValueError('no')\nf()");
  assert.match(failed.describe(), /Traceback[^]*ValueError: no/);
});
