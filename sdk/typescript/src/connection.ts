/**
 * A connection to a server, and all requests in progress.
 *
 * Whatever ends it (the server dies, violates the protocol, is closed) rejects every pending request and every later
 * one with an error that says what happened. So no caller is left waiting.
 *
 * Commands of one sandbox, and the calls that wait for them, are sent one at a time, the next when the last has
 * returned. The server would queue them too, but `cancel` cancels whatever runs, and only this way is that sure to be
 * the intended command.
 */

import { decode, field, member, optional, type Json } from "./answers.js";
import { fromProtocol, ProtocolError, RequestTooLargeError, SandboxClosedError, SandboxError, type WardianError } from "./errors.js";
import { Lines } from "./lines.js";
import type { StreamName } from "./results.js";
import type { Transport } from "./transport.js";

/** What a server accepts on a socket before it has been told otherwise, and the bounds of what it can be told. */
const LINE_ON_SOCKET = 8 << 20;
const LINE_LEAST = 1 << 10;
const LINE_MOST = 128 << 20;
/** No answer is as long as this; a server that never ends a line must not fill the client's memory. */
const ANSWER_MOST = 256 << 20;
/** How long a server may take to answer `kill`. */
const GRACE_MS = 5000;

/**
 * Receives a run's output.
 * @internal
 */
export type OnOutput = (stream: StreamName, data: Buffer) => void;

/**
 * Answers a call from the server.
 * @internal
 */
export type OnCall = (method: string, params: Json) => Promise<unknown>;

/**
 * Receives what arrives on a connection to a port.
 * @internal
 */
export interface Receiver {
  opened(id: string): void;
  data(data: Buffer): void;
  ended(error: string | undefined): void;
}

/** @internal */
export interface RequestOptions {
  /** The sandbox whose commands go one after the other. */
  readonly lane?: string | undefined;
  readonly onOutput?: OnOutput | undefined;
  /** Receives what arrives on the connection that it opens. */
  readonly receiver?: Receiver | undefined;
  /** Is told of the answer before any later line is read. */
  readonly onAnswer?: ((answer: Json) => void) | undefined;
}

/**
 * Receives the events of a process beside the shell.
 * @internal
 */
export interface ProcessListener {
  readonly onOutput: (params: Json) => void;
  readonly onExit: (params: Json) => void;
  readonly onFailure: (failure: WardianError) => void;
}

/**
 * Receives the events of a watcher.
 * @internal
 */
export interface WatchListener {
  readonly onEvents: (params: Json) => void;
  readonly onEnd: (params: Json) => void;
  readonly onFailure: (failure: WardianError) => void;
}

/**
 * A request in progress.
 * @internal
 */
export class Request {
  /** Until it is sent. */
  line: string | undefined;
  readonly answer: Promise<Json>;
  resolve!: (answer: Json) => void;
  reject!: (error: WardianError) => void;

  constructor(
    readonly number: number,
    line: string,
    readonly options: RequestOptions,
  ) {
    this.line = line;
    this.answer = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // A caller that gave up on it does not listen any more.
    this.answer.catch(() => {});
  }
}

/** @internal */
export class Connection {
  readonly #transport: Transport;
  readonly #onCall: OnCall;
  readonly #pending = new Map<number, Request>();
  readonly #lanes = new Map<string, Request[]>();
  /** Runs whose output waits to be taken. */
  readonly #behind = new Set<Request>();
  /** The receivers of what arrives on connections to ports, by their ids. */
  readonly #receivers = new Map<string, Receiver>();
  readonly #processes = new Map<string, ProcessListener>();
  readonly #watches = new Map<string, WatchListener>();
  /** How many wait for something that is no answer. */
  #awake = 0;
  #numbers = 0;
  #longest: number;
  #failure: (() => WardianError) | undefined;
  #killing = false;
  #closing: Promise<void> | undefined;
  /** The ids of the sandboxes beside the first. */
  readonly others = new Set<string>();

  constructor(transport: Transport, onCall: OnCall) {
    this.#transport = transport;
    this.#onCall = onCall;
    this.#longest = transport.pid === undefined ? LINE_ON_SOCKET : LINE_MOST;
    const tooLong = () => this.#fail(new ProtocolError(`the server sent more than ${ANSWER_MOST} bytes in one line`));
    const lines = new Lines(ANSWER_MOST, (line) => this.#take(line), tooLong);
    transport.start({
      onData: (chunk) => lines.push(chunk),
      onEnd: (reason) => this.#giveUp(() => (this.#killing ? closed() : reason)),
    });
  }

  get pid(): number | undefined {
    return this.#transport.pid;
  }

  /** Sets the longest line that the server was told to accept. */
  allowLinesOf(size: number): void {
    this.#longest = Math.min(Math.max(size, LINE_LEAST), LINE_MOST);
  }

  // -- requests

  /** Sends a request. With a lane it waits for those already in it. */
  request(method: string, params: object, options: RequestOptions = {}): Request {
    if (this.#failure !== undefined) throw this.#failure();
    const number = ++this.#numbers;
    const line = encode({ jsonrpc: "2.0", id: number, method, params });
    const size = Buffer.byteLength(line);
    if (size > this.#longest) {
      throw new RequestTooLargeError(
        `${method}: ${size} bytes do not fit into one request, which has at most ${this.#longest}`,
      );
    }
    const request = new Request(number, line, options);
    this.#pending.set(number, request);
    if (options.lane === undefined) this.#send(request);
    else this.#enter(options.lane, request);
    this.#balance();
    return request;
  }

  #send(request: Request): void {
    this.#transport.send(request.line!);
    // It may be large, and the request lives until it is answered.
    request.line = undefined;
  }

  #enter(lane: string, request: Request): void {
    const waiting = this.#lanes.get(lane);
    if (waiting !== undefined) {
      waiting.push(request);
      return;
    }
    this.#lanes.set(lane, [request]);
    this.#send(request);
  }

