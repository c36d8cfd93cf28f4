// http: HTTP/1.1, as client and server.
(function (exports, require, module, native) {
  'use strict';

  const EventEmitter = require('events');
  const net = require('net');
  const { Readable, Writable } = require('stream');
  const { coded, invalidArgType } = require('_errors');

  const STATUS_CODES = {
    100: 'Continue', 101: 'Switching Protocols', 102: 'Processing', 103: 'Early Hints', 200: 'OK', 201: 'Created', 202: 'Accepted', 203: 'Non-Authoritative Information',
    204: 'No Content', 205: 'Reset Content', 206: 'Partial Content', 207: 'Multi-Status', 208: 'Already Reported', 226: 'IM Used', 300: 'Multiple Choices', 301: 'Moved Permanently',
    302: 'Found', 303: 'See Other', 304: 'Not Modified', 305: 'Use Proxy', 307: 'Temporary Redirect', 308: 'Permanent Redirect', 400: 'Bad Request', 401: 'Unauthorized',
    402: 'Payment Required', 403: 'Forbidden', 404: 'Not Found', 405: 'Method Not Allowed', 406: 'Not Acceptable', 407: 'Proxy Authentication Required', 408: 'Request Timeout',
    409: 'Conflict', 410: 'Gone', 411: 'Length Required', 412: 'Precondition Failed', 413: 'Payload Too Large', 414: 'URI Too Long', 415: 'Unsupported Media Type',
    416: 'Range Not Satisfiable', 417: 'Expectation Failed', 418: "I'm a Teapot", 421: 'Misdirected Request', 422: 'Unprocessable Entity', 423: 'Locked', 424: 'Failed Dependency',
    425: 'Too Early', 426: 'Upgrade Required', 428: 'Precondition Required', 429: 'Too Many Requests', 431: 'Request Header Fields Too Large', 451: 'Unavailable For Legal Reasons',
    500: 'Internal Server Error', 501: 'Not Implemented', 502: 'Bad Gateway', 503: 'Service Unavailable', 504: 'Gateway Timeout', 505: 'HTTP Version Not Supported',
    506: 'Variant Also Negotiates', 507: 'Insufficient Storage', 508: 'Loop Detected', 509: 'Bandwidth Limit Exceeded', 510: 'Not Extended', 511: 'Network Authentication Required',
  };
  const METHODS = ['ACL', 'BIND', 'CHECKOUT', 'CONNECT', 'COPY', 'DELETE', 'GET', 'HEAD', 'LINK', 'LOCK', 'M-SEARCH', 'MERGE', 'MKACTIVITY', 'MKCALENDAR', 'MKCOL', 'MOVE', 'NOTIFY',
    'OPTIONS', 'PATCH', 'POST', 'PROPFIND', 'PROPPATCH', 'PURGE', 'PUT', 'REBIND', 'REPORT', 'SEARCH', 'SOURCE', 'SUBSCRIBE', 'TRACE', 'UNBIND', 'UNLINK', 'UNLOCK', 'UNSUBSCRIBE'];
  const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  const LONGEST_HEAD = 80 * 1024;

  class IncomingMessage extends Readable {
    constructor(socket) {
      super({ highWaterMark: 65536 });
      this.socket = this.connection = socket;
      this.httpVersion = '1.1';
      this.httpVersionMajor = this.httpVersionMinor = 1;
      this.headers = {};
      this.rawHeaders = [];
      this.trailers = {};
      this.rawTrailers = [];
      this.complete = false;
      this.aborted = false;
      this.url = '';
      this.method = null;
      this.statusCode = null;
      this.statusMessage = null;
    }
    get headersDistinct() {
      const out = {};
      for (let index = 0; index < this.rawHeaders.length; index += 2) (out[this.rawHeaders[index].toLowerCase()] ??= []).push(this.rawHeaders[index + 1]);
      return out;
    }
    _read() { this.socket?.resume(); }
    setTimeout(delay, callback) { this.socket.setTimeout(delay, callback); return this; }
    _destroy(error, done) {
      if (!this.complete && !this._fromServerSide) this.socket?.destroy(error ?? undefined);
      done(error);
    }
  }
  const SINGLE = new Set(['age', 'authorization', 'content-length', 'content-type', 'etag', 'expires', 'from', 'host', 'if-modified-since', 'if-unmodified-since', 'last-modified', 'location', 'max-forwards', 'proxy-authorization', 'referer', 'retry-after', 'server', 'user-agent']);
  function addHeader(headers, name, value) {
    const key = name.toLowerCase();
    if (key === 'set-cookie') (headers[key] ??= []).push(value);
    else if (headers[key] === undefined) headers[key] = value;
    else if (key === 'cookie') headers[key] += `; ${value}`;
    else if (!SINGLE.has(key)) headers[key] += `, ${value}`;
  }

  // Takes messages from a stream of bytes: heads, and bodies by length, in chunks, or to the end.
  class Parser {
    #rest = Buffer.alloc(0); #state = 'head'; #left = 0; #events;
    constructor(events) { this.#events = events; }
    feed(chunk) {
      this.#rest = this.#rest.length ? Buffer.concat([this.#rest, chunk]) : chunk;
      while (this.#step());
    }
    end() {
      if (this.#state === 'all') { this.#state = 'head'; this.#events.end(); return true; }
      return this.#state === 'head' && this.#rest.length === 0;
    }
    get rest() { return this.#rest; }
    #line() {
      const at = this.#rest.indexOf(10);
      if (at < 0) {
        if (this.#rest.length > LONGEST_HEAD) throw coded(Error, 'HPE_HEADER_OVERFLOW', 'Parse Error: Header overflow');
        return null;
      }
      const line = this.#rest.toString('latin1', 0, at > 0 && this.#rest[at - 1] === 13 ? at - 1 : at);
      this.#rest = this.#rest.subarray(at + 1);
      return line;
    }
    #step() {
      switch (this.#state) {
        case 'head': {
          while (this.#rest[0] === 13 || this.#rest[0] === 10) this.#rest = this.#rest.subarray(1);
          let at = this.#rest.indexOf('\r\n\r\n'), skip = 4;
          const bare = this.#rest.indexOf('\n\n');
          if (bare >= 0 && (at < 0 || bare < at)) { at = bare; skip = 2; }
          if (at < 0) {
            if (this.#rest.length > LONGEST_HEAD) throw coded(Error, 'HPE_HEADER_OVERFLOW', 'Parse Error: Header overflow');
            return false;
          }
          const lines = this.#rest.toString('latin1', 0, at).split(/\r?\n/);
          this.#rest = this.#rest.subarray(at + skip);
          const raw = [];
          for (const line of lines.slice(1)) {
            if (/^[ \t]/.test(line) && raw.length) { raw[raw.length - 1] += ` ${line.trim()}`; continue; }
            const cut = line.indexOf(':');
            if (cut <= 0 || !TOKEN.test(line.slice(0, cut))) throw coded(Error, 'HPE_INVALID_HEADER_TOKEN', 'Parse Error: Invalid header token');
            raw.push(line.slice(0, cut), line.slice(cut + 1).trim());
          }
          const headers = {};
          for (let index = 0; index < raw.length; index += 2) addHeader(headers, raw[index], raw[index + 1]);
          const how = this.#events.head(lines[0], raw, headers);
          if (how === 'upgrade') { this.#state = 'over'; return false; }
          const coding = headers['transfer-encoding'];
          if (how === 'none') { this.#events.end(); return true; }
          if (coding && /chunked\s*$/i.test(coding)) this.#state = 'size';
          else if (headers['content-length'] !== undefined) {
            if (!/^\d+$/.test(headers['content-length'])) throw coded(Error, 'HPE_INVALID_CONTENT_LENGTH', 'Parse Error: Invalid character in Content-Length');
            this.#left = Number(headers['content-length']);
            this.#state = 'body';
          } else if (how === 'rest') this.#state = 'all';
          else this.#events.end();
          return true;
        }
        case 'body': {
          const part = this.#rest.subarray(0, this.#left);
          this.#rest = this.#rest.subarray(part.length);
          this.#left -= part.length;
          if (part.length) this.#events.body(part);
          if (this.#left > 0) return false;
          this.#state = 'head';
          this.#events.end();
          return this.#rest.length > 0;
        }
        case 'all':
          if (this.#rest.length) this.#events.body(this.#rest);
          this.#rest = Buffer.alloc(0);
          return false;
        case 'size': {
          const line = this.#line();
          if (line === null) return false;
          const size = /^[0-9a-fA-F]{1,12}/.exec(line.trim());
          if (!size) throw coded(Error, 'HPE_INVALID_CHUNK_SIZE', 'Parse Error: Invalid character in chunk size');
          this.#left = parseInt(size[0], 16);
          this.#state = this.#left === 0 ? 'trailer' : 'chunk';
          return true;
        }
        case 'chunk': {
          const part = this.#rest.subarray(0, this.#left);
          this.#rest = this.#rest.subarray(part.length);
          this.#left -= part.length;
          if (part.length) this.#events.body(part);
          if (this.#left > 0) return false;
          this.#state = 'chunkEnd';
          return true;
        }
        case 'chunkEnd':
          if (this.#line() === null) return false;
          this.#state = 'size';
          return true;
        case 'trailer': {
          const line = this.#line();
          if (line === null) return false;
          if (line !== '') return true;
          this.#state = 'head';
          this.#events.end();
          return this.#rest.length > 0;
        }
        default: return false;
      }
    }
  }

  class OutgoingMessage extends Writable {
    constructor() {
      // A request that is finished still waits for its response.
      super({ highWaterMark: 65536, autoDestroy: false });
      this._headers = new Map();
      this.headersSent = false;
      this.sendDate = true;
      this.chunkedEncoding = false;
      this.socket = null;
      this._bodyless = false;
      for (const name of ['_headers', '_bodyless', '_queue']) Object.defineProperty(this, name, { enumerable: false, writable: true, value: this[name] });
    }
    setHeader(name, value) {
      if (this.headersSent) throw coded(Error, 'ERR_HTTP_HEADERS_SENT', 'Cannot set headers after they are sent to the client');
      checkHeader(name, value);
      this._headers.set(name.toLowerCase(), [name, value]);
      return this;
    }
    setHeaders(headers) { for (const [name, value] of headers) this.setHeader(name, value); return this; }
    appendHeader(name, value) {
      const before = this.getHeader(name);
      return this.setHeader(name, before === undefined ? value : [].concat(before, value));
    }
    getHeader(name) { return this._headers.get(`${name}`.toLowerCase())?.[1]; }
    getHeaderNames() { return [...this._headers.keys()]; }
    getRawHeaderNames() { return [...this._headers.values()].map((pair) => pair[0]); }
    getHeaders() { return Object.assign(Object.create(null), Object.fromEntries([...this._headers].map(([key, pair]) => [key, pair[1]]))); }
    hasHeader(name) { return this._headers.has(`${name}`.toLowerCase()); }
    removeHeader(name) {
      if (this.headersSent) throw coded(Error, 'ERR_HTTP_HEADERS_SENT', 'Cannot remove headers after they are sent to the client');
      this._headers.delete(`${name}`.toLowerCase());
    }
    flushHeaders() { if (!this.headersSent) this._sendHead(); }
    addTrailers() {}
    setTimeout(delay, callback) { if (this.socket) this.socket.setTimeout(delay, callback); else this.once('socket', (socket) => socket.setTimeout(delay, callback)); return this; }
    get connection() { return this.socket; }
    get finished() { return this.writableEnded; }
    _lines() {
      const out = [];
      for (const [name, value] of this._headers.values()) for (const one of [].concat(value)) out.push(`${name}: ${one}\r\n`);
      return out.join('');
    }
    _write(chunk, encoding, done) {
      if (!this.headersSent) {
        if (!this.hasHeader('content-length') && !this.hasHeader('transfer-encoding') && !this._bodyless) {
          // All of it is known if it has ended already.
          if (this.writableEnded && this._writableState.buffered.length === 0) this._headers.set('content-length', ['Content-Length', String(chunk.length)]);
          else if (this._noChunks) this.shouldKeepAlive = false;
          else this._headers.set('transfer-encoding', ['Transfer-Encoding', 'chunked']);
        }
        this._sendHead();
      }
      if (this._bodyless) { done(); return; }
      if (this.chunkedEncoding) this._put(Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]), done);
      else this._put(chunk, done);
    }
    _final(done) {
      if (!this.headersSent) {
        if (!this.hasHeader('content-length') && !this.hasHeader('transfer-encoding') && this._wantsLength()) this._headers.set('content-length', ['Content-Length', '0']);
        this._sendHead();
      }
      if (this.chunkedEncoding && !this._bodyless) this._put('0\r\n\r\n', done);
      else done();
      this._ended?.();
    }
    end(chunk, encoding, callback) {
      const isData = typeof chunk === 'string' || chunk instanceof Uint8Array;
      // All of it is known.
      if (isData && !this.headersSent && this.writableLength === 0 && !this._bodyless && !this.hasHeader('content-length') && !this.hasHeader('transfer-encoding')) {
        this._headers.set('content-length', ['Content-Length', String(Buffer.byteLength(chunk, typeof encoding === 'string' ? encoding : 'utf8'))]);
      }
      return super.end(chunk, encoding, callback);
    }
    _wantsLength() { return !this._bodyless; }
    _put(data, done) {
      if (this.socket) {
        if (this.socket.destroyed) done?.();
        else this.socket.write(data, done);
      } else (this._queue ??= []).push([data, done]);
    }
    _attach(socket) {
      this.socket = socket;
      for (const [data, done] of this._queue ?? []) socket.write(data, done);
      this._queue = null;
    }
  }
  function checkHeader(name, value) {
    if (typeof name !== 'string' || !TOKEN.test(name)) throw coded(TypeError, 'ERR_INVALID_HTTP_TOKEN', `Header name must be a valid HTTP token ["${name}"]`);
    if (value === undefined) throw coded(TypeError, 'ERR_HTTP_INVALID_HEADER_VALUE', `Invalid value "${value}" for header "${name}"`);
    // eslint-disable-next-line no-control-regex
    for (const one of [].concat(value)) if (/[^\t\x20-\x7e\x80-\xff]/.test(`${one}`)) throw coded(TypeError, 'ERR_INVALID_CHAR', `Invalid character in header content ["${name}"]`);
  }

  class ServerResponse extends OutgoingMessage {
    constructor(request) {
      super();
      this.req = request;
      this.statusCode = 200;
      this.statusMessage = undefined;
      this._bodyless = request.method === 'HEAD';
      this._noChunks = request.httpVersion === '1.0';
      this.shouldKeepAlive = true;
    }
    writeHead(code, reason, headers) {
      if (this.headersSent) throw coded(Error, 'ERR_HTTP_HEADERS_SENT', 'Cannot write headers after they are sent to the client');
      if (typeof reason !== 'string') { headers ??= reason; reason = undefined; }
      if (!(code >= 100 && code <= 999)) throw coded(RangeError, 'ERR_HTTP_INVALID_STATUS_CODE', `Invalid status code: ${code}`);
      this.statusCode = code | 0;
      if (reason !== undefined) this.statusMessage = reason;
      if (Array.isArray(headers)) for (let index = 0; index < headers.length; index += 2) this.appendHeader(headers[index], headers[index + 1]);
      else for (const name of Object.keys(headers ?? {})) if (headers[name] !== undefined) this.setHeader(name, headers[name]);
      return this;
    }
    writeContinue() { this.socket?.write('HTTP/1.1 100 Continue\r\n\r\n'); }
    writeEarlyHints() {}
    _wantsLength() { return !this._bodyless && this.statusCode !== 204 && this.statusCode !== 304; }
    _sendHead() {
      if (this.statusCode === 204 || this.statusCode === 304) { this._bodyless = true; this._headers.delete('transfer-encoding'); }
      this.statusMessage ??= STATUS_CODES[this.statusCode] ?? 'unknown';
      this.chunkedEncoding = /chunked/i.test(`${this.getHeader('transfer-encoding') ?? ''}`);
      if (/close/i.test(`${this.getHeader('connection') ?? this.req.headers.connection ?? ''}`) || (this.req.httpVersion === '1.0' && !/keep-alive/i.test(this.req.headers.connection ?? ''))) this.shouldKeepAlive = false;
      let head = `HTTP/1.1 ${this.statusCode} ${this.statusMessage}\r\n${this._lines()}`;
      if (this.sendDate && !this.hasHeader('date')) head += `Date: ${new Date().toUTCString()}\r\n`;
      if (!this.hasHeader('connection')) head += this.shouldKeepAlive ? 'Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n' : 'Connection: close\r\n';
      this.headersSent = true;
      this._put(`${head}\r\n`);
    }
    assignSocket(socket) { this._attach(socket); }
  }

  class Server extends net.Server {
    #sockets = new Set();
    constructor(options, listener) {
      super({ allowHalfOpen: true });
      if (typeof options === 'function') listener = options;
      if (listener) this.on('request', listener);
      this.timeout = 0;
      this.keepAliveTimeout = 5000;
      this.requestTimeout = 300000;
      this.headersTimeout = 60000;
      this.maxHeadersCount = null;
      this.on('connection', (socket) => this.#serve(socket));
    }
    #serve(socket) {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      const queue = [];
      let incoming = null;
      const next = () => {
        const response = queue[0];
        if (response && !response.socket) response._attach(socket);
      };
      const parser = new Parser({
        head: (line, raw, headers) => {
          const match = /^([!-~]+) (\S+) HTTP\/(\d)\.(\d)$/.exec(line);
          if (!match) throw coded(Error, 'HPE_INVALID_METHOD', 'Parse Error: Invalid method encountered');
          incoming = new IncomingMessage(socket);
          incoming._fromServerSide = true;
          Object.assign(incoming, { method: match[1], url: match[2], httpVersion: `${match[3]}.${match[4]}`, httpVersionMajor: Number(match[3]), httpVersionMinor: Number(match[4]), rawHeaders: raw, headers });
          const response = new ServerResponse(incoming);
          queue.push(response);
          socket._busy = true;
          response._ended = () => {
            require('process').nextTick(() => {
              queue.shift();
              socket._busy = queue.length > 0;
              if (!response.shouldKeepAlive) socket.end();
              else if (this._closing && queue.length === 0) socket.end();
              else next();
            });
          };
          next();
          if (headers.upgrade && /upgrade/i.test(headers.connection ?? '') && this.listenerCount('upgrade')) {
            const message = incoming;
            require('process').nextTick(() => { socket.removeAllListeners('data'); this.emit('upgrade', message, socket, parser.rest); });
            return 'upgrade';
          }
          const message = incoming;
          if (/100-continue/i.test(headers.expect ?? '') && !this.listenerCount('checkContinue')) socket.write('HTTP/1.1 100 Continue\r\n\r\n');
          require('process').nextTick(() => this.emit('request', message, response));
          return 'maybe';
        },
        body: (part) => { if (incoming && !incoming.push(part)) socket.pause(); },
        end: () => { const message = incoming; incoming = null; if (message) { message.complete = true; message.push(null); } },
      });
      socket.on('data', (chunk) => {
        try {
          parser.feed(chunk);
        } catch (error) {
          if (this.listenerCount('clientError')) this.emit('clientError', error, socket);
          else socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
        }
      });
      socket.on('end', () => { if (queue.length === 0) socket.end(); });
      socket.on('error', (error) => { if (this.listenerCount('clientError')) this.emit('clientError', error, socket); });
      socket.on('close', () => {
        if (incoming && !incoming.complete) { incoming.aborted = true; incoming.emit('aborted'); incoming.destroy(coded(Error, 'ECONNRESET', 'aborted')); }
        for (const response of queue) response.destroy();
      });
    }
    close(callback) {
      this._closing = true;
      super.close(callback);
      this.closeIdleConnections();
      return this;
    }
    closeAllConnections() { for (const socket of this.#sockets) socket.destroy(); }
    closeIdleConnections() { for (const socket of this.#sockets) if (!socket._busy) socket.end(); }
    setTimeout(delay, callback) { this.timeout = delay; if (callback) this.on('timeout', callback); return this; }
  }

  class Agent extends EventEmitter {
    constructor(options = {}) {
      super();
      this.options = { ...options };
      this.keepAlive = options.keepAlive ?? false;
      this.maxSockets = options.maxSockets ?? Infinity;
      this.sockets = {};
      this.requests = {};
      this.freeSockets = {};
      this.defaultPort = 80;
      this.protocol = 'http:';
    }
    createConnection(options, callback) { return net.connect(options, callback); }
    getName(options = {}) { return `${options.host ?? 'localhost'}:${options.port ?? ''}:${options.localAddress ?? ''}`; }
    destroy() {}
  }
  const globalAgent = new Agent({ keepAlive: true });

  class ClientRequest extends OutgoingMessage {
    constructor(input, options, callback) {
      super();
      if (typeof input === 'string') input = new URL(input);
      if (input instanceof URL) input = require('url').urlToHttpOptions(input);
      else { callback = options; options = input; input = null; }
      if (typeof options === 'function') { callback = options; options = {}; }
      options = { ...input, ...options };
      const secure = options._secure ?? false;
      const expected = secure ? 'https:' : 'http:';
      const protocol = options.protocol ?? expected;
      if (protocol !== expected) throw coded(TypeError, 'ERR_INVALID_PROTOCOL', `Protocol "${protocol}" not supported. Expected "${expected}"`);
      const defaultPort = options.defaultPort ?? (secure ? 443 : 80);
      this.method = (options.method ?? 'GET').toUpperCase();
      if (!TOKEN.test(this.method)) throw coded(TypeError, 'ERR_INVALID_HTTP_TOKEN', `Method must be a valid HTTP token ["${this.method}"]`);
      this.path = options.path ?? '/';
      // eslint-disable-next-line no-control-regex
      if (/[^\x21-\xff]/.test(this.path)) throw coded(TypeError, 'ERR_UNESCAPED_CHARACTERS', 'Request path contains unescaped characters');
      this.host = options.hostname ?? options.host ?? 'localhost';
      this.protocol = protocol;
      this.agent = options.agent ?? null;
      this.aborted = false;
      this.reusedSocket = false;
      this.res = null;
      const port = options.port ?? defaultPort;
      const headers = options.headers ?? {};
      if (Array.isArray(headers)) for (let index = 0; index < headers.length; index += 2) this.appendHeader(headers[index], headers[index + 1]);
      else for (const name of Object.keys(headers)) if (headers[name] !== undefined) this.setHeader(name, headers[name]);
      if (!this.hasHeader('host') && options.setHost !== false) this.setHeader('Host', `${this.host.includes(':') ? `[${this.host}]` : this.host}${Number(port) !== defaultPort ? `:${port}` : ''}`);
      if (options.auth && !this.hasHeader('authorization')) this.setHeader('Authorization', `Basic ${Buffer.from(options.auth).toString('base64')}`);
      if (!this.hasHeader('connection')) this.setHeader('Connection', 'close');
      if (callback) this.once('response', callback);
      if (options.timeout) this.setTimeout(options.timeout, () => this.emit('timeout'));
      options.signal?.addEventListener('abort', () => this.destroy(new (require('_errors').AbortError)(undefined, { cause: options.signal.reason })), { once: true });
      if (options.signal?.aborted) { require('process').nextTick(() => this.destroy(new (require('_errors').AbortError)(undefined, { cause: options.signal.reason }))); return; }
      const to = options.socketPath ? { path: options.socketPath } : { host: this.host, port, family: options.family };
      const socket = options.createConnection ? options.createConnection({ ...options, ...to }) : secure
        ? require('tls').connect({ ...to, servername: options.servername ?? this.host, rejectUnauthorized: options.rejectUnauthorized ?? require('process').env.NODE_TLS_REJECT_UNAUTHORIZED !== '0' }) : net.connect(to);
      this.#use(socket);
    }
    #use(socket) {
      let response = null, done = false;
      const parser = new Parser({
        head: (line, raw, headers) => {
          const match = /^HTTP\/(\d)\.(\d) (\d{3})(?: (.*))?$/.exec(line);
          if (!match) throw coded(Error, 'HPE_INVALID_CONSTANT', 'Parse Error: Expected HTTP/');
          const code = Number(match[3]);
          if (code >= 100 && code < 200 && code !== 101) {
            if (code === 100) this.emit('continue');
            return 'none';
          }
          response = new IncomingMessage(socket);
          Object.assign(response, { statusCode: code, statusMessage: match[4] ?? '', httpVersion: `${match[1]}.${match[2]}`, rawHeaders: raw, headers, req: this });
          this.res = response;
          if (code === 101) {
            require('process').nextTick(() => this.emit('upgrade', response, socket, parser.rest));
            done = true;
            return 'upgrade';
          }
          const none = this.method === 'HEAD' || code === 204 || code === 304;
          if (!this.emit('response', response)) response.resume();
          return none ? 'none' : 'rest';
        },
        body: (part) => { if (!response.push(part)) socket.pause(); },
        end: () => {
          if (!response) return;
          done = true;
          response.complete = true;
          response.push(null);
          const finish = () => { socket.destroySoon(); };
          if (this.writableFinished) finish();
          else this.once('finish', finish);
        },
      });
      const failed = (error) => { if (!this.destroyed) this.destroy(error); };
      socket.on('error', (error) => {
        if (done) return;
        if (response) response.destroy(error);
        else failed(error);
      });
      const begin = () => socket.on('data', (chunk) => {
        try {
          parser.feed(chunk);
        } catch (error) {
          socket.destroy();
          failed(error);
        }
      });
      if (socket.encrypted && !socket._secured) socket.once('secureConnect', begin);
      else begin();
      socket.on('close', () => {
        if (done) { if (!this.destroyed) this.destroy(); return; }
        if (parser.end() && response) return;
        const hangUp = coded(Error, 'ECONNRESET', response ? 'aborted' : 'socket hang up');
        hangUp.stack = `Error: ${hangUp.message}`;
        if (response) { response.aborted = true; response.emit('aborted'); response.destroy(hangUp); } else failed(hangUp);
      });
      socket.on('end', () => { parser.end(); });
      require('process').nextTick(() => {
        this._attach(socket);
        this.emit('socket', socket);
      });
    }
    _wantsLength() { return !['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'].includes(this.method); }
    _sendHead() {
      this.chunkedEncoding = /chunked/i.test(`${this.getHeader('transfer-encoding') ?? ''}`);
      this.headersSent = true;
      this._put(`${this.method} ${this.path} HTTP/1.1\r\n${this._lines()}\r\n`);
    }
    _destroy(error, done) {
      this.socket?.destroy();
      done(error);
    }
    abort() { this.aborted = true; this.emit('abort'); this.destroy(); }
    setNoDelay() {}
    setSocketKeepAlive() {}
  }

  const callable = (Type) => new Proxy(Type, { apply: (target, self, args) => new Type(...args) });
  Object.assign(exports, { STATUS_CODES, METHODS, Agent, globalAgent, IncomingMessage, OutgoingMessage, ServerResponse, ClientRequest, Server: callable(Server), maxHeaderSize: 16384 });
  exports.createServer = (options, listener) => new Server(options, listener);
  exports.request = (...args) => new ClientRequest(...args);
  exports.get = (...args) => {
    const request = exports.request(...args);
    request.end();
    return request;
  };
  exports.validateHeaderName = (name) => checkHeader(name, '');
  exports.validateHeaderValue = checkHeader;
  exports.setMaxIdleHTTPParsers = () => {};
  void invalidArgType;
})
