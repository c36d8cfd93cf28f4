/**
 * The errors of the package, one class for each way a caller may want to react.
 *
 * A command that fails, times out or hits a limit is a `RunResult`; it throws only when it was run with `check: true`.
 */

import type { RunResult } from "./results.js";

/** The base class of all errors. */
export class WardianError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** An operation in the sandbox failed: the file does not exist, the disk is full, and so on. */
export class SandboxError extends WardianError {
  /** The name of the errno, such as `"ENOENT"`, if there is one. */
  readonly errno: string | undefined;

  constructor(message: string, errno?: string) {
    super(message);
    this.errno = errno;
  }
}

/** The server rejected the request: an unknown option, a sandbox that is gone, a limit reached. */
export class InvalidRequestError extends WardianError {
  /** The JSON-RPC code. */
  readonly code: number;

  constructor(message: string, code: number) {
    super(message);
    this.code = code;
  }
}

/** A request does not fit into one line of the protocol (`limits.rpcBytes`). Nothing was sent. */
export class RequestTooLargeError extends WardianError {}

/** An internal error in the server, with its message. The server keeps running. */
export class ServerFaultError extends WardianError {}

/** The server died, and all its sandboxes with it. The message includes the end of its standard error. */
export class ServerDiedError extends WardianError {}

/** The server violated the protocol. It has been killed, because its responses can no longer be trusted. */
export class ProtocolError extends WardianError {}

/** The sandbox, or the one it was created from, has been closed. */
export class SandboxClosedError extends WardianError {}

/** The first sandbox of a server cannot be destroyed while its forks and siblings live on that server. */
export class SandboxInUseError extends WardianError {}

/** The `wardian` program was not found, or could not be started. */
export class BinaryNotFoundError extends WardianError {}

/** A command run with `check: true` failed. */
export class CommandError extends WardianError {
  /** What came of it, output included. */
  readonly result: RunResult;

  constructor(result: RunResult) {
    super(result.describe());
    this.result = result;
  }
}

/** A command run with `check: true` timed out. */
export class CommandTimeoutError extends CommandError {}

/** Returns the error for an error object of the protocol. */
export function fromProtocol(code: number, message: string, data: unknown): WardianError {
  if (code === 1) {
    const errno = typeof data === "object" && data !== null ? (data as { errno?: unknown }).errno : undefined;
    return new SandboxError(message, typeof errno === "string" ? errno : undefined);
  }
  return code === -32603 ? new ServerFaultError(message) : new InvalidRequestError(message, code);
}
