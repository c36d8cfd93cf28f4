/** What a sandbox reaches of the machine, and what is told of its files. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { InvalidRequestError, Sandbox, SandboxError } from "wardian";
import { directory } from "./shared.js";

test("directories of this machine are mounted", async () => {
  const host = directory();
  writeFileSync(join(host, "f"), "old");
  mkdirSync(join(host, "real"));
  symlinkSync(join(host, "real"), join(host, "link"));
  const hostMounts = [{ host, path: "/ro" }, { host: join(host, "link"), path: "/rw", mode: "rw" as const }];
  await using sandbox = await Sandbox.create({ hostMounts });
  assert.equal(await sandbox.files.readText("/ro/f"), "old");
  await sandbox.files.write("/rw/new", "mine");
  assert.equal(readFileSync(join(host, "real/new"), "utf8"), "mine");
  await assert.rejects(sandbox.files.write("/ro/f", "new"), (error) => error instanceof SandboxError && error.errno === "EROFS");
  const wrong: any = [{ host, path: "/m", mode: "wo" }];
  await assert.rejects(Sandbox.create({ hostMounts: wrong }), InvalidRequestError);
});

test("changes in an overlay are applied", async () => {
  const host = directory();
  writeFileSync(join(host, "f"), "old\n");
  await using sandbox = await Sandbox.create({ hostMounts: [{ host, path: "/m", mode: "overlay" }] });
  await sandbox.run("echo new > /m/f; echo x > /m/g");
  const changes = (await sandbox.diff("/m")).map(({ path, change, mode }) => [path, change, mode]);
  assert.deepEqual(changes, [["f", "M", undefined], ["g", "A", 0o644]]);
  assert.match(await sandbox.patch("/m"), /-old\n\+new\n/);
  assert.equal((await sandbox.apply("/m", { dryRun: true })).length, 2);
  assert.equal(readFileSync(join(host, "f"), "utf8"), "old\n");
  await sandbox.apply("/m");
  assert.equal(readFileSync(join(host, "f"), "utf8"), "new\n");
});

test("all output is kept in a file", async () => {
  await using sandbox = await Sandbox.create({ limits: { stdoutBytes: 3 } });
  const result = await sandbox.run("seq 5", { outputFile: "/tmp/all" });
  assert.deepEqual([result.stdout, result.outputFile], ["1\n2", { path: "/tmp/all", bytes: 10, error: undefined }]);
  assert.equal(await sandbox.files.readText("/tmp/all"), "1\n2\n3\n4\n5\n");
});

test("changes of files are told", async () => {
  await using sandbox = await Sandbox.create();
  await sandbox.files.mkdir("/tmp/w");
  const found = new Set<string>();
  {
    await using events = await sandbox.files.watch("/tmp/w", { recursive: true });
    await sandbox.files.write("/tmp/w/d/f", "x");
    for await (const { change, path, type } of events) {
      found.add(`${change} ${path} ${type}`);
      if (found.has("create d/f file")) break;
    }
  }
  assert(found.has("create d dir"));
  const events = await sandbox.files.watch("/tmp/w");
  await sandbox.files.remove("/tmp/w");
  for await (const { change } of events) assert.equal(change, "remove", "it ends with the directory");
  await assert.rejects(sandbox.files.watch("/no/such"), (error) => error instanceof SandboxError && error.errno === "ENOENT");
});
