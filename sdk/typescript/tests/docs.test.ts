/** What the documentation shows is what happens: each block of TypeScript is compiled and run. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import ts from "typescript";

import { ROOT } from "./shared.js";

const PAGES = ["README.md", "docs/typescript.md", "sdk/typescript/README.md"];
/** Inside the package, so that it finds `wardian` by its own name. */
const PLACE = join(ROOT, "sdk/typescript/build/blocks");

const blocks = PAGES.flatMap((page) => {
  const found = [...readFileSync(join(ROOT, page), "utf8").matchAll(/^```ts\n([^]*?)^```$/gm)];
  return found.map((match, number) => ({ name: `${page}, block ${number + 1}`, code: match[1]! }));
});

function write(number: number, code: string): string {
  const path = join(PLACE, `block${number}.ts`);
  writeFileSync(path, code);
  return path;
}

test("every block has the right types and runs", async (context) => {
  rmSync(PLACE, { recursive: true, force: true });
  mkdirSync(PLACE, { recursive: true });
  const config = ts.readConfigFile(join(ROOT, "sdk/typescript/tsconfig.json"), (path) => ts.sys.readFile(path));
  const { options } = ts.convertCompilerOptionsFromJson(config.config.compilerOptions, join(ROOT, "sdk/typescript"));
  const files = blocks.map(({ code }, number) => write(number, code));
  const loose = { noUnusedLocals: false, noUnusedParameters: false };
  const places = { rootDir: PLACE, outDir: PLACE, typeRoots: [join(ROOT, "sdk/typescript/node_modules/@types")] };
  const program = ts.createProgram(files, { ...options, ...loose, ...places });
  const wrong = ts.getPreEmitDiagnostics(program).map((one) => {
    const name = one.file === undefined ? "" : blocks[files.indexOf(one.file.fileName)]?.name;
    return `${name}: ${ts.flattenDiagnosticMessageText(one.messageText, "\n")}`;
  });
  assert.deepEqual(wrong, []);
  program.emit();
  for (const page of PAGES) assert.ok(blocks.some(({ name }) => name.startsWith(page)), `${page} has no block`);
  for (const [number, { name }] of blocks.entries()) {
    await context.test(name, async () => void (await import(pathToFileURL(join(PLACE, `block${number}.js`)).href)));
  }
});
