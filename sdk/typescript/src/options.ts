/** The options of a new sandbox. Anything left out has the server's default. */

import { realpathSync } from "node:fs";
import { resolve } from "node:path";

import { checkKeys, milliseconds } from "./check.js";
import { encodeMount, type MountFiles } from "./content.js";
import type { Extensions } from "./extensions.js";
import { networkParams, type NetworkPolicy } from "./network.js";
import type { Storage } from "./storage.js";
import { persistenceParams, type Persistence } from "./stores.js";

/** The largest line a server can be told to accept, and what it is told: the client is not the one to guard against. */
const RPC_BYTES = 128 << 20;

/** The limits of a sandbox. */
export interface Limits {
  readonly stdoutBytes?: number;
  readonly stderrBytes?: number;
  readonly commandBytes?: number;
  readonly fileCount?: number;
  readonly rpcBytes?: number;
  readonly memoryBytes?: number;
  readonly processes?: number;
  readonly openFiles?: number;
}

/** Files to mount at a path. They are in memory; `readDirectory` reads them from the host. */
export interface Mount {
  readonly path: string;
  readonly files: MountFiles;
  /** Whether the sandbox may change what it sees. What it writes stays in the sandbox. */
  readonly writable?: boolean;
}

/** A directory of the server's machine to mount at a path. */
export interface HostMount {
  /** Its path; one that is not absolute starts at this program's directory. */
  readonly host: string;
  /** Where it is in the sandbox. */
  readonly path: string;
  /** "ro" (the default): nothing can be changed; "rw": everything; "overlay": changes stay in the sandbox until they are applied. */
  readonly mode?: "ro" | "rw" | "overlay";
}

/** What `Sandbox.create` takes. */
export interface SandboxOptions {
  /** How long a command may run, unless it is given a timeout of its own; 0 or `Infinity` for no limit. */
  readonly timeoutMs?: number;
  /** How long processes in the background may outlive their command; 0 or `Infinity`: as long as the sandbox lives. */
  readonly backgroundTimeoutMs?: number;
  /** How many bytes its files may have. */
  readonly fsLimitBytes?: number;
  readonly limits?: Limits;
  readonly mounts?: readonly Mount[];
  /** Directories of the server's machine. A server of its own is told to allow them; one behind `socket` says what may be mounted. */
  readonly hostMounts?: readonly HostMount[];
  /** The shell's variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Your functions as commands. */
  readonly extensions?: Extensions;
  /** The programs and builtins that may run; without it, all. */
  readonly toolAllowlist?: readonly string[];
  /** How many shells the server keeps warm. */
  readonly pool?: { readonly minSize: number; readonly maxSize: number };
  /** From 0 to 19: a smaller share of the CPU. */
  readonly nice?: number;
  /** Where the shell starts. */
  readonly cwd?: string;
  /** Absolute paths outside of which everything is read-only. */
  readonly writablePaths?: readonly string[];
  /** Whether the files of a command that is killed are kept or restored. */
  readonly onKill?: "keep" | "rollback";
  /** Directories where Python looks first. */
  readonly pythonPath?: readonly string[];
  /** What it may reach outside, as docs/network.md describes; nothing by default. The server refuses what it does not know. */
  readonly network?: NetworkPolicy;
  /** The image in the store that it starts from, instead of from nothing. */
  readonly image?: string;
  /** Under which name it is saved in the store, and when. */
  readonly persistence?: Persistence;
  /** The directory of the store, or its URL (`s3://…`), of a server of its own. Several servers may use one. */
  readonly store?: string;
  /** Where `offload` puts the state. */
  readonly storage?: Storage;
  /** The Unix socket of a running `wardian serve --socket`, instead of a server of its own. */
  readonly socket?: string;
  /** With `socket`: a secret of 16 to 256 bytes that makes state files this client's own. */
  readonly stateToken?: string;
  /** The directory for state files, of a server of its own. */
  readonly stateDir?: string;
  /** Where that server also serves HTTP, so that ports have a `url`: a port (0 for one that is free) or an address with one. */
  readonly http?: number | string;
  /** The `wardian` program. */
  readonly binary?: string;
  /** Receives the lines of the server's log. */
  readonly onLog?: (line: string) => void;
  /** Gives up the creation. */
  readonly signal?: AbortSignal;
}

