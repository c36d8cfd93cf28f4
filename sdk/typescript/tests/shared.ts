/** What the tests share. */

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

/** The root of the repository: this runs from `sdk/typescript/build/tests`. */
export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

/** Makes a directory of the test file's own. */
export function directory(): string {
  const made = mkdtempSync(join(tmpdir(), "wardian-ts-"));
  after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/**
 * Makes a server that misbehaves, and returns the program: `code` deals with each request after `create`; it has
 * `request` and `say`.
 */
export function fakeServer(code: string): string {
  const program = join(directory(), "wardian");
  writeFileSync(
    program,
    `#!${execPath}
const say = (message) => process.stdout.write((typeof message === "string" ? message : JSON.stringify(message)) + "\\n");
let first = true;
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const request = JSON.parse(line);
  if (first) { first = false; return say({ jsonrpc: "2.0", id: request.id, result: { ok: true } }); }
  ${code}
});
`,
  );
  chmodSync(program, 0o755);
  return program;
}

/** Waits until something is so. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((again) => setTimeout(again, 20));
}
