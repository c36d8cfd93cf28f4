/** The sandbox. */

import { bytes, field, list, type Json } from "./answers.js";
import { checkKeys, milliseconds } from "./check.js";
import { closed, Connection } from "./connection.js";
import { encode, encodeMount, type Content, type MountFiles } from "./content.js";
import { Env } from "./env.js";
import { ProtocolError } from "./errors.js";
import { Commands } from "./extensions.js";
import { Files, type CallSignal } from "./files.js";
import { done, Handle, type Origin } from "./handle.js";
import { answerRequest } from "./network.js";
import { checkOptions, createParams, type SandboxOptions } from "./options.js";
import { overlayChanges, type OverlayChange } from "./overlays.js";
import { Port } from "./port.js";
import { Processes, Pty } from "./process.js";
import { PythonResult } from "./python.js";
import { history, RunResult, sandboxInfo, type HistoryEntry, type SandboxInfo } from "./results.js";
import { answerStorage } from "./storage.js";
import { Images, persistenceParams, Saved, type CommitLike, type Persistence } from "./stores.js";
import { RunStream } from "./stream.js";
import { open } from "./transport.js";

/** What `runStream` takes. */
export interface StreamOptions extends CallSignal {
  /** Standard input; empty if left out. */
  readonly stdin?: Content;
  /** How long it may run; 0 or `Infinity` for no limit. */
  readonly timeoutMs?: number;
  /** Variables for this command only. */
  readonly env?: Readonly<Record<string, string>>;
  /** The directory for this command only. */
  readonly cwd?: string;
  /** Whether shell options and traps that it sets end with it. Variables, functions and the directory stay. */
  readonly contained?: boolean;
  /** A file of the sandbox in which all output is kept, beyond all limits of the result: see `RunResult.outputFile`. */
  readonly outputFile?: string;
}

/** What can be done with output as it arrives. What a listener returns is awaited; if it throws, the run is cancelled. */
export interface Listeners {
  readonly onStdout?: (data: string) => unknown;
  readonly onStderr?: (data: string) => unknown;
  /** Whether a result that is not `ok` is thrown as a `CommandError`. */
  readonly check?: boolean;
}

/** What `run` takes. */
export interface RunOptions extends StreamOptions, Listeners {}

/** What `pythonStream` takes. */
export interface PythonStreamOptions extends CallSignal {
  /** Names one of up to 16 interpreters, each with variables of its own. */
  readonly context?: string;
  readonly stdin?: Content;
  readonly timeoutMs?: number;
}

/** What `python` takes. */
export interface PythonOptions extends PythonStreamOptions, Listeners {}

/** What `exportState` takes. */
export interface ExportOptions extends CallSignal {
  /** Has the server write the state to this file in its state directory. */
  readonly file?: string;
}

const STREAM_OPTIONS = ["stdin", "timeoutMs", "env", "cwd", "contained", "outputFile", "signal"];
const PYTHON_OPTIONS = ["context", "stdin", "timeoutMs", "signal"];
const LISTENERS = ["onStdout", "onStderr", "check"];

/**
 * A sandbox: a shell, Unix tools, Python and files, all of it in memory.
 *
 * ```ts
 * await using sandbox = await Sandbox.create({ timeoutMs: 10_000 });
 * console.log((await sandbox.run("echo hello")).stdout);
 * ```
 *
 * A command that fails or times out is a result; it does not throw. Commands of one sandbox run one after the other,
 * everything else runs concurrently.
 */
export class Sandbox implements AsyncDisposable {
  readonly #handle: Handle;
  /** Its files. */
  readonly files: Files;
  /** Its variables. */
  readonly env: Env;
  /** Processes beside the shell, several at once. */
  readonly process: Processes;
  /** Processes at a terminal of their own. */
  readonly pty: Pty;
  /** The sandboxes in the server's store. */
  readonly saved: Saved<Sandbox>;
  /** The images in the server's store. */
  readonly images: Images;

