/** Ports that programs in a sandbox listen at: a byte stream over the protocol, and HTTP over that. */

import { request as httpRequest, type IncomingMessage } from "node:http";
import { Duplex } from "node:stream";

import { field } from "./answers.js";
import { checkKeys } from "./check.js";
import type { Receiver } from "./connection.js";
import { encode, type Content } from "./content.js";
import { SandboxError } from "./errors.js";
import type { CallSignal } from "./files.js";
import { done, type Handle } from "./handle.js";

/** How much is written at once; the server takes at most 1 MiB. */
const PIECE = 256 << 10;
/** How long a request takes at most, and how long a body is. */
const REQUEST_MS = 30_000;
const BODY_MOST = 64 << 20;

/** What `request` takes. */
export interface PortRequestOptions extends CallSignal {
  readonly headers?: Readonly<Record<string, string>>;
  /** Text, which is encoded as UTF-8, or bytes. */
  readonly body?: Content;
  /** For all of it; 30,000 by default, `Infinity` for no limit. */
  readonly timeoutMs?: number;
  /** The longest body to accept; 64 MiB by default. */
  readonly maxBytes?: number;
}

/** What a server in a sandbox responded. */
export class PortResponse {
  /** @internal */
  constructor(
    readonly status: number,
    readonly reason: string,
    /** Its fields by their names in lower case; of a repeated one, the values joined by commas. */
    readonly headers: Readonly<Record<string, string>>,
    readonly body: Buffer,
  ) {}

  /** The body as UTF-8. */
  get text(): string {
    return this.body.toString("utf8");
  }

  /** Returns the body, read as JSON. */
  json(): unknown {
    return JSON.parse(this.text);
  }
}

/** A TCP port of a sandbox. */
export class Port {
  readonly #handle: Handle;

  /** @internal */
  constructor(
    handle: Handle,
    /** Its number. */
    readonly number: number,
  ) {
    if (!Number.isInteger(number) || number < 1 || number > 65_535) {
      throw new RangeError(`a port is a number from 1 to 65535, not ${String(number)}`);
    }
    this.#handle = handle;
  }

  /**
   * Returns where this port is served by HTTP, if the server serves HTTP; anyone who knows it can reach the port. Throws a
   * `SandboxError` (`ENOTSUP`) otherwise: `request` needs no HTTP.
   */
  async url(options: CallSignal = {}): Promise<string> {
    checkKeys("url", options, ["signal"]);
    return await this.#handle.call("net.url", { port: this.number }, (answer) => field(answer, "url", "string"), options);
  }

  /** Connects to the port, as a client on the sandbox's loopback network. */
  async connect(options: CallSignal = {}): Promise<Duplex> {
    checkKeys("connect", options, ["signal"]);
    options.signal?.throwIfAborted();
    const stream = new PortStream(this.#handle);
    const undo = () => void stream.destroy();
    const sent = this.#handle.claim({ port: this.number }, stream);
    return await this.#handle.follow(sent, false, () => stream, { signal: options.signal, undo });
  }

  /** Sends an HTTP request to the port and returns the whole response. */
  async request(method: string, path = "/", options: PortRequestOptions = {}): Promise<PortResponse> {
    checkKeys("request", options, ["headers", "body", "timeoutMs", "maxBytes", "signal"]);
    const over = new AbortController();
    const patience = options.timeoutMs ?? REQUEST_MS;
    const late = new SandboxError("ETIMEDOUT: the server in the sandbox took too long", "ETIMEDOUT");
    const clock = patience === Infinity ? undefined : setTimeout(() => over.abort(late), patience);
    const signals = options.signal === undefined ? [over.signal] : [over.signal, options.signal];
    const signal = AbortSignal.any(signals);
    try {
      const stream = await this.connect({ signal });
      try {
        return await this.#exchange(stream, method, path, options, signal);
      } finally {
        stream.destroy();
      }
    } finally {
      clearTimeout(clock);
    }
  }

  async #exchange(
    stream: Duplex,
    method: string,
    path: string,
    { headers, body, maxBytes }: PortRequestOptions,
    signal: AbortSignal,
  ): Promise<PortResponse> {
    const content = body === undefined ? undefined : Buffer.from(encode(body), "base64");
    const length = content === undefined ? {} : { "Content-Length": String(content.length) };
    const response = await new Promise<IncomingMessage>((answered, failed) => {
      const request = httpRequest({
        ...{ host: "localhost", port: this.number, method, path, signal },
        headers: { ...length, ...headers, Connection: "close" },
        createConnection: () => stream,
      });
      request.once("response", answered);
      request.on("error", (error) => failed(reason(error, signal)));
      request.end(content);
    });
    const data = await collect(response, maxBytes ?? BODY_MOST, signal);
    const fields = Object.entries(response.headersDistinct).map(([name, values]) => [name, (values ?? []).join(", ")]);
    return new PortResponse(response.statusCode!, response.statusMessage ?? "", Object.fromEntries(fields), data);
  }
}

async function collect(response: IncomingMessage, most: number, signal: AbortSignal): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > most) throw new SandboxError(`EFBIG: the body has more than ${most} bytes`, "EFBIG");
      pieces.push(piece);
    }
  } catch (error) {
    throw reason(error as Error, signal);
  }
  return Buffer.concat(pieces);
}

/** Returns why a request failed, in the terms of this package. */
function reason(error: Error & { code?: string }, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason as Error;
  if (error.code?.startsWith("HPE_") === true) {
    return new SandboxError(`EPROTO: the response is not HTTP: ${error.message}`, "EPROTO");
  }
  if (error.code === "ECONNRESET") return new SandboxError("ECONNRESET: the connection was lost", "ECONNRESET");
  return error;
}

/** One connection to a port. */
class PortStream extends Duplex implements Receiver {
  readonly #handle: Handle;
  #id: string | undefined;
  /** Received, and not yet acknowledged. */
  #taken = 0;

  constructor(handle: Handle) {
    super({ allowHalfOpen: true });
    this.#handle = handle;
  }

  // -- what the server says

  opened(id: string): void {
    this.#id = id;
    if (this.destroyed) this.#close();
  }

  data(data: Buffer): void {
    this.#taken += data.length;
    if (this.push(data)) this.#acknowledge();
  }

  ended(error: string | undefined): void {
    if (error === undefined) this.push(null);
    else this.destroy(new SandboxError(`${error}: the connection was lost`, error));
  }

  // -- what a stream does

  override _read(): void {
    this.#acknowledge();
  }

  override _write(chunk: Buffer, _encoding: string, written: (error?: Error | null) => void): void {
    this.#send(chunk).then(() => written(), written);
  }

  override _final(ended: (error?: Error | null) => void): void {
    this.#tell("net.closeWrite", {}).then(() => ended(), ended);
  }

  override _destroy(error: Error | null, destroyed: (error?: Error | null) => void): void {
    this.#close();
    destroyed(error);
  }

  async #send(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; at += PIECE) {
      await this.#tell("net.write", { data: encode(chunk.subarray(at, at + PIECE)) });
    }
  }

  #acknowledge(): void {
    const bytes = this.#taken;
    this.#taken = 0;
    // Nobody waits for the answer: the connection may have ended meanwhile.
    if (bytes > 0) this.#tell("net.ack", { bytes }).catch(() => {});
  }

  #close(): void {
    if (this.#id === undefined) return;
    this.#handle.connection.disclaim(this.#id);
    this.#tell("net.close", {}).catch(() => {});
  }

  async #tell(method: string, params: object): Promise<void> {
    await this.#handle.call(method, { streamId: this.#id, ...params }, done);
  }
}
