/**
 * A sandbox for AI agents: a shell, Unix tools, Python and files, all of it in memory.
 *
 * ```ts
 * import { Sandbox } from "wardian";
 *
 * await using sandbox = await Sandbox.create();
 * await sandbox.files.write("/tmp/words", "pear\napple\n");
 * console.log((await sandbox.run("sort /tmp/words")).stdout);
 * ```
 *
 * @packageDocumentation
 */

export { readDirectory, type Content, type MountEntry, type MountFiles, type Source } from "./content.js";
export { Env } from "./env.js";
export {
  BinaryNotFoundError,
  CommandError,
  CommandTimeoutError,
  InvalidRequestError,
  ProtocolError,
  RequestTooLargeError,
  SandboxClosedError,
  SandboxError,
  SandboxInUseError,
  ServerDiedError,
  ServerFaultError,
  WardianError,
} from "./errors.js";
export type { Extension, ExtensionCall, ExtensionFunction, ExtensionResult, Extensions } from "./extensions.js";
export { Files, type CallSignal, type ListOptions, type WriteOptions } from "./files.js";
export type { NetworkAnswer, NetworkDecision, NetworkPolicy, NetworkRequest, OnRequest } from "./network.js";
export type { HostMount, Limits, Mount, SandboxOptions } from "./options.js";
export type { OverlayChange } from "./overlays.js";
export { Port, PortResponse, type PortRequestOptions } from "./port.js";
export {
  Process,
  Processes,
  Pty,
  type ProcessInfo,
  type ProcessOptions,
  type ProcessPiece,
  type ProcessResult,
  type ProcessStream,
  type PtyOptions,
} from "./process.js";
export { PythonResult, type PythonFailure, type PythonValue } from "./python.js";
export {
  Piece,
  RunResult,
  type ErrorClass,
  type FileEntry,
  type FileStat,
  type FileType,
  type HistoryEntry,
  type OutputFile,
  type SandboxInfo,
  type StreamName,
} from "./results.js";
export {
  Sandbox,
  type ExportOptions,
  type Listeners,
  type PythonOptions,
  type PythonStreamOptions,
  type RunOptions,
  type StreamOptions,
} from "./sandbox.js";
export type { Storage } from "./storage.js";
export { Images, Saved, type Change, type Commit, type CommitLike, type ImageInfo, type Persistence, type SavedSandbox } from "./stores.js";
export { RunStream } from "./stream.js";
export { Watch, type WatchChange, type WatchEvent } from "./watch.js";
export { ShellTool, type ShellToolOptions, type ToolAnswer } from "./tool.js";
