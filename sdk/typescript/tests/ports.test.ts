/** Ports that programs in a sandbox listen at. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";

import { Sandbox, SandboxError } from "wardian";

const SERVER = `
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("X-Name", self.headers["X-Name"] or "")
        self.send_header("X-Name", "again")
        self.end_headers()
        self.wfile.write(self.path.encode() + b" " + body)
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        while self.path == "/endless":
            self.wfile.write(b"x" * 65536)
        self.wfile.write(b'{"a": 1}')
http.server.HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
`;

let sandbox: Sandbox;
before(async () => {
  sandbox = await Sandbox.create({ http: 0 });
  await sandbox.files.write("/tmp/server.py", SERVER);
  await sandbox.run("python3 /tmp/server.py > /tmp/log 2>&1 &", { check: true });
  await listens(8000);
});
after(() => sandbox.close());

async function listens(port: number): Promise<void> {
  await sandbox.run(`until ss -ltn | grep -q :${port}; do sleep 0.05; done`, { check: true });
}

function errno(expected: string): (error: unknown) => boolean {
  return (error) => error instanceof SandboxError && error.errno === expected;
}

test("a request reaches a server in the sandbox", async () => {
  const body = Buffer.alloc(1_000_000, "0123456789");
  const response = await sandbox.port(8000).request("POST", "/a?b=c", { headers: { "X-Name": "x" }, body });
  assert.deepEqual([response.status, response.reason, response.headers["x-name"]], [201, "Created", "x, again"]);
  assert.deepEqual(response.body, Buffer.concat([Buffer.from("/a?b=c "), body]));
  assert.deepEqual((await sandbox.port(8000).request("GET")).json(), { a: 1 });
});

test("what cannot be reached is an error", async () => {
  for (const number of [0, 65_536, -1, 1.5]) assert.throws(() => sandbox.port(number), RangeError);
  await assert.rejects(sandbox.port(81).request("GET"), errno("ECONNREFUSED"));
  await assert.rejects(sandbox.port(8000).request("GET", "/", { timeout: 3 } as never), /unknown option 'timeout'/);
});

test("endless and silent servers end at their limits", async () => {
  await assert.rejects(sandbox.port(8000).request("GET", "/endless", { maxBytes: 1 << 20 }), errno("EFBIG"));
  await sandbox.run("nc -l -k 9000 > /dev/null 2>&1 < /dev/zero &");
  await sandbox.run("sleep 1000 | nc -l 9001 > /dev/null 2>&1 &");
  await listens(9001);
  await assert.rejects(sandbox.port(9001).request("GET", "/", { timeoutMs: 300 }), errno("ETIMEDOUT"));
  await assert.rejects(sandbox.port(9000).request("GET"), errno("EPROTO"));
  assert.equal((await sandbox.run("echo alive")).stdout, "alive\n");
});

test("a request is given up by its signal", async () => {
  await sandbox.run("sleep 1000 | nc -l 9002 > /dev/null 2>&1 &");
  await listens(9002);
  const signal = AbortSignal.timeout(300);
  await assert.rejects(sandbox.port(9002).request("GET", "/", { signal, timeoutMs: Infinity }), { name: "TimeoutError" });
});

test("a connection carries bytes both ways, and each way ends by itself", async () => {
  const count = `
import socket
one, _ = socket.create_server(("127.0.0.1", 9004)).accept()
total = 0
while data := one.recv(65536):
    total += len(data)
one.sendall(str(total).encode() * 100000)
`;
  await sandbox.files.write("/tmp/count.py", count);
  await sandbox.run("python3 /tmp/count.py > /tmp/log 2>&1 &");
  await listens(9004);
  const stream = await sandbox.port(9004).connect();
  stream.end(Buffer.alloc(2_000_000, "x"));
  let said = "";
  stream.on("data", (piece: Buffer) => (said += piece.toString()));
  await once(stream, "end");
  assert.equal(said, "2000000".repeat(100_000));
});

test("a port has an address if the server serves HTTP", async () => {
  const response = await fetch(await sandbox.port(8000).url());
  assert.deepEqual(await response.json(), { a: 1 });
  await using other = await Sandbox.create();
  await assert.rejects(other.port(8000).url(), errno("ENOTSUP"));
});

test("a server lives as long as it was given", async () => {
  await using short = await Sandbox.create({ backgroundTimeoutMs: 300 });
  await short.run("nc -l -k 9000 > /dev/null 2>&1 < /dev/null &");
  await short.run("until ! ss -ltn | grep -q :9000; do sleep 0.05; done", { check: true });
  await assert.rejects(Sandbox.create({ backgroundTimeoutMs: -1 }), TypeError);
});