const LIMITS = ["stdoutBytes", "stderrBytes", "commandBytes", "fileCount", "rpcBytes", "memoryBytes", "processes", "openFiles"];
const OPTIONS = [
  ...["timeoutMs", "backgroundTimeoutMs", "fsLimitBytes", "limits", "mounts", "hostMounts", "env", "extensions", "toolAllowlist", "pool", "nice", "cwd"],
  ...["writablePaths", "onKill", "pythonPath", "network", "image", "persistence", "store", "storage", "socket", "stateToken", "stateDir", "http"],
  ...["binary", "onLog", "signal"],
];

/** @internal */
export function checkOptions(options: SandboxOptions): void {
  checkKeys("Sandbox.create", options, OPTIONS);
  checkKeys("limits", options.limits, LIMITS);
  checkKeys("pool", options.pool, ["minSize", "maxSize"]);
  for (const mount of options.mounts ?? []) checkKeys("mounts", mount, ["path", "files", "writable"]);
  for (const mount of options.hostMounts ?? []) checkKeys("hostMounts", mount, ["host", "path", "mode"]);
  for (const own of ["store", "stateDir", "http", "binary", "onLog"] as const) {
    if (options.socket !== undefined && options[own] !== undefined) {
      throw new TypeError(`'${own}' is for a server of its own and cannot be combined with 'socket'`);
    }
  }
  if (options.stateToken !== undefined && options.socket === undefined) {
    throw new TypeError("'stateToken' is for a server with many clients: it needs 'socket'");
  }
}

/** Returns the path of a directory; for a server of its own, without the links that it refuses to follow. */
function hostPath({ host }: HostMount, options: SandboxOptions): string {
  return options.socket === undefined ? realpathSync(host) : resolve(host);
}

/**
 * Returns what a server of its own has to be told for directories to be mounted.
 * @internal
 */
export function mountFlags(options: SandboxOptions): string[] {
  const root = (mount: HostMount) => `${hostPath(mount, options)}:${(mount.mode ?? "ro") === "ro" ? "ro" : "rw"}`;
  return (options.hostMounts ?? []).flatMap((mount) => ["--allow-mount", root(mount)]);
}

/**
 * Returns the params of `create`. What is undefined is left out of the JSON.
 * @internal
 */
export function createParams(options: SandboxOptions, extensions: object[]): Record<string, unknown> & { limits: { rpcBytes: number } } {
  return {
    timeoutMs: milliseconds(options.timeoutMs),
    backgroundTimeoutMs: milliseconds(options.backgroundTimeoutMs),
    fsLimitBytes: options.fsLimitBytes,
    limits: { ...options.limits, rpcBytes: options.limits?.rpcBytes ?? RPC_BYTES },
    mounts: options.mounts?.map((mount) => ({ ...mount, files: encodeMount(mount.files) })),
    hostMounts: options.hostMounts?.map((mount) => ({ ...mount, host: hostPath(mount, options) })),
    env: options.env,
    extensions: extensions.length === 0 ? undefined : extensions,
    security: options.toolAllowlist === undefined ? undefined : { toolAllowlist: options.toolAllowlist },
    pool: options.pool,
    nice: options.nice,
    cwd: options.cwd,
    writablePaths: options.writablePaths,
    onKill: options.onKill,
    pythonPath: options.pythonPath,
    network: networkParams(options.network),
    image: options.image,
    persistence: persistenceParams(options.persistence),
    storage: options.storage === undefined ? undefined : true,
    stateToken: options.stateToken,
  };
}
