/** What carries the protocol's lines: a server of its own on pipes, or a Unix socket. */

import { spawn, type ChildProcess } from "node:child_process";
import { connect, type Socket } from "node:net";
import { resolve } from "node:path";
import type { Readable, Writable } from "node:stream";

import { findBinary } from "./binary.js";
import { BinaryNotFoundError, ServerDiedError, type WardianError } from "./errors.js";
import { Lines } from "./lines.js";
import { mountFlags, type SandboxOptions } from "./options.js";

/** How long a server may take to exit after it was asked to. */
const GRACE_MS = 5000;
/** How many lines of the server's log an error shows, and how much of each. */
const LAST_LINES = 20;
const LINE_SHOWN = 1000;
/** How much of a log line is gathered. */
const LOG_LINE = 1 << 16;

/**
 * Receives what arrives.
 * @internal
 */
export interface Listener {
  onData(chunk: Buffer): void;
  /** The other side is gone, for this reason. */
  onEnd(reason: WardianError): void;
}

/** @internal */
export interface Transport {
  /** The server's process id, if it was started for this. */
  readonly pid: number | undefined;
  start(listener: Listener): void;
  send(line: string): void;
  /** Stops reading, or goes on: a server whose output is not read waits. */
  setReading(reading: boolean): void;
  /** Whether Node has to stay alive for it. */
  setBusy(busy: boolean): void;
  /** Lets the server stop, and waits until it has. */
  close(): Promise<void>;
  /** Stops it by force. */
  kill(): void;
}

/** @internal */
export async function open(options: SandboxOptions): Promise<Transport> {
  return options.socket === undefined ? await startServer(options) : await connectTo(options.socket);
}

async function startServer(options: SandboxOptions): Promise<Transport> {
  const binary = findBinary(options.binary);
  const state = options.stateDir === undefined ? [] : ["--state-dir", resolve(options.stateDir)];
  const store = options.store === undefined ? [] : ["--store", options.store.includes("://") ? options.store : resolve(options.store)];
  const http = options.http === undefined ? [] : ["--http", String(options.http)];
  // A session of its own: Ctrl-C at this terminal is for the client, not for the server to die of.
  const more = [...state, ...store, ...http, ...mountFlags(options)];
  const child = spawn(binary, ["serve", "--stdio", ...more], { stdio: ["pipe", "pipe", "pipe"], detached: true });
  await new Promise<void>((started, failed) => {
    child.once("spawn", started);
    child.once("error", (error) => failed(new BinaryNotFoundError(`cannot start ${binary}: ${error.message}`)));
  });
  return new Pipes(child, options.onLog);
}

class Pipes implements Transport {
  readonly #child: ChildProcess;
  readonly #stdin: Writable;
  readonly #stdout: Readable;
  readonly #stderr: Readable;
  readonly #closed: Promise<void>;
  readonly #log: string[] = [];
  #exit: string | undefined;

  constructor(child: ChildProcess, onLog: ((line: string) => void) | undefined) {
    this.#child = child;
    [this.#stdin, this.#stdout, this.#stderr] = [child.stdin!, child.stdout!, child.stderr!];
    // A server that is gone is heard of by its exit.
    for (const stream of [this.#stdin, this.#stdout, this.#stderr]) stream.on("error", () => {});
    child.on("error", () => {});
    const log = new Lines(LOG_LINE, (line) => this.#note(line, onLog), () => {});
    this.#stderr.on("data", (chunk: Buffer) => log.push(chunk));
    this.#closed = new Promise((closed) => {
      child.once("exit", (code, signal) => {
        this.#exit = signal === null ? `exited with status ${code}` : `was killed by ${signal}`;
        // What it wrote before may not have been read yet; and a child of it may hold its streams open.
        this.#stdout.resume();
        setTimeout(closed, 1000).unref();
      });
      child.once("close", () => closed());
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  #note(line: Buffer, onLog: ((line: string) => void) | undefined): void {
    const text = line.toString("utf8").trimEnd();
    this.#log.push(text.slice(0, LINE_SHOWN));
    if (this.#log.length > LAST_LINES) this.#log.shift();
    onLog?.(text);
  }

  start(listener: Listener): void {
    this.#stdout.on("data", (chunk: Buffer) => listener.onData(chunk));
    void this.#closed.then(() => {
      const last = this.#log.map((line) => `\n  ${line}`).join("");
      listener.onEnd(new ServerDiedError(`the server ${this.#exit ?? "closed its streams"}${last}`));
    });
  }

  send(line: string): void {
    this.#stdin.write(line);
  }

  setReading(reading: boolean): void {
    if (reading || this.#exit !== undefined) this.#stdout.resume();
    else this.#stdout.pause();
  }

  setBusy(busy: boolean): void {
    // The pipes are sockets, which `Writable` and `Readable` do not say.
    for (const one of [this.#child, this.#stdin, this.#stdout, this.#stderr] as unknown as Socket[]) {
      if (busy) one.ref();
      else one.unref();
    }
  }

  async close(): Promise<void> {
    this.setBusy(true);
    this.#stdout.resume();
    this.#stdin.end();
    const force = setTimeout(() => this.kill(), GRACE_MS);
    await this.#closed;
    clearTimeout(force);
    this.#stdout.destroy();
    this.#stderr.destroy();
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}

async function connectTo(path: string): Promise<Transport> {
  const socket = connect(path);
  await new Promise<void>((connected, failed) => {
    socket.once("connect", connected);
    socket.once("error", (error) => failed(new ServerDiedError(`cannot connect to ${path}: ${error.message}`)));
  });
  return new Wire(socket);
}

class Wire implements Transport {
  readonly pid = undefined;
  readonly #socket: Socket;
  readonly #closed: Promise<void>;
  #error = "";

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("error", (error) => (this.#error = `: ${error.message}`));
    this.#closed = new Promise((closed) => socket.once("close", () => closed()));
  }

  start(listener: Listener): void {
    this.#socket.on("data", (chunk: Buffer) => listener.onData(chunk));
    void this.#closed.then(() => listener.onEnd(new ServerDiedError(`the server closed the connection${this.#error}`)));
  }

  send(line: string): void {
    this.#socket.write(line);
  }

  setReading(reading: boolean): void {
    if (reading) this.#socket.resume();
    else this.#socket.pause();
  }

  setBusy(busy: boolean): void {
    if (busy) this.#socket.ref();
    else this.#socket.unref();
  }

  async close(): Promise<void> {
    this.setBusy(true);
    this.#socket.resume();
    this.#socket.end();
    const force = setTimeout(() => this.kill(), GRACE_MS);
    await this.#closed;
    clearTimeout(force);
  }

  kill(): void {
    this.#socket.destroy();
  }
}
