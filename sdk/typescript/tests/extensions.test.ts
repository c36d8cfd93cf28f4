/** Functions as commands. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Sandbox } from "wardian";

test("functions are commands", async () => {
  const sandbox: Sandbox = await Sandbox.create({
    extensions: {
      weather: {
        description: "Tells the weather.",
        usage: "weather CITY [DAYS]",
        run: ([city, days = "1"]) => `${city}: rain for ${days} days\n`,
      },
      shout: async (_, { stdin }) => stdin.toUpperCase(),
      where: (_, { cwd, env }) => ({ stdout: `${cwd} ${env["X"]}\n`, stderr: "note\n", exitCode: 3 }),
      quiet: () => {},
      broken: () => {
        throw new RangeError("no");
      },
      wrong: () => 3 as any,
      halves: () => "\ud800",
      reads: async ([path]) => (await sandbox.files.read(path!)).toString(),
      slow: () => new Promise(() => {}),
    },
  });
  await using _ = sandbox;
  assert.equal((await sandbox.run("weather Bergen 3 | shout")).stdout, "BERGEN: RAIN FOR 3 DAYS\n");
  assert.match((await sandbox.run("weather --help; extensions list")).stdout, /Tells the weather\.[^]*weather CITY/);
  const where = await sandbox.run("cd /tmp; X=1 where");
  assert.deepEqual([where.stdout, where.stderr, where.exitCode], ["/tmp 1\n", "note\n", 3]);
  assert.deepEqual((await sandbox.run("quiet")).output, "");
  const broken = await sandbox.run("broken");
  assert.deepEqual([broken.exitCode, broken.stderr], [1, "broken: RangeError: no\n"]);
  assert.match((await sandbox.run("wrong")).stderr, /returned a number/);
  assert.notEqual((await sandbox.run("halves")).exitCode, 0);
  assert.equal((await sandbox.run("echo x > /tmp/f; reads /tmp/f")).stdout, "x\n");
  assert.equal((await sandbox.run("slow", { timeoutMs: 300 })).timedOut, true);
  assert.equal((await sandbox.run("seq 1 20 | xargs -n 1 weather | wc -l")).stdout.trim(), "20");
});

test("an extension brings a package for Python", async () => {
  await using sandbox = await Sandbox.create({
    extensions: { greet: { run: () => "hi\n", pythonPackage: { files: { "greet/__init__.py": "def hello(): return 'hello'\n" } } } },
  });
  const result = await sandbox.run("python3 -c 'import greet; print(greet.hello())'");
  assert.equal(result.stdout, "hello\n", result.stderr);
});
