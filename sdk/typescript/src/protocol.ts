/**
 * The types of the protocol: what each method takes and answers. Written by `cargo xtask contract`.
 *
 * @module
 */

/** Bytes that were taken from a process. */
export interface AckProcess {
  /** How many. */
  readonly bytes: number;
  /** Its id. */
  readonly processId: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** Bytes that were taken from a connection. */
export interface AckStream {
  /** How many. */
  readonly bytes: number;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** Its id. */
  readonly streamId: string;
}

/** What was applied. */
export interface Applied {
  /** By path. */
  readonly changes: readonly (OverlayChange)[];
}

/** An overlay. */
export interface ApplyOverlay {
  /** Whether everything is only checked. False by default. */
  readonly dryRun?: boolean | null | undefined;
  /** Where it is mounted. */
  readonly path: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A sandbox from a commit of another. */
export interface Branch {
  /** The number or tag of the commit; the last by default. */
  readonly commit?: string | null | undefined;
  /** The name of a sandbox. */
  readonly name: string;
  /** The name of the new one. */
  readonly newName: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** Which run to cancel. */
export interface Cancel {
  /** The id of its request; the first unfinished run by default. */
  readonly requestId?: string | number | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** Whether there was a run to cancel. */
export interface Cancelled {
  /** Whether there was one. */
  readonly cancelled: boolean;
  /** True. */
  readonly ok: boolean;
}

/** What the server can do. */
export interface Capabilities {
  /** How long an answer may be. */
  readonly answerBytes: number;
  /** How many connections to ports a client may have. */
  readonly connections: number;
  /** Whether it serves HTTP. */
  readonly http: boolean;
  /** The limits of a sandbox that asks for no others. */
  readonly limits: Readonly<Record<string, number>>;
  /** How many sandboxes all clients may have. */
  readonly maxSandboxes: number;
  /** Its methods. */
  readonly methods: readonly string[];
  /** How many processes a client may have beside its shells. */
  readonly processes: number;
  /** Whether it has a directory for states. */
  readonly stateDirectory: boolean;
  /** Its version. */
  readonly version: string;
}

/** A file that differs. */
export interface Change {
  /** `A`, `M` or `D`: added, modified or deleted. */
  readonly change: string;
  /** Its path. */
  readonly path: string;
}

/** What differs between two commits. */
export interface Changes {
  /** The files. */
  readonly changes: readonly (Change)[];
}

/** A commit of an open sandbox. */
export interface Checkout {
  /** Its number or tag. */
  readonly commit: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A path and its permissions. */
export interface Chmod {
  /** Permission bits. */
  readonly mode: number;
  /** The path. */
  readonly path: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** What is known of a commit. */
export interface Commit {
  /** How much it added to the store. */
  readonly bytes: number;
  /** The command that it is the result of. */
  readonly command: string;
  /** Its number. */
  readonly commit: number;
  /** That command's exit code. */
  readonly exitCode?: number | null | undefined;
  /** The number of the one before. */
  readonly parent?: number | null | undefined;
  /** Its tags. */
  readonly tags: readonly string[];
  /** When it was made. */
  readonly timeMs: number;
}

/** What was done in a sandbox. */
export interface Commits {
  /** Newest first. */
  readonly commits: readonly (Commit)[];
}

/** A commit. */
export interface Committed {
  /** Its number. */
  readonly commit: number;
}

/** A connection. */
export interface Connected {
  /** Its id. */
  readonly streamId: string;
}

/** The first sandbox of a client, and the options of all others. */
export interface Create {
  /** How long processes in the background may outlive their command; 0: as long as the sandbox lives. 600000 by default. */
  readonly backgroundTimeoutMs?: number | null | undefined;
  /** Where the shell starts. /home/user by default. */
  readonly cwd?: string | null | undefined;
  /** The shell's variables. */
  readonly env?: Readonly<Record<string, string>> | null | undefined;
  /** Functions of the client as commands. */
  readonly extensions?: readonly (Extension)[] | null | undefined;
  /** How many bytes all files may have together. 268435456 by default. */
  readonly fsLimitBytes?: number | null | undefined;
  /** Directories of the server's machine below those that `serve --allow-mount` names, at most 16. */
  readonly hostMounts?: readonly (HostMount)[] | null | undefined;
  /** The name of an image to start from, in the server's store. */
  readonly image?: string | null | undefined;
  /** The other limits. */
  readonly limits?: Limits | null | undefined;
  /** Files given as bytes. */
  readonly mounts?: readonly (Mount)[] | null | undefined;
  /** What may be reached outside (docs/network.md); nothing by default. */
  readonly network?: object | null | undefined;
  /** From 0 to 19: a smaller share of the processor. 0 by default. */
  readonly nice?: number | null | undefined;
  /** Whether the files of a command that is killed are kept or restored. "keep" by default. */
  readonly onKill?: OnKill | null | undefined;
  /** Under which name it is saved in the server's store, and when: `name`, `mode`, `durability`, `autosaveMs`, `idleSeconds`. */
  readonly persistence?: object | null | undefined;
  /** How many shells the server keeps ready. */
  readonly pool?: Pool | null | undefined;
  /** Directories where Python looks first. */
  readonly pythonPath?: readonly string[] | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** Which programs may run, and limits. */
  readonly security?: Security | null | undefined;
  /** Accepted and ignored. */
  readonly shellWasmPath?: unknown | undefined;
  /** A secret of 16 to 256 bytes that makes state files and names this client's own. */
  readonly stateToken?: string | null | undefined;
  /** Whether the client stores states, for `offload`. False by default. */
  readonly storage?: boolean | null | undefined;
  /** How long a command may run; 0: no limit. 30000 by default. */
  readonly timeoutMs?: number | null | undefined;
  /** Accepted and ignored: for servers that have to be told where their programs are. */
  readonly wasmDir?: unknown | undefined;
  /** Absolute paths outside of which everything is read-only. */
  readonly writablePaths?: readonly string[] | null | undefined;
}

/** A sandbox with the options of `create`. */
export interface CreateNamed {
  /** The name of an image to start from. */
  readonly image?: string | null | undefined;
  /** What lists show of it, at most 256 bytes. */
  readonly label?: string | null | undefined;
  /** Under which name it is saved, and when. */
  readonly persistence?: object | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** Two commits. */
export interface Diff {
  /** The number or tag of one. */
  readonly from: string;
  /** The name of a sandbox. */
  readonly name: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** The number or tag of the other; the last by default. */
  readonly to?: string | null | undefined;
}

/** An overlay. */
export interface DiffOverlay {
  /** Whether the answer also has the changes as a patch for `git apply`. False by default. */
  readonly patch?: boolean | null | undefined;
  /** Where it is mounted. */
  readonly path: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** It is done. */
export interface Done {
  /** True. */
  readonly ok: boolean;
}

/** How output travels. */
export type Encoding = "utf-8" | "base64";

/** How a process ended. */
export interface Ended {
  /** Why it was ended. */
  readonly errorClass?: string | null | undefined;
  /** How long it ran. */
  readonly executionTimeMs: number;
  /** The exit code. */
  readonly exitCode: number;
  /** The limit that was hit. */
  readonly limit?: string | null | undefined;
  /** The signal that ended it. */
  readonly signal?: number | null | undefined;
}

/** Where an image goes. */
export interface ExportImage {
  /** The name of a file in the state directory; without it the answer has the image. */
  readonly file?: string | null | undefined;
  /** Its name. */
  readonly name: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** Where a state goes. */
export interface ExportState {
  /** The name of a file in the state directory; without it the answer has the state. */
  readonly file?: string | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A state, or that it is in its file. */
export interface Exported {
  /** The state, in base64. */
  readonly data?: string | null | undefined;
  /** True, if it is in its file. */
  readonly ok?: boolean | null | undefined;
}

/** A function of the client as a command. */
export interface Extension {
  /** Under which heading it is listed. */
  readonly category?: string | null | undefined;
  /** What it does, for its help. */
  readonly description?: string | null | undefined;
  /** Examples of its use. */
  readonly examples?: readonly string[] | null | undefined;
  /** Whether there is a command; without it there is only a package. True by default. */
  readonly hasCommand?: boolean | null | undefined;
  /** The command's name. */
  readonly name: string;
  /** A package for Python. */
  readonly pythonPackage?: PythonPackage | null | undefined;
  /** How it is used. */
  readonly usage?: string | null | undefined;
}

/** A file's content, or a part of it. */
export interface FileData {
  /** The content, in base64. */
  readonly data: string;
  /** Of a part: the size of the whole file. */
  readonly size?: number | null | undefined;
}

/** A file in a directory. */
export interface FileEntry {
  /** Its name; a path below the directory if that was listed with everything below it. */
  readonly name: string;
  /** Its size in bytes. */
  readonly size: number;
  /** `file`, `dir` or `symlink`. */
  readonly type: string;
}

/** What is known of a file. */
export interface FileStat {
  /** Its permission bits. */
  readonly mode: number;
  /** When it was last written. */
  readonly mtimeMs: number;
  /** Its name. */
  readonly name: string;
  /** Its size in bytes. */
  readonly size: number;
  /** `file`, `dir` or `symlink`. */
  readonly type: string;
}

/** How many forks. */
export interface Fork {
  /** How many. 1 by default. */
  readonly count?: number | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** New forks. */
export interface Forked {
  /** The first. */
  readonly sandboxId: string;
  /** All of them, if a number was asked for. */
  readonly sandboxIds?: readonly string[] | null | undefined;
}

/** A path and another. */
export interface FromTo {
  /** The path. */
  readonly path: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** The other path. */
  readonly to: string;
}

/** The last commands. */
export interface History {
  /** The oldest first. */
  readonly entries: readonly (HistoryEntry)[];
}

/** A command that was run. */
export interface HistoryEntry {
  /** The command. */
  readonly command: string;
  /** Its number. */
  readonly index: number;
  /** When that was. */
  readonly timestamp: number;
}

/** What can be changed of a directory of the server's machine. */
export type HostMode = "ro" | "rw" | "overlay";

/** A directory of the server's machine. */
export interface HostMount {
  /** Its absolute path there. */
  readonly host: string;
  /** What of it can be changed. "ro" by default. */
  readonly mode?: HostMode | null | undefined;
  /** Where it is in the sandbox. */
  readonly path: string;
}

/** An image. */
export interface ImageInfo {
  /** The image that it was made from, if that is the client's. */
  readonly base?: string | null | undefined;
  /** When it was saved. */
  readonly createdMs: number;
  /** Its name. */
  readonly name: string;
  /** What made it. */
  readonly script: string;
  /** The version of Wardian that made it. */
  readonly version: string;
}

/** Images in the store. */
export interface Images {
  /** By their names. */
  readonly images: readonly (ImageInfo)[];
}

/** An exported image, as bytes or as a file in the state directory. */
export interface ImportImage {
  /** The image. */
  readonly data?: string | null | undefined;
  /** The name of its file. */
  readonly file?: string | null | undefined;
  /** Its name, which must be new. */
  readonly name: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A state, as bytes or as a file in the state directory. */
export interface ImportState {
  /** The state. */
  readonly data?: string | null | undefined;
  /** The name of its file. */
  readonly file?: string | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** Limits of a sandbox. */
export interface Limits {
  /** How long a command may be. 65536 by default. */
  readonly commandBytes?: number | null | undefined;
  /** How many files there may be. 1000000 by default. */
  readonly fileCount?: number | null | undefined;
  /** Memory of all processes together. 1073741824 by default. */
  readonly memoryBytes?: number | null | undefined;
  /** How many files each process may have open. 256 by default. */
  readonly openFiles?: number | null | undefined;
  /** How many processes there may be at once. 256 by default. */
  readonly processes?: number | null | undefined;
  /** The longest line that the server accepts. 8388608 by default. */
  readonly rpcBytes?: number | null | undefined;
  /** How much of standard error is kept. 1048576 by default. */
  readonly stderrBytes?: number | null | undefined;
  /** How much of standard output is kept. 1048576 by default. */
  readonly stdoutBytes?: number | null | undefined;
}

/** A directory. */
export interface ListFiles {
  /** The path. */
  readonly path: string;
  /** Everything below it. False by default. */
  readonly recursive?: boolean | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A directory. */
export interface Listing {
  /** What is in it, sorted by name. */
  readonly entries: readonly (FileEntry)[];
}

/** Which commits to list. */
export interface Log {
  /** Those before this one. */
  readonly before?: number | null | undefined;
  /** How many, at most 1000. 100 by default. */
  readonly limit?: number | null | undefined;
  /** The name of a sandbox. */
  readonly name: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** Files of a new sandbox. */
export interface Mount {
  /** The files, by their paths below it. */
  readonly files: Readonly<Record<string, MountFile>>;
  /** Where. */
  readonly path: string;
  /** Whether they can be written to. False by default. */
  readonly writable?: boolean | null | undefined;
}

/** A file, a directory or a link; one of `data`, `dir` and `link`. */
export interface MountEntry {
  /** The content of a file. */
  readonly data?: string | null | undefined;
  /** Whether it is a directory. */
  readonly dir?: boolean | null | undefined;
  /** What a symbolic link leads to. */
  readonly link?: string | null | undefined;
  /** Permission bits of a file (0644) or a directory (0755). */
  readonly mode?: number | null | undefined;
}

/**  */
export type MountFile = string | MountEntry;

/** Files to mount. */
export interface MountFiles {
  /** The files, by their paths below it. */
  readonly files: Readonly<Record<string, MountFile>>;
  /** Where. */
  readonly path: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** Whether they can be written to. False by default. */
  readonly writable?: boolean | null | undefined;
}

/** Nothing but a sandbox. */
export interface Nothing {
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** What becomes of files when a command is killed. */
export type OnKill = "keep" | "rollback";

/** A sandbox of the server's store. */
export interface OpenStored {
  /** After how many seconds without a call it leaves memory, until the next one. As the server says by default. */
  readonly idleSeconds?: number | null | undefined;
  /** Its name. */
  readonly name: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A sandbox, which has to be named. */
export interface OtherSandbox {
  /** Its id. */
  readonly sandboxId: string;
}

/** A file with the output of a run. */
export interface OutputFile {
  /** How many bytes of the output it has. */
  readonly bytes: number;
  /** Why the rest is not in it: an errno's name. ENOSPC: no room; ESTALE: something else has changed it. */
  readonly error?: string | null | undefined;
  /** Its absolute path. */
  readonly path: string;
}

/** A difference. */
export interface OverlayChange {
  /** `A`, `M`, `D` or `P`: added, modified, deleted, or with other permissions. */
  readonly change: string;
  /** Its permission bits, or those it had; of what is modified none. */
  readonly mode?: number | null | undefined;
  /** The path below the mount. */
  readonly path: string;
  /** `file`, `dir` or `symlink`; of what is deleted, what it was. */
  readonly type: string;
}

/** What differs between an overlay and the directory below it. */
export interface OverlayDiff {
  /** By path; a file with new content and new permissions is there twice. */
  readonly changes: readonly (OverlayChange)[];
  /** The same as a patch for `git apply`, if asked for. Files that are not text are only named. */
  readonly patch?: string | null | undefined;
}

/** A path. */
export interface Path {
  /** The path. */
  readonly path: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** How many shells the server keeps ready. */
export interface Pool {
  /** How many at most. */
  readonly maxSize?: number | null | undefined;
  /** How many at least. */
  readonly minSize?: number | null | undefined;
}

/** A port. */
export interface PortNumber {
  /** From 1 to 65535. */
  readonly port: number;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** Where a port is served by HTTP. */
export interface PortUrl {
  /** Its path. */
  readonly path: string;
  /** The address. */
  readonly url: string;
}

/** A process. */
export interface ProcessId {
  /** Its id. */
  readonly processId: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A process that runs. */
export interface ProcessInfo {
  /** What it was started with. */
  readonly command: string;
  /** Its number in the sandbox. */
  readonly pid: number;
  /** Its id. */
  readonly processId: string;
  /** Whether it has a terminal. */
  readonly pty: boolean;
}

/** The processes that run. */
export interface ProcessList {
  /** By their ids. */
  readonly processes: readonly (ProcessInfo)[];
}

/** An exception. */
export interface PythonError {
  /** Its message. */
  readonly message: string;
  /** Its lines. */
  readonly traceback: readonly string[];
  /** The name of its class. */
  readonly type: string;
}

/** A package for Python. */
export interface PythonPackage {
  /** Its files, as text, by their paths. */
  readonly files?: Readonly<Record<string, string>> | null | undefined;
  /** What it is. */
  readonly summary?: string | null | undefined;
  /** Its version. */
  readonly version?: string | null | undefined;
}

/** How code went. */
export interface PythonResult {
  /** What was displayed. */
  readonly displays?: readonly (Shown)[] | null | undefined;
  /** The uncaught exception. */
  readonly error?: PythonError | null | undefined;
  /** Why it was ended: TIMEOUT, CANCELLED, LIMIT_EXCEEDED or CAPABILITY_DENIED. */
  readonly errorClass?: string | null | undefined;
  /** How long it took. */
  readonly executionTimeMs: number;
  /** The exit code. */
  readonly exitCode: number;
  /** The first limit that was hit. */
  readonly limit?: string | null | undefined;
  /** Both streams in order, if asked for. */
  readonly output?: string | null | undefined;
  /** What was written to standard error. */
  readonly stderr: string;
  /** What was written to standard output. */
  readonly stdout: string;
  /** Which streams were cut. */
  readonly truncated?: Truncated | null | undefined;
  /** The last expression's value, unless that is None. */
  readonly value?: Shown | null | undefined;
  /** Whether something was too long to be shown whole. */
  readonly valueTruncated?: boolean | null | undefined;
  /** How long it waited for programs to be compiled. */
  readonly waitedMs?: number | null | undefined;
}

/** A file, or a part of it. */
export interface ReadFile {
  /** How long the part is. 1048576 by default, if there is an offset. */
  readonly length?: number | null | undefined;
  /** Where the part begins. */
  readonly offset?: number | null | undefined;
  /** The path. */
  readonly path: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** The size of a process' terminal. */
export interface ResizeProcess {
  /** How many columns. */
  readonly columns: number;
  /** Its id. */
  readonly processId: string;
  /** How many rows. */
  readonly rows: number;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A command for the shell. */
export interface Run {
  /** The script. */
  readonly command: string;
  /** Whether shell options and traps that it sets end with it. False by default. */
  readonly contained?: boolean | null | undefined;
  /** Where this command runs. */
  readonly cwd?: string | null | undefined;
  /** How output travels. "utf-8" by default. */
  readonly encoding?: Encoding | null | undefined;
  /** Variables for this command only. */
  readonly env?: Readonly<Record<string, string>> | null | undefined;
  /** What becomes of files when this command is killed. As `create` said by default. */
  readonly onKill?: OnKill | null | undefined;
  /** Whether the result has both streams in one, in order. False by default. */
  readonly output?: boolean | null | undefined;
  /** A file of the sandbox in which all of the output is kept, both streams in order, beyond all limits of the result. */
  readonly outputFile?: string | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** Standard input. */
  readonly stdin?: string | null | undefined;
  /** Whether output is also sent as it is written. False by default. */
  readonly stream?: boolean | null | undefined;
  /** How long it may run; 0: no limit. As `create` said by default. */
  readonly timeoutMs?: number | null | undefined;
}

/** Code for an interpreter that stays. */
export interface RunPython {
  /** The code. */
  readonly code: string;
  /** Which interpreter. "main" by default. */
  readonly context?: string | null | undefined;
  /** How output travels. "utf-8" by default. */
  readonly encoding?: Encoding | null | undefined;
  /** Whether the result has both streams in one, in order. False by default. */
  readonly output?: boolean | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** Standard input. */
  readonly stdin?: string | null | undefined;
  /** Whether output is also sent as it is written. False by default. */
  readonly stream?: boolean | null | undefined;
  /** How long it may run; 0: no limit. As `create` said by default. */
  readonly timeoutMs?: number | null | undefined;
}

/** How a run went. */
export interface RunResult {
  /** Why it was ended: TIMEOUT, CANCELLED, LIMIT_EXCEEDED or CAPABILITY_DENIED. */
  readonly errorClass?: string | null | undefined;
  /** How long it took. */
  readonly executionTimeMs: number;
  /** The exit code. */
  readonly exitCode: number;
  /** The first limit that was hit. */
  readonly limit?: string | null | undefined;
  /** Both streams in order, if asked for. */
  readonly output?: string | null | undefined;
  /** What became of `outputFile`. */
  readonly outputFile?: OutputFile | null | undefined;
  /** What was written to standard error. */
  readonly stderr: string;
  /** What was written to standard output. */
  readonly stdout: string;
  /** Which streams were cut. */
  readonly truncated?: Truncated | null | undefined;
  /** How long it waited for programs to be compiled. */
  readonly waitedMs?: number | null | undefined;
}

/** Whether a run is unfinished. */
export interface Running {
  /** Whether one is. */
  readonly running: boolean;
}

/** A new sandbox. */
export interface SandboxCreated {
  /** Its id. */
  readonly sandboxId: string;
}

/** A sandbox. */
export interface SandboxInfo {
  /** Whether it is out of memory until its next call. */
  readonly asleep: boolean;
  /** When that was. */
  readonly createdAt: string;
  /** What it was created with. */
  readonly label?: string | null | undefined;
  /** Its id. */
  readonly sandboxId: string;
}

/** An image of a sandbox as it is. */
export interface SaveImage {
  /** The name of the image that it was made from. */
  readonly base?: string | null | undefined;
  /** Its name, which must be new. */
  readonly name: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** The script it was made with, for reference. */
  readonly script?: string | null | undefined;
}

/** The size of a terminal. */
export interface Screen {
  /** How many columns. */
  readonly columns: number;
  /** How many rows. */
  readonly rows: number;
}

/** What may run. */
export interface Security {
  /** Another place for `limits`. */
  readonly limits?: Limits | null | undefined;
  /** The programs and builtins that may run; all by default. */
  readonly toolAllowlist?: readonly string[] | null | undefined;
}

/** A variable and its value. */
export interface SetVariable {
  /** Its name. */
  readonly name: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** Its value. */
  readonly value: string;
}

/** A value, in the forms that it has. */
export interface Shown {
  /** As HTML. */
  readonly html?: string | null | undefined;
  /** As JSON. */
  readonly json?: unknown | undefined;
  /** As an image, in base64. */
  readonly png?: string | null | undefined;
  /** As text. */
  readonly repr: string;
}

/** A signal for a process. */
export interface SignalProcess {
  /** Its id. */
  readonly processId: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** The name of a signal, such as TERM. */
  readonly signal: string;
}

/** A new snapshot. */
export interface SnapshotCreated {
  /** Its id. */
  readonly id: string;
}

/** A snapshot. */
export interface SnapshotId {
  /** Its id. */
  readonly id: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A process beside the shell; either `command` or `argv`. */
export interface StartProcess {
  /** A program and its arguments. */
  readonly argv?: readonly string[] | null | undefined;
  /** A script for a fresh shell. */
  readonly command?: string | null | undefined;
  /** Where it starts. */
  readonly cwd?: string | null | undefined;
  /** Its variables. */
  readonly env?: Readonly<Record<string, string>> | null | undefined;
  /** A terminal for it. */
  readonly pty?: Screen | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** Whether it has a standard input. False by default. */
  readonly stdin?: boolean | null | undefined;
  /** How long it may run; without it, or with 0, as long as its sandbox lives. */
  readonly timeoutMs?: number | null | undefined;
}

/** A new process. */
export interface Started {
  /** Its number in the sandbox. */
  readonly pid: number;
  /** Its id. */
  readonly processId: string;
}

/** A state in the state directory. */
export interface State {
  /** Its size. */
  readonly bytes: number;
  /** Its name. */
  readonly file: string;
  /** When it was written. */
  readonly modifiedMs: number;
}

/** A file in the state directory. */
export interface StateName {
  /** Its name. */
  readonly file: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** The client's states. */
export interface States {
  /** By name. */
  readonly states: readonly (State)[];
}

/** What there is in the store. */
export interface Stored {
  /** The client's sandboxes. */
  readonly sandboxes: readonly (StoredSandbox)[];
}

/** A name in the server's store. Methods that take one are about what is stored, not about an open sandbox. */
export interface StoredName {
  /** The name of a sandbox or an image. */
  readonly name: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A sandbox in the store. */
export interface StoredSandbox {
  /** When it was last changed. */
  readonly changedMs: number;
  /** How many commits it has. */
  readonly commits: number;
  /** When it was created. */
  readonly createdMs: number;
  /** Who has it open. */
  readonly holder?: string | null | undefined;
  /** Its name. */
  readonly name: string;
}

/** A connection. */
export interface StreamId {
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** Its id. */
  readonly streamId: string;
}

/** A symbolic link. */
export interface Symlink {
  /** The path of the link. */
  readonly path: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** What it leads to. */
  readonly target: string;
}

/** A tag for a commit. */
export interface Tag {
  /** The number of the commit. */
  readonly commit: string;
  /** The name of a sandbox. */
  readonly name: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** The tag. */
  readonly tag: string;
}

/** Which streams were cut. */
export interface Truncated {
  /** Standard error. */
  readonly stderr: boolean;
  /** Standard output. */
  readonly stdout: boolean;
}

/** What a sandbox uses now. */
export interface Usage {
  /** How much its files have. */
  readonly fsBytes: number;
  /** How much memory. */
  readonly memoryBytes: number;
  /** How many processes. */
  readonly processes: number;
}

/** A variable's value. */
export interface Variable {
  /** The value, if it is set. */
  readonly value?: string | null | undefined;
}

/** A variable. */
export interface VariableName {
  /** Its name. */
  readonly name: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** The exported variables. */
export interface Variables {
  /** By name. */
  readonly variables: Readonly<Record<string, string>>;
}

/** A directory to be told of. */
export interface Watch {
  /** The path. */
  readonly path: string;
  /** Everything below it. False by default. */
  readonly recursive?: boolean | null | undefined;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** A watcher. */
export interface WatchId {
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** Its id. */
  readonly watchId: string;
}

/** A new watcher. */
export interface Watching {
  /** Its id. */
  readonly watchId: string;
}

/** A file and its content. */
export interface WriteFile {
  /** The content. */
  readonly data: string;
  /** Permission bits. */
  readonly mode?: number | null | undefined;
  /** Where the content begins, at most the file's size; everything from there on is replaced. */
  readonly offset?: number | null | undefined;
  /** Whether missing directories are created. False by default. */
  readonly parents?: boolean | null | undefined;
  /** The path. */
  readonly path: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** Bytes for a process. */
export interface WriteProcess {
  /** At most 1 MiB. */
  readonly data: string;
  /** Its id. */
  readonly processId: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
}

/** Bytes for a connection. */
export interface WriteStream {
  /** At most 1 MiB. */
  readonly data: string;
  /** The sandbox that it is about; the first one of the client if there is none. */
  readonly sandboxId?: string | null | undefined;
  /** Its id. */
  readonly streamId: string;
}

/** All methods. */
export interface Methods {
  /** Creates the first sandbox. The first call of a client */
  readonly "create": { readonly params: Create; readonly result: Done };
  /** What the server can do; also before `create` */
  readonly "capabilities": { readonly params: Nothing; readonly result: Capabilities };
  /** What a sandbox uses now */
  readonly "usage": { readonly params: Nothing; readonly result: Usage };
  /** Whether a run is unfinished */
  readonly "isRunning": { readonly params: Nothing; readonly result: Running };
  /** Destroys every sandbox of the client; with `--stdio` the server ends */
  readonly "kill": { readonly params: Nothing; readonly result: Done };
  /** Runs a script in the sandbox's shell, after all earlier ones */
  readonly "run": { readonly params: Run; readonly result: RunResult };
  /** Runs code in an interpreter that stays */
  readonly "python.run": { readonly params: RunPython; readonly result: PythonResult };
  /** Cancels the run of a request, or the first that is unfinished */
  readonly "cancel": { readonly params: Cancel; readonly result: Cancelled };
  /** Reads a file, or with `offset` or `length` a part of it */
  readonly "files.read": { readonly params: ReadFile; readonly result: FileData };
  /** Writes a file, all of it or nothing. With `offset` everything from there on is replaced */
  readonly "files.write": { readonly params: WriteFile; readonly result: Done };
  /** Lists a directory, sorted */
  readonly "files.list": { readonly params: ListFiles; readonly result: Listing };
  /** Creates a directory and its parents */
  readonly "files.mkdir": { readonly params: Path; readonly result: Done };
  /** Removes a file, or a directory with everything in it */
  readonly "files.rm": { readonly params: Path; readonly result: Done };
  /** What is known of a file */
  readonly "files.stat": { readonly params: Path; readonly result: FileStat };
  /** Renames a file or directory; replaces what is there */
  readonly "files.rename": { readonly params: FromTo; readonly result: Done };
  /** Copies a file with its permissions; replaces what is there */
  readonly "files.copy": { readonly params: FromTo; readonly result: Done };
  /** Sets permissions */
  readonly "files.chmod": { readonly params: Chmod; readonly result: Done };
  /** Creates a symbolic link */
  readonly "files.symlink": { readonly params: Symlink; readonly result: Done };
  /** Tells of changes in a directory from now on, [see below](#watching-directories) */
  readonly "files.watch": { readonly params: Watch; readonly result: Watching };
  /** Ends that */
  readonly "files.unwatch": { readonly params: WatchId; readonly result: Done };
  /** A variable of the shell; null if it is not set */
  readonly "env.get": { readonly params: VariableName; readonly result: Variable };
  /** Sets a variable of the shell */
  readonly "env.set": { readonly params: SetVariable; readonly result: Done };
  /** Unsets a variable of the shell */
  readonly "env.unset": { readonly params: VariableName; readonly result: Done };
  /** The exported variables */
  readonly "env.list": { readonly params: Nothing; readonly result: Variables };
  /** Mounts files; they count against `fsLimitBytes` and `fileCount` */
  readonly "mount": { readonly params: MountFiles; readonly result: Done };
  /** What was changed in an overlay. EFBIG if that is more than 100,000 changes or 8 MiB */
  readonly "mount.diff": { readonly params: DiffOverlay; readonly result: OverlayDiff };
  /** Applies an overlay's changes to its directory, all of them or none. EBUSY if that has changed */
  readonly "mount.apply": { readonly params: ApplyOverlay; readonly result: Applied };
  /** Takes a snapshot. ENOSPC if those of a sandbox would keep more than `fsLimitBytes` + `memoryBytes` */
  readonly "snapshot.create": { readonly params: Nothing; readonly result: SnapshotCreated };
  /** Restores a snapshot, into any of the client's sandboxes */
  readonly "snapshot.restore": { readonly params: SnapshotId; readonly result: Done };
  /** Forks a sandbox */
  readonly "sandbox.fork": { readonly params: Fork; readonly result: Forked };
  /** Destroys a fork */
  readonly "sandbox.destroy": { readonly params: OtherSandbox; readonly result: Done };
  /** Creates a sandbox with the options of `create` */
  readonly "sandbox.create": { readonly params: CreateNamed; readonly result: SandboxCreated };
  /** Those that `sandbox.create` and `sandbox.open` created */
  readonly "sandbox.list": { readonly params: Nothing; readonly result: readonly (SandboxInfo)[] };
  /** Destroys any sandbox but the first */
  readonly "sandbox.remove": { readonly params: OtherSandbox; readonly result: Done };
  /** Pauses all processes of a sandbox */
  readonly "sandbox.suspend": { readonly params: Nothing; readonly result: Done };
  /** Resumes them */
  readonly "sandbox.resume": { readonly params: Nothing; readonly result: Done };
  /** The state as bytes, or in a file in the state directory */
  readonly "persistence.export": { readonly params: ExportState; readonly result: Exported };
  /** Takes over a state, from `data` or `file` */
  readonly "persistence.import": { readonly params: ImportState; readonly result: Done };
  /** The client's files in the state directory */
  readonly "persistence.list": { readonly params: Nothing; readonly result: States };
  /** Deletes one of them */
  readonly "persistence.remove": { readonly params: StateName; readonly result: Done };
  /** Opens a sandbox in the server's store (`serve --store DIR`); EBUSY if it is open elsewhere */
  readonly "sandbox.open": { readonly params: OpenStored; readonly result: SandboxCreated };
  /** Makes a commit now */
  readonly "persistence.save": { readonly params: Nothing; readonly result: Committed };
  /** Goes back to a commit; the log continues */
  readonly "persistence.checkout": { readonly params: Checkout; readonly result: Committed };
  /** The client's sandboxes in the store */
  readonly "persistence.sandboxes": { readonly params: Nothing; readonly result: Stored };
  /** What was done in a sandbox, newest first */
  readonly "persistence.log": { readonly params: Log; readonly result: Commits };
  /** Which files differ between two commits */
  readonly "persistence.diff": { readonly params: Diff; readonly result: Changes };
  /** Another sandbox, from a commit of one */
  readonly "persistence.branch": { readonly params: Branch; readonly result: Committed };
  /** Tags a commit, which is then kept */
  readonly "persistence.tag": { readonly params: Tag; readonly result: Done };
  /** Deletes a sandbox that is not open from the store */
  readonly "persistence.delete": { readonly params: StoredName; readonly result: Done };
  /** Saves the sandbox as it is as an image, to create others from */
  readonly "image.save": { readonly params: SaveImage; readonly result: Done };
  /** The client's images in the store */
  readonly "image.list": { readonly params: Nothing; readonly result: Images };
  /** Deletes an image. Sandboxes that were created from it stay */
  readonly "image.delete": { readonly params: StoredName; readonly result: Done };
  /** An image as bytes, or in a file in the state directory, for another store */
  readonly "image.export": { readonly params: ExportImage; readonly result: Exported };
  /** Makes an image of an exported one, within the limits of the client's sandboxes */
  readonly "image.import": { readonly params: ImportImage; readonly result: Done };
  /** Moves the state to the client's storage. Until `rehydrate`, other calls return EBUSY */
  readonly "offload": { readonly params: Nothing; readonly result: Done };
  /** Moves the state back */
  readonly "rehydrate": { readonly params: Nothing; readonly result: Done };
  /** Connects to a port that a program in the sandbox listens at, [see below](#connections-to-ports) */
  readonly "net.connect": { readonly params: PortNumber; readonly result: Connected };
  /** Writes, once the guest's socket has taken it */
  readonly "net.write": { readonly params: WriteStream; readonly result: Done };
  /** Says that so many bytes of `net.data` were taken, and as many more may come */
  readonly "net.ack": { readonly params: AckStream; readonly result: Done };
  /** Lets the guest read the end after what was written before */
  readonly "net.closeWrite": { readonly params: StreamId; readonly result: Done };
  /** Closes a connection immediately */
  readonly "net.close": { readonly params: StreamId; readonly result: Done };
  /** Where `serve --http` serves a port ([deployment.md](deployment.md#ports-of-sandboxes)); ENOTSUP without it */
  readonly "net.url": { readonly params: PortNumber; readonly result: PortUrl };
  /** Starts a process beside the shell, [see below](#processes) */
  readonly "process.start": { readonly params: StartProcess; readonly result: Started };
  /** Writes, once the process can read it */
  readonly "process.write": { readonly params: WriteProcess; readonly result: Done };
  /** Lets the process read the end after what was written before; at a terminal, Ctrl-D is typed */
  readonly "process.closeStdin": { readonly params: ProcessId; readonly result: Done };
  /** Says that so many bytes of `process.output` were taken */
  readonly "process.ack": { readonly params: AckProcess; readonly result: Done };
  /** Sends a signal to a process and to what it started in its group. "KILL" ends everything it started */
  readonly "process.signal": { readonly params: SignalProcess; readonly result: Done };
  /** How a process ended, once all of its output was sent */
  readonly "process.wait": { readonly params: ProcessId; readonly result: Ended };
  /** Sets the size of a process' terminal */
  readonly "process.resize": { readonly params: ResizeProcess; readonly result: Done };
  /** The processes that run */
  readonly "process.list": { readonly params: Nothing; readonly result: ProcessList };
  /** The last 1,000 commands, up to 1 MiB */
  readonly "shell.history.list": { readonly params: Nothing; readonly result: History };
  /** Forgets them */
  readonly "shell.history.clear": { readonly params: Nothing; readonly result: Done };
}
