/** Output as it arrives, and how it is cancelled. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Sandbox, type Piece } from "wardian";
import { fakeServer } from "./shared.js";

let sandbox: Sandbox;
before(async () => {
  sandbox = await Sandbox.create();
});
after(() => sandbox.close());

test("pieces come while the command runs, in order, with characters whole", async () => {
  await using stream = sandbox.runStream("echo first; until [ -e /tmp/go ]; do sleep 0.01; done; cat /tmp/go; echo ü >&2");
  const heard: string[] = [];
  for await (const piece of stream) {
    heard.push(`${piece.stream}: ${piece.data}`);
    // It could not have come to this if output were kept until the end.
    if (heard.length === 1) void sandbox.files.write("/tmp/go", "go\n");
  }
  assert.deepEqual(heard, ["stdout: first\n", "stdout: go\n", "stderr: ü\n"]);
  assert.equal((await stream.result()).stdout, "first\ngo\n");
});

test("listeners are awaited, and one that throws cancels the command", async () => {
  const heard: string[] = [];
  const slow = async (data: string) => {
    await new Promise((done) => setTimeout(done, 5));
    heard.push(data);
  };
  const result = await sandbox.run("echo a; echo b >&2; echo c", { onStdout: slow, onStderr: slow });
  assert.deepEqual([heard.join(""), result.stdout], ["a\nb\nc\n", "a\nc\n"]);
  const failing = () => {
    throw new Error("enough");
  };
  await assert.rejects(sandbox.run("yes", { onStdout: failing, timeoutMs: 0 }), /enough/);
  assert.ok((await sandbox.run("true")).ok);
});

test("leaving the loop cancels the command", async () => {
  const stream = sandbox.runStream("echo x; sleep 1000", { timeoutMs: Infinity });
  for await (const piece of stream) {
    assert.equal(piece.data, "x\n");
    break;
  }
  assert.equal((await stream.result()).errorClass, "CANCELLED");
  assert.ok((await sandbox.run("true")).ok);
});

test("a stream whose pieces nobody takes does not stop other calls", async () => {
  await using large = await Sandbox.create({ limits: { stdoutBytes: 8 << 20 } });
  const stream = large.runStream("seq 1 1000000");
  const first = (await stream.next()).value as Piece;
  assert.match(first.data, /^1\n2\n/);
  await large.files.write("/tmp/x", "x");
  const [fork] = await Promise.all([large.sibling(), large.files.read("/tmp/x")]);
  assert.ok((await fork.run("true")).ok);
  let size = first.bytes.length;
  for await (const piece of stream) size += piece.bytes.length;
  assert.equal(size, (await stream.result()).stdoutBytes.length);
});

test("a server whose output nobody takes has to wait", { timeout: 60_000 }, async (context) => {
  // It writes for ever, and tells how much it got rid of: a pipe, our mark and some buffers.
  const program = fakeServer(`
    if (request.method !== "run") return;
    const data = Buffer.alloc(30000).toString("base64");
    let sent = 0;
    const more = () => {
      while (process.stdout.write(JSON.stringify({ method: "output", params: { request_id: request.id, stream: "stdout", data } }) + "\\n")) sent += 1;
      sent += 1;
      process.stderr.write(sent + "\\n");
    };
    process.stdout.on("drain", more);
    more();
  `);
  let sent = 0;
  const waiting = await Sandbox.create({ binary: program, onLog: (line) => (sent = Number(line)) });
  context.after(() => waiting.close());
  const stream = waiting.runStream("anything");
  await stream.next();
  // Until it has not got on for a while.
  for (let before = -1; before !== sent && sent * 30_000 < 16 << 20; ) {
    before = sent;
    await new Promise((done) => setTimeout(done, 500));
  }
  const stuck = sent;
  assert.ok(stuck * 30_000 < 16 << 20, `${stuck} pieces were taken from it`);
  // It goes on when pieces are taken, and what it tells of that may come later than they do.
  for (let n = 0; n < stuck + 100 || sent <= stuck; n++) await stream.next();
  await waiting.close();
  await assert.rejects(stream.result(), { name: "SandboxClosedError" });
});

test("many small pieces keep their order and stream", async () => {
  const stream = sandbox.runStream("for i in $(seq 1 200); do echo $i; echo -$i >&2; done");
  const heard: string[] = [];
  for await (const piece of stream) heard.push(piece.data);
  const wanted = Array.from({ length: 200 }, (_, n) => `${n + 1}\n-${n + 1}\n`);
  assert.equal(heard.join(""), wanted.join(""));
});

test("a signal cancels a command, one that waits and one that streams", async () => {
  const abort = new AbortController();
  const running = sandbox.run("sleep 1000", { signal: abort.signal, timeoutMs: 0 });
  const waiting = sandbox.run("touch /tmp/never", { signal: abort.signal });
  const third = sandbox.run("ls /tmp/never");
  abort.abort();
  await assert.rejects(running, { name: "AbortError" });
  await assert.rejects(waiting, { name: "AbortError" });
  assert.equal((await third).exitCode, 2);
  await assert.rejects(sandbox.run("touch /tmp/never", { signal: abort.signal }), { name: "AbortError" });
  const reason = new Error("mine");
  const second = new AbortController();
  const stream = sandbox.runStream("echo x; sleep 1000", { signal: second.signal, timeoutMs: 0 });
  const loop = async () => {
    for await (const _ of stream) second.abort(reason);
  };
  await assert.rejects(loop(), /mine/);
  assert.equal((await sandbox.run("ls /tmp/never")).exitCode, 2);
});

test("a signal gives up any other call, and nothing it made is left behind", async () => {
  const busy = sandbox.run("sleep 1000", { timeoutMs: 0 });
  const gives = (call: (signal: AbortSignal) => Promise<unknown>) => {
    const abort = new AbortController();
    const called = call(abort.signal);
    abort.abort();
    return assert.rejects(called, { name: "AbortError" });
  };
  await gives((signal) => sandbox.fork(2, { signal }));
  await gives((signal) => sandbox.snapshot({ signal }));
  await gives((signal) => sandbox.env.get("x", { signal }));
  await gives((signal) => sandbox.sibling({ signal }));
  await gives((signal) => sandbox.files.read("/dev/zero", { signal }));
  await gives((signal) => Sandbox.create({ signal }));
  assert.equal(await sandbox.cancel(), true);
  assert.equal((await busy).errorClass, "CANCELLED");
  assert.deepEqual(await sandbox.siblings(), []);
});
