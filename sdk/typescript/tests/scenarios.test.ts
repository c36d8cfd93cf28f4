/** The scenarios that every SDK runs alike: see `sdk/scenarios`. */

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Sandbox, SandboxError, type MountEntry, type OverlayChange, type PythonResult, type RunResult } from "wardian";
import { ROOT } from "./shared.js";

const SCENARIOS = join(ROOT, "sdk/scenarios");

interface Step {
  do: string;
  on?: string;
  with?: Record<string, any>;
  as?: string;
  expect?: Record<string, unknown>;
  error?: { class: string; errno?: string };
}

/** What the steps have created, by name. */
interface World {
  sandboxes: Map<string, Sandbox>;
  values: Map<string, any>;
}

type Action = (sandbox: Sandbox, given: Record<string, any>, step: Step, world: World) => Promise<unknown>;

const base64 = (data: string) => Buffer.from(data, "base64");

function runFields(result: RunResult): Record<string, unknown> {
  const { exitCode, stdout, stderr, output, ok, timedOut, errorClass, limit, truncated, outputFile } = result;
  return {
    ...{ exitCode, stdout, stderr, output, ok, timedOut, errorClass: errorClass ?? null, limit: limit ?? null },
    stdoutBase64: result.stdoutBytes.toString("base64"),
    outputFile: outputFile === undefined ? null : [outputFile.path, outputFile.bytes, outputFile.error ?? null],
    ...{ truncatedStdout: truncated.stdout, truncatedStderr: truncated.stderr },
  };
}

function pythonFields(result: PythonResult): Record<string, unknown> {
  return {
    ...runFields(result),
    repr: result.value?.repr ?? null,
    displays: result.displays.map((one) => one.repr),
    errorType: result.error?.type ?? null,
    errorMessage: result.error?.message ?? null,
  };
}

function options({ stdinBase64, ...rest }: Record<string, any>): Record<string, any> {
  return stdinBase64 === undefined ? rest : { ...rest, stdin: base64(stdinBase64) };
}

function mountFiles(files: Record<string, any>): Record<string, MountEntry> {
  const entry = (one: any): MountEntry => {
    if (typeof one === "string") return base64(one);
    return "dataBase64" in one ? { content: base64(one.dataBase64), mode: one.mode } : one;
  };
  return Object.fromEntries(Object.entries(files).map(([name, one]) => [name, entry(one)]));
}

const changes = (found: OverlayChange[]) => ({ changes: found.map((one) => [one.path, one.change, one.type, one.mode ?? null]) });

/** A commit that an earlier step has listed, or one by its own number or tag. */
const named = (world: World, commit: any): any => world.values.get(commit) ?? commit;