  private constructor(handle: Handle) {
    this.#handle = handle;
    this.files = new Files(handle);
    this.env = new Env(handle);
    this.process = new Processes(handle);
    this.pty = new Pty(handle);
    this.saved = new Saved(handle, (id) => this.#beside("sibling", id));
    this.images = new Images(handle);
  }

  /** Creates a sandbox, on a server of its own unless `socket` names one. */
  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    checkOptions(options);
    const commands = new Commands(options.extensions);
    const params = createParams(options, commands.specs());
    options.signal?.throwIfAborted();
    const connection = new Connection(await open(options), async (method, given) => {
      if (method === "extension.invoke") return await commands.invoke(given);
      const onRequest = options.network?.onRequest;
      if (method === "network.request" && onRequest !== undefined) return await answerRequest(onRequest, given);
      if (options.storage !== undefined) return await answerStorage(options.storage, method, given);
      throw new Error(`this client does not answer ${method}`);
    });
    const handle = new Handle(connection, "root");
    try {
      await handle.call("create", params, done, { signal: options.signal });
    } catch (error) {
      await connection.close();
      throw error;
    }
    connection.allowLinesOf(params.limits.rpcBytes);
    return new Sandbox(handle);
  }

  /** Its id in the protocol; undefined for the first sandbox of a connection. */
  get id(): string | undefined {
    return this.#handle.id;
  }

  /** The process id of its server, if that was started for it. */
  get pid(): number | undefined {
    return this.#handle.connection.pid;
  }

  // -- running

  /** Runs a script in the shell, which keeps its variables, functions and directory from call to call. */
  async run(command: string, options: RunOptions = {}): Promise<RunResult> {
    checkKeys("run", options, [...STREAM_OPTIONS, ...LISTENERS]);
    const params = runParams(command, options);
    return await this.#perform("run", params, (answer) => new RunResult(answer), options, options.signal);
  }

