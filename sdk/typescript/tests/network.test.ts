/** The embedder's own say in each request. Nothing is connected: what is allowed comes from a cassette. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Sandbox, type NetworkPolicy, type NetworkRequest, type OnRequest } from "wardian";

import { directory } from "./shared.js";

const GET = "curl -s -w ' %{http_code}' ";

/** Grants api.test, where only http://api.test/there exists, and that a few times. */
function policy(onRequest: OnRequest, more: object = {}): NetworkPolicy {
  const head = { method: "GET", url: "http://api.test/there", status: 200, reason: "OK", headers: [] };
  const end = { request: createHash("sha256").digest("hex"), trailers: [] };
  const lines = [{ id: 1, ...head }, { id: 1, body: "cmVjb3JkZWQ=" }, { id: 1, end }];
  const replay = join(directory(), "cassette");
  writeFileSync(replay, lines.map((line) => JSON.stringify(line) + "\n").join("").repeat(20));
  return { allowedHosts: ["api.test"], replay, onRequest, ...more };
}

test("requests are allowed, denied or answered", async () => {
  const seen: NetworkRequest[] = [];
  const network = policy(async (request) => {
    seen.push(request);
    if (request.path === "/there") return true;
    if (request.path === "/why?a=b") return { deny: "not today" };
    if (request.path === "/mine") return { answer: { status: 201, body: "made up\n", headers: { "X-From": "me" } } };
    if (request.path === "/bytes") return { answer: { body: Uint8Array.of(255, 0) } };
    return false;
  });
  await using sandbox = await Sandbox.create({ network });
  assert.equal((await sandbox.run(GET + "http://api.test/there")).stdout, "recorded 200");
  const denied = await sandbox.run(GET + "-H 'X-Name: v' -d x 'http://api.test/why?a=b'");
  assert.equal(denied.stdout, "wardian: api.test: not today\n 403");
  assert.equal(denied.errorClass, "CAPABILITY_DENIED");
  assert.match((await sandbox.run(GET + "http://api.test/no")).stdout, / 403$/);
  const answered = (await sandbox.run("curl -si http://api.test/mine")).stdout;
  assert.equal(answered, "HTTP/1.1 201 Created\r\nX-From: me\r\nContent-Length: 8\r\n\r\nmade up\n");
  assert.equal((await sandbox.run("curl -s http://api.test/bytes | od -An -tx1")).stdout.trim(), "ff 00");
  await using fork = await sandbox.fork();
  assert.equal((await fork.run(GET + "http://api.test/there")).stdout, "recorded 200");
  const { scheme, host, port, method, path, headers } = seen[1]!;
  assert.deepEqual([scheme, host, port, method, path], ["http", "api.test", 80, "POST", "/why?a=b"]);
  assert.ok(headers.some(([name, value]) => name === "x-name" && value === "v"));
  assert.equal(seen.length, 6);
});

test("whatever is no decision denies", async () => {
  const answers: Record<string, unknown> = {
    "/none": undefined,
    "/text": "allow",
    "/one": 1,
    "/empty": {},
    "/both": { deny: "x", answer: {} },
    "/unknown": { allow: true },
    "/status": { answer: { status: 101 } },
    "/long": { answer: { body: "x".repeat(101) } },
  };
  const decide = (request: NetworkRequest): any => {
    if (request.path === "/throw") throw new Error("private details");
    return answers[request.path];
  };
  await using sandbox = await Sandbox.create({ network: policy(decide, { responseBytes: 100 }) });
  for (const path of ["/throw", ...Object.keys(answers)]) {
    const said = (await sandbox.run(`${GET}http://api.test${path}`)).stdout;
    assert.match(said, / 403$/, path);
    assert.doesNotMatch(said, /private/);
  }
  await assert.rejects(Sandbox.create({ network: { onRequest: true as any } }), /onRequest must be a function/);
});