  /** Forgets a request; if it was the first of its lane, the next is sent. */
  #leave(request: Request): void {
    this.#pending.delete(request.number);
    this.#behind.delete(request);
    const lane = request.options.lane;
    const waiting = lane === undefined ? undefined : this.#lanes.get(lane);
    if (lane === undefined || waiting === undefined) return;
    waiting.splice(waiting.indexOf(request), 1);
    const next = waiting[0];
    if (next === undefined) this.#lanes.delete(lane);
    else if (next.line !== undefined) this.#send(next);
  }

  /** Drops a request that no one waits for: does not send it or, if it was sent and `cancel` is given, cancels it. */
  abandon(request: Request, cancel: object | undefined): void {
    if (!this.#pending.has(request.number)) return;
    if (request.line !== undefined) {
      this.#leave(request);
      request.reject(new SandboxClosedError("the call was given up before it began"));
    } else if (cancel !== undefined) {
      this.request("cancel", cancel);
    }
    this.#behind.delete(request);
    this.#balance();
  }

  /**
   * Tells whether a run's output waits to be taken. Nothing is read from the server while that is so for all pending
   * requests: then the guests wait. If anything else is pending, its answer has to be read, and output is kept, of
   * which there is at most as much as the limits of a run allow.
   */
  setBehind(request: Request, behind: boolean): void {
    if (behind && this.#pending.has(request.number)) this.#behind.add(request);
    else this.#behind.delete(request);
    this.#balance();
  }

  #balance(): void {
    const wanted = this.#pending.size + this.#receivers.size + this.#awake;
    this.#transport.setReading(this.#behind.size === 0 || this.#behind.size < wanted);
    this.#transport.setBusy(wanted > 0);
  }

  /** Forgets a connection to a port. */
  disclaim(id: string): void {
    this.#receivers.delete(id);
    this.#balance();
  }

  /** Listens to a process until it has ended. */
  listen(id: string, listener: ProcessListener): void {
    this.#processes.set(id, listener);
  }

  /** Listens to a watcher until it has ended. */
  watch(id: string, listener: WatchListener): void {
    this.#watches.set(id, listener);
  }

  /** Forgets a watcher. */
  unwatch(id: string): void {
    this.#watches.delete(id);
  }

  /** Keeps reading, and the program running, until the returned function is called. */
  stayAwake(): () => void {
    this.#awake += 1;
    this.#balance();
    return () => {
      this.#awake -= 1;
      this.#balance();
    };
  }

  // -- messages

  #take(line: Buffer): void {
    if (this.#failure !== undefined) return;
    try {
      const message = parse(line);
      const method = member(message, "method");
      if (method === undefined) this.#takeAnswer(message, line);
      else if (member(message, "id") !== undefined) void this.#takeCall(message, String(method));
      else if (method === "output") this.#takeOutput(member(message, "params"));
      else if (method === "net.data" || method === "net.end") this.#takeNet(method, member(message, "params"));
      else if (method === "process.output" || method === "process.exit") this.#takeProcess(method, member(message, "params"));
      else if (method === "files.changed" || method === "files.watchEnd") this.#takeWatch(method, member(message, "params"));
    } catch (error) {
      this.#fail(error instanceof ProtocolError || error instanceof SandboxError ? error : nonsense(line));
    }
  }

  #takeAnswer(message: Json, line: Buffer): void {
    const number = member(message, "id");
    const error = member(message, "error");
    if ((number === null || number === undefined) && error !== undefined) {
      // The server refused the connection, or could not read one of this client's lines.
      const reason = readError(error);
      throw reason instanceof SandboxError ? reason : new ProtocolError(`the server refused a line: ${reason.message}`);
    }
    const request = typeof number === "number" ? this.#pending.get(number) : undefined;
    if (request === undefined || request.line !== undefined) throw nonsense(line);
    this.#leave(request);
    // At once: the next line may be the first one for it.
    const { receiver } = request.options;
    if (error === undefined && receiver !== undefined) {
      const id = field(member(message, "result"), "streamId", "string");
      this.#receivers.set(id, receiver);
      receiver.opened(id);
    }
    this.#balance();
    // What a server says while it is killed only means that it is.
    if (error !== undefined) request.reject(this.#killing ? closed() : readError(error));
    else {
      const result = member(message, "result");
      request.options.onAnswer?.(result);
      request.resolve(result);
    }
  }

  #takeOutput(params: Json): void {
    const stream = field(params, "stream", "string");
    if (stream !== "stdout" && stream !== "stderr") throw new ProtocolError(`the server sent output of '${stream}'`);
    // All commands ask for base64.
    this.#pending.get(field(params, "request_id", "number"))?.options.onOutput?.(stream, decode(field(params, "data", "string")));
  }

  #takeNet(method: "net.data" | "net.end", params: Json): void {
    const id = field(params, "streamId", "string");
    const receiver = this.#receivers.get(id);
    if (method === "net.data") return receiver?.data(decode(field(params, "data", "string")));
    // It is closed if it was lost; otherwise it may still be written to.
    this.disclaim(id);
    receiver?.ended(optional(params, "error", "string"));
  }

  #takeProcess(method: string, params: Json): void {
    const id = field(params, "processId", "string");
    const listener = this.#processes.get(id);
    if (method === "process.output") return listener?.onOutput(params);
    this.#processes.delete(id);
    listener?.onExit(params);
  }

  #takeWatch(method: string, params: Json): void {
    const id = field(params, "watchId", "string");
    // One that was closed may have had something on its way.
    const listener = this.#watches.get(id);
    if (method === "files.changed") return listener?.onEvents(params);
    this.#watches.delete(id);
    listener?.onEnd(params);
  }

  async #takeCall(message: Json, method: string): Promise<void> {
    const id = member(message, "id");
    let line: string;
    try {
      line = encode({ jsonrpc: "2.0", id, result: await this.#onCall(method, member(message, "params")) });
      const size = Buffer.byteLength(line);
      if (size > this.#longest) throw new Error(`the answer has ${size} bytes, at most ${this.#longest} can be sent`);
    } catch (error) {
      const text = (error instanceof Error ? error.message : String(error)).toWellFormed();
      line = encode({ jsonrpc: "2.0", id, error: { code: -32603, message: text.slice(0, LINE_LEAST / 4) } });
    }
    if (this.#failure === undefined) this.#transport.send(line);
  }

  // -- the end

  /** The server cannot be used any more. */
  #fail(failure: WardianError): void {
    this.#transport.kill();
    this.#giveUp(() => failure);
  }

  #giveUp(failure: () => WardianError): void {
    this.#failure ??= failure;
    const [pending, receivers] = [[...this.#pending.values()], [...this.#receivers.values()]];
    this.#receivers.clear();
    this.#pending.clear();
    this.#lanes.clear();
    this.#behind.clear();
    for (const request of pending) request.reject(this.#failure());
    for (const receiver of receivers) receiver.ended("ECONNRESET");
    const processes = [...this.#processes.values()];
    this.#processes.clear();
    for (const listener of processes) listener.onFailure(this.#failure());
    const watches = [...this.#watches.values()];
    this.#watches.clear();
    for (const listener of watches) listener.onFailure(this.#failure());
    this.#balance();
  }

  /** Makes the server stop everything immediately, and itself. */
  async kill(): Promise<void> {
    if (this.#failure === undefined) {
      this.#killing = true;
      const grace = new Promise((over) => setTimeout(over, GRACE_MS).unref());
      await Promise.race([this.request("kill", {}).answer.catch(() => {}), grace]);
    }
    await this.close();
  }

  /** Stops the server and waits until it has exited. All pending calls are rejected. May be called again. */
  close(): Promise<void> {
    this.#giveUp(closed);
    this.others.clear();
    this.#closing ??= this.#transport.close();
    return this.#closing;
  }
}

/** One line. Throws for text that cannot be encoded as UTF-8, which the server could not read. */
function encode(message: object): string {
  return `${JSON.stringify(message, refuseHalves)}\n`;
}

function refuseHalves(name: string, value: unknown): unknown {
  if (!name.isWellFormed() || (typeof value === "string" && !value.isWellFormed())) {
    throw new TypeError("the text has half a surrogate pair and cannot be sent");
  }
  return value;
}

function parse(line: Buffer): Json {
  try {
    return JSON.parse(line.toString("utf8")) as Json;
  } catch {
    throw nonsense(line);
  }
}

function readError(error: Json): WardianError {
  return fromProtocol(field(error, "code", "number"), field(error, "message", "string"), member(error, "data"));
}

function nonsense(line: Buffer): ProtocolError {
  return new ProtocolError(`the server violated the protocol: ${line.subarray(0, 200).toString("utf8").trimEnd()}`);
}

/** @internal */
export function closed(): SandboxClosedError {
  return new SandboxClosedError("the sandbox has been closed");
}