  /** Runs a script and returns its output as it arrives. */
  runStream(command: string, options: StreamOptions = {}): RunStream<RunResult> {
    checkKeys("runStream", options, STREAM_OPTIONS);
    const read = (answer: Json) => new RunResult(answer);
    return new RunStream(this.#handle, "run", runParams(command, options), read, options.signal);
  }

  /** Runs code in the sandbox's own Python interpreter, which keeps its variables from call to call. */
  async python(code: string, options: PythonOptions = {}): Promise<PythonResult> {
    checkKeys("python", options, [...PYTHON_OPTIONS, ...LISTENERS]);
    const params = pythonParams(code, options);
    return await this.#perform("python.run", params, (answer) => new PythonResult(answer), options, options.signal);
  }

  /** Runs code in the sandbox's own Python interpreter and returns its output as it arrives. */
  pythonStream(code: string, options: PythonStreamOptions = {}): RunStream<PythonResult> {
    checkKeys("pythonStream", options, PYTHON_OPTIONS);
    const read = (answer: Json) => new PythonResult(answer);
    return new RunStream(this.#handle, "python.run", pythonParams(code, options), read, options.signal);
  }

  async #perform<R extends RunResult>(
    method: string,
    params: object,
    read: (answer: Json) => R,
    { onStdout, onStderr, check }: Listeners,
    signal: AbortSignal | undefined,
  ): Promise<R> {
    let result: R;
    if (onStdout === undefined && onStderr === undefined) {
      result = await this.#handle.call(method, params, read, { signal });
    } else {
      const listeners = { stdout: onStdout, stderr: onStderr };
      const stream = new RunStream(this.#handle, method, params, read, signal);
      for await (const piece of stream) await listeners[piece.stream]?.(piece.data);
      result = await stream.result();
    }
    return check === true ? result.check() : result;
  }

  /** Cancels the running command, which exits with 125; returns false if there is none. */
  async cancel(options: CallSignal = {}): Promise<boolean> {
    return await this.#call("cancel", {}, (answer) => field(answer, "cancelled", "boolean"), options);
  }

  /** Pauses all its processes. A running command's clock stops. */
  async suspend(options: CallSignal = {}): Promise<void> {
    await this.#call("sandbox.suspend", {}, done, options);
  }

  /** Resumes them. */
  async resume(options: CallSignal = {}): Promise<void> {
    await this.#call("sandbox.resume", {}, done, options);
  }

  /** Returns the commands that were run. */
  async history(options: CallSignal = {}): Promise<HistoryEntry[]> {
    return await this.#call("shell.history.list", {}, history, options);
  }

  /** Forgets them. */
  async clearHistory(options: CallSignal = {}): Promise<void> {
    await this.#call("shell.history.clear", {}, done, options);
  }

  /** Mounts files at a path. If they are writable, changes stay in the sandbox. */
  async mount(path: string, files: MountFiles, options: CallSignal & { writable?: boolean } = {}): Promise<void> {
    checkKeys("mount", options, ["writable", "signal"]);
    const params = { path, files: encodeMount(files), writable: options.writable };
    await this.#handle.call("mount", params, done, options);
  }

  /** Returns what was changed in the overlay mounted at a path (`hostMounts`). */
  async diff(path: string, options: CallSignal = {}): Promise<OverlayChange[]> {
    return await this.#call("mount.diff", { path }, overlayChanges, options);
  }

  /** Returns the same as a patch for `git apply`; files that are not text are only named. */
  async patch(path: string, options: CallSignal = {}): Promise<string> {
    return await this.#call("mount.diff", { path, patch: true }, (answer) => field(answer, "patch", "string"), options);
  }

  /**
   * Applies these changes to the directory, all of them or none, and returns them. Throws `SandboxError` (EBUSY) if the
   * directory has changed under the sandbox. `dryRun` only checks.
   */
  async apply(path: string, options: CallSignal & { dryRun?: boolean } = {}): Promise<OverlayChange[]> {
    checkKeys("apply", options, ["dryRun", "signal"]);
    return await this.#handle.call("mount.apply", { path, dryRun: options.dryRun }, overlayChanges, options);
  }

  /**
   * Returns a port of the sandbox, for requests to what a program in it serves:
   *
   * ```ts
   * await sandbox.run("python3 -m http.server 8000 > log 2>&1 &");
   * console.log((await sandbox.port(8000).request("GET", "/")).text);
   * ```
   */
  port(number: number): Port {
    return new Port(this.#handle, number);
  }

  // -- a sandbox is a value

  /** Forks the sandbox: returns a copy-on-write clone, or a list of `count` of them. */
  async fork(options?: CallSignal): Promise<Sandbox>;
  async fork(count: number, options?: CallSignal): Promise<Sandbox[]>;
  async fork(first: number | CallSignal = {}, second: CallSignal = {}): Promise<Sandbox | Sandbox[]> {
    const count = typeof first === "number" ? first : 1;
    const options = typeof first === "number" ? second : first;
    if (!Number.isInteger(count) || count < 1) throw new RangeError(`cannot fork ${count} times`);
    checkKeys("fork", options, ["signal"]);
    const read = (answer: Json) => {
      const ids = list(answer, "sandboxIds").map(String);
      if (ids.length !== count) throw new ProtocolError(`asked for ${count} forks, got ${ids.length}`);
      return ids.map((id) => this.#beside("fork", id));
    };
    const undo = (forks: Sandbox[]) => void Promise.all(forks.map((fork) => fork.destroy())).catch(() => {});
    const forks = await this.#handle.call("sandbox.fork", { count }, read, { signal: options.signal, undo });
    return typeof first === "number" ? forks : forks[0]!;
  }

  /** Creates a fresh sandbox with the same options, on the same server; one that is saved, or starts from an image, if asked. */
  async sibling(
    options: CallSignal & { label?: string; image?: string; persistence?: Persistence } = {},
  ): Promise<Sandbox> {
    checkKeys("sibling", options, ["label", "image", "persistence", "signal"]);
    const read = (answer: Json) => this.#beside("sibling", field(answer, "sandboxId", "string"));
    const undo = (sibling: Sandbox) => void sibling.destroy().catch(() => {});
    const { image, label = "" } = options;
    const params = { label, image, persistence: persistenceParams(options.persistence) };
    return await this.#handle.call("sandbox.create", params, read, { signal: options.signal, undo });
  }

  /** Returns the sandboxes created by `sibling`. */
  async siblings(options: CallSignal = {}): Promise<SandboxInfo[]> {
    return await this.#call("sandbox.list", {}, (answer) => list({ answer }, "answer").map(sandboxInfo), options);
  }

  /** Takes a snapshot of the sandbox and returns its id. */
  async snapshot(options: CallSignal = {}): Promise<string> {
    return await this.#call("snapshot.create", {}, (answer) => field(answer, "id", "string"), options);
  }

  /** Restores a snapshot, with files and shell. A snapshot can be restored many times. */
  async restore(snapshot: string, options: CallSignal = {}): Promise<void> {
    await this.#call("snapshot.restore", { id: snapshot }, done, options);
  }

  /** Saves the sandbox now; returns the number of the commit. Only if it has a name (`persistence`). */
  async save(options: CallSignal = {}): Promise<number> {
    return await this.#call("persistence.save", {}, (answer) => field(answer, "commit", "number"), options);
  }

  /** Goes back to one of its commits, by number or tag; returns the number of the commit that this makes. */
  async checkout(commit: CommitLike, options: CallSignal = {}): Promise<number> {
    const read = (answer: Json) => field(answer, "commit", "number");
    return await this.#call("persistence.checkout", { commit: String(commit) }, read, options);
  }

  /** Returns the whole sandbox as one archive, or has the server write it to a file in its state directory. */
  async exportState(options: ExportOptions & { file: string }): Promise<undefined>;
  async exportState(options?: CallSignal): Promise<Buffer>;
  async exportState(options: ExportOptions = {}): Promise<Buffer | undefined> {
    checkKeys("exportState", options, ["file", "signal"]);
    const { file } = options;
    const read = (answer: Json) => (file === undefined ? bytes(answer, "data") : undefined);
    return await this.#handle.call("persistence.export", { file }, read, { signal: options.signal });
  }

  /** Replaces the sandbox's state by an archive's. A damaged archive is an error and changes nothing. */
  async importState(state: Uint8Array | { readonly file: string }, options: CallSignal = {}): Promise<void> {
    if (!(state instanceof Uint8Array)) checkKeys("importState", state, ["file"]);
    const params = state instanceof Uint8Array ? { data: encode(state) } : { file: state.file };
    await this.#call("persistence.import", params, done, options);
  }

  /** Moves the state to the `storage` of the options. Until `rehydrate`, other calls fail with EBUSY. */
  async offload(options: CallSignal = {}): Promise<void> {
    await this.#call("offload", {}, done, options);
  }

  /** Brings the state back from the `storage`. */
  async rehydrate(options: CallSignal = {}): Promise<void> {
    await this.#call("rehydrate", {}, done, options);
  }

  // -- the end

  /**
   * Destroys this sandbox; calls after that throw. Destroying the first one stops its server; while its forks or
   * siblings live, that throws `SandboxInUseError`. To stop all of them, call `close`.
   */
  async destroy(): Promise<void> {
    const handle = this.#handle;
    if (handle.gone) return;
    if (handle.origin === "root") {
      handle.checkAlone();
      return await this.close();
    }
    const ended = handle.call(handle.origin === "fork" ? "sandbox.destroy" : "sandbox.remove", {}, done);
    // From here on, not only from the answer on.
    handle.gone = true;
    handle.connection.others.delete(handle.id!);
    await ended;
  }

  /** Stops everything immediately: this sandbox, all others of its connection, and its server if it has its own. */
  async kill(): Promise<void> {
    await this.#handle.connection.kill();
  }

  /** Ends the connection and all its sandboxes, and waits until a server of its own has exited. May be called again. */
  async close(): Promise<void> {
    await this.#handle.connection.close();
  }

  /** Closes the first sandbox of a connection, destroys any other. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#handle.origin === "root") return await this.close();
    try {
      await this.destroy();
    } catch (error) {
      // If the server is gone, so is the sandbox, which is all that was asked for.
      if (!(error instanceof Error) || !GONE.includes(error.name)) throw error;
    }
  }

  #beside(origin: Origin, id: string): Sandbox {
    return new Sandbox(this.#handle.beside(origin, id));
  }

  async #call<T>(method: string, params: object, read: (answer: Json) => T, options: CallSignal): Promise<T> {
    checkKeys(method, options, ["signal"]);
    return await this.#handle.call(method, params, read, options);
  }
}

/** The errors that mean that the server is gone. */
const GONE = [closed().name, "ProtocolError", "ServerDiedError"];

function runParams(command: string, options: StreamOptions): object {
  const { env, cwd, contained, outputFile } = options;
  return { command, env, cwd, contained, outputFile, ...common(options) };
}

function pythonParams(code: string, options: PythonStreamOptions): object {
  return { code, context: options.context, ...common(options) };
}

/** Output is asked for as base64, so that bytes that are not text are preserved. */
function common({ stdin, timeoutMs }: StreamOptions | PythonStreamOptions): object {
  return {
    encoding: "base64",
    output: true,
    stdin: stdin === undefined ? undefined : encode(stdin),
    timeoutMs: milliseconds(timeoutMs),
  };
}