const ACTIONS: Record<string, Action> = {
  run: async (sandbox, { command, ...rest }) => runFields(await sandbox.run(command, options(rest))),
  stream: async (sandbox, { command, ...rest }) => {
    const stream = sandbox.runStream(command, options(rest));
    const pieces: [string, string][] = [];
    for await (const piece of stream) pieces.push([piece.stream, piece.data]);
    return { pieces, ...runFields(await stream.result()) };
  },
  python: async (sandbox, { code, ...rest }) => pythonFields(await sandbox.python(code, options(rest))),
  cancel: async (sandbox) => ({ cancelled: await sandbox.cancel() }),
  suspend: (sandbox) => sandbox.suspend(),
  resume: (sandbox) => sandbox.resume(),
  history: async (sandbox) => ({ commands: (await sandbox.history()).map((entry) => entry.command) }),
  "history.clear": (sandbox) => sandbox.clearHistory(),
  "env.set": (sandbox, { name, value }) => sandbox.env.set(name, value),
  "env.get": async (sandbox, { name }) => ({ value: (await sandbox.env.get(name)) ?? null }),
  "files.write": (sandbox, { path, dataBase64, mode }) =>
    sandbox.files.write(path, base64(dataBase64), mode === undefined ? {} : { mode }),
  "files.read": async (sandbox, { path }) => ({ dataBase64: (await sandbox.files.read(path)).toString("base64") }),
  "files.readText": async (sandbox, { path }) => ({ text: await sandbox.files.readText(path) }),
  "files.stat": (sandbox, { path }) => sandbox.files.stat(path),
  "files.exists": async (sandbox, { path }) => ({ exists: await sandbox.files.exists(path) }),
  "files.mkdir": (sandbox, { path }) => sandbox.files.mkdir(path),
  "files.remove": (sandbox, { path }) => sandbox.files.remove(path),
  "files.list": async (sandbox, { path, ...rest }) => {
    const entries = await sandbox.files.list(path, rest);
    return { names: entries.map((e) => e.name), types: entries.map((e) => e.type), sizes: entries.map((e) => e.size) };
  },
  mount: (sandbox, { path, files, writable }) => sandbox.mount(path, mountFiles(files), { writable }),
  diff: async (sandbox, { path }) => changes(await sandbox.diff(path)),
  patch: async (sandbox, { path }) => ({ patch: await sandbox.patch(path) }),
  apply: async (sandbox, { path, ...rest }) => changes(await sandbox.apply(path, rest)),
  snapshot: async (sandbox, _, step, world) => void world.values.set(step.as!, await sandbox.snapshot()),
  restore: (sandbox, { snapshot, id }, _, world) => sandbox.restore(id ?? world.values.get(snapshot)),
  export: async (sandbox, _, step, world) => void world.values.set(step.as!, await sandbox.exportState()),
  import: (sandbox, { state }, _, world) => sandbox.importState(world.values.get(state)),
  importData: (sandbox, { dataBase64 }) => sandbox.importState(base64(dataBase64)),
  fork: async (sandbox, { count }, step, world) => {
    const forks = await sandbox.fork(count as number);
    forks.forEach((fork, number) => world.sandboxes.set(`${step.as}.${number}`, fork));
  },
  sibling: async (sandbox, given, step, world) => void world.sandboxes.set(step.as!, await sandbox.sibling(given)),
  save: (sandbox) => sandbox.save(),
  checkout: (sandbox, { commit }, _, world) => sandbox.checkout(named(world, commit)),
  "saved.open": async (sandbox, { name, ...rest }, step, world) =>
    void world.sandboxes.set(step.as!, await sandbox.saved.open(name, rest)),
  "saved.list": async (sandbox) => ({ names: (await sandbox.saved.list()).map((one) => one.name) }),
  "saved.log": async (sandbox, { name }, step, world) => {
    const commits = await sandbox.saved.log(name);
    commits.forEach((commit, number) => world.values.set(`${step.as}.${number}`, commit.id));
    return { commands: commits.map((one) => one.command), exitCodes: commits.map((one) => one.exitCode ?? null) };
  },
  "saved.diff": async (sandbox, { name, from, to }, _, world) => {
    const changes = await sandbox.saved.diff(name, named(world, from), named(world, to));
    return { changes: changes.map((one) => [one.path, one.change]) };
  },
  "saved.branch": (sandbox, { name, newName, commit }, _, world) =>
    sandbox.saved.branch(name, newName, named(world, commit)),
  "saved.tag": (sandbox, { name, tag, commit }, _, world) => sandbox.saved.tag(name, tag, named(world, commit)),
  "saved.delete": (sandbox, { name }) => sandbox.saved.delete(name),
  "images.save": (sandbox, { name, script }) => sandbox.images.save(name, { script }),
  "images.list": async (sandbox) => {
    const images = await sandbox.images.list();
    return { names: images.map((one) => one.name), scripts: images.map((one) => one.script) };
  },
  "images.export": async (sandbox, { name }, step, world) =>
    void world.values.set(step.as!, await sandbox.images.export(name)),
  "images.load": (sandbox, { name, image }, _, world) => sandbox.images.load(name, world.values.get(image) as Buffer),
  "images.delete": (sandbox, { name }) => sandbox.images.delete(name),
  siblings: async (sandbox) => ({ labels: (await sandbox.siblings()).map((one) => one.label) }),
  destroy: (sandbox) => sandbox.destroy(),
};

for (const name of readdirSync(SCENARIOS).filter((name) => name.endsWith(".json"))) {
  test(`the scenario ${name}`, async (after) => {
    const scenario = JSON.parse(readFileSync(join(SCENARIOS, name), "utf8")) as { options: any; steps: Step[] };
    const { mounts, hostMounts, store, ...rest } = scenario.options;
    const directory = store === true || hostMounts !== undefined ? mkdtempSync(join(tmpdir(), "wardian-store-")) : undefined;
    if (directory !== undefined) after.after(() => rmSync(directory, { recursive: true, force: true }));
    const given = { ...rest, mounts: (mounts ?? []).map((one: any) => ({ ...one, files: mountFiles(one.files) })), store: store === true ? directory : undefined, hostMounts: hostMounts?.map((one: any) => ({ ...one, host: directory })) };
    await using main = await Sandbox.create(given);
    const world: World = { sandboxes: new Map([["main", main]]), values: new Map() };
    for (const [number, step] of scenario.steps.entries()) {
      const where = `step ${number} of ${name}: ${JSON.stringify(step)}`;
      const action = ACTIONS[step.do];
      assert(action !== undefined, `unknown call in ${where}`);
      const done = action(world.sandboxes.get(step.on ?? "main")!, step.with ?? {}, step, world);
      if (step.error !== undefined) {
        const error: any = await done.then(() => assert.fail(`nothing was thrown in ${where}`), (thrown) => thrown);
        assert.equal(error.name, step.error.class, `${where}: ${error.message}`);
        if (step.error.errno !== undefined) assert.equal((error as SandboxError).errno, step.error.errno, where);
      } else {
        const result = ((await done) ?? {}) as Record<string, unknown>;
        for (const [field, value] of Object.entries(step.expect!)) assert.deepEqual(result[field], value, `${field} in ${where}`);
      }
    }
  });
}
