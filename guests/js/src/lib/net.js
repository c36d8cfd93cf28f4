// net: TCP and Unix sockets.
(function (exports, require, module, native) {
  'use strict';

  const EventEmitter = require('events');
  const { Duplex } = require('stream');
  const loop = require('_loop');
  const { network, coded, invalidArgType, outOfRange } = require('_errors');
  const AGAIN = -11;

  const V4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/;
  exports.isIPv4 = (text) => V4.test(`${text}`);
  exports.isIPv6 = (text) => { try { return `${text}`.includes(':') && require('_url').parseHost(`[${`${text}`.replace(/%.*$/, '')}]`, true) !== null; } catch { return false; } };
  exports.isIP = (text) => (exports.isIPv4(text) ? 4 : exports.isIPv6(text) ? 6 : 0);

  class Socket extends Duplex {
    #fd = -1; #reading = null; #writing = null; #idle = null; #timeout = 0; #ref = true; #room = null;
    constructor(options = {}) {
      super({ allowHalfOpen: options.allowHalfOpen ?? false, emitClose: true, signal: options.signal, highWaterMark: options.highWaterMark });
      this.connecting = false;
      this.bytesRead = 0;
      this.bytesWritten = 0;
      if (options.fd !== undefined) this._adopt(options.fd);
    }
    _adopt(fd, peer) {
      this.#fd = fd;
      this.#names(peer);
      this.read(0);
    }
    #names() {
      const peer = native.socketName(this.#fd, true), own = native.socketName(this.#fd, false);
      if (Array.isArray(peer) && peer.length) { [this.remoteAddress] = peer; this.remotePort = Number(peer[1]); [, , this.remoteFamily] = peer; }
      if (Array.isArray(own) && own.length) { [this.localAddress] = own; this.localPort = Number(own[1]); [, , this.localFamily] = own; }
    }
    get _fd() { return this.#fd; }
    get pending() { return this.#fd < 0 || this.connecting; }
    get readyState() { return this.connecting ? 'opening' : this.readable && this.writable ? 'open' : this.readable ? 'readOnly' : this.writable ? 'writeOnly' : 'closed'; }
    connect(...args) {
      const callback = typeof args[args.length - 1] === 'function' ? args.pop() : null;
      let [options] = args;
      if (typeof options === 'number' || (typeof options === 'string' && /^\d+$/.test(options))) options = { port: Number(options), host: args[1] };
      else if (typeof options === 'string') options = { path: options };
      if (options.path === undefined && options.port === undefined) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "options" or "port" or "path" argument must be specified');
      if (options.path === undefined && !(Number(options.port) >= 0 && Number(options.port) < 65536)) throw coded(RangeError, 'ERR_SOCKET_BAD_PORT', `Port should be >= 0 and < 65536. Received type ${typeof options.port} (${options.port}).`);
      if (callback) this.once('connect', callback);
      this.connecting = true;
      if (options.timeout) this.setTimeout(options.timeout);
      if (options.path !== undefined) {
        loop.complete(() => this.#begin(options.path, -1));
        return this;
      }
      const host = options.host ?? 'localhost';
      require('dns').lookup(host, { all: true, family: options.family }, (error, found) => {
        if (this.destroyed) return;
        this.emit('lookup', error, found?.[0]?.address, found?.[0]?.family, host);
        if (error) { this.connecting = false; this.destroy(error); return; }
        this.#begin(found[0].address, Number(options.port), found.slice(1));
      });
      return this;
    }
    #begin(host, port, more = []) {
      if (this.destroyed) return;
      const fd = native.connect(host, port);
      const failed = (number) => {
        if (more.length) { this.#begin(more[0].address, port, more.slice(1)); return; }
        this.connecting = false;
        this.destroy(network(number, 'connect', host, port));
      };
      if (fd < 0) { failed(fd); return; }
      this.#fd = fd;
      this.#writing = loop.watch(fd, 2, () => {
        loop.unwatch(this.#writing);
        this.#writing = null;
        const error = native.socketError(fd);
        if (error > 0 || error < 0) {
          native.close(fd);
          this.#fd = -1;
          failed(-Math.abs(error));
          return;
        }
        this.connecting = false;
        this.#names();
        this.emit('connect');
        this.emit('ready');
        this.read(0);
        this.emit('_connected');
      });
    }
    _read() {
      if (this.#fd < 0 || this.connecting || this.#reading) {
        if (this.#fd < 0 || this.connecting) this.once('_connected', () => this._read());
        return;
      }
      this.#room ??= new Uint8Array(65536);
      this.#reading = loop.watch(this.#fd, 1, () => {
        const count = native.receive(this.#fd, this.#room);
        if (count === AGAIN) return;
        loop.unwatch(this.#reading);
        this.#reading = null;
        this.#active();
        if (count < 0) this.destroy(network(count, 'read'));
        else if (count === 0) { this.push(null); this.read(0); }
        else {
          this.bytesRead += count;
          this.push(Buffer.from(this.#room.subarray(0, count)));
        }
      });
      this.#reading.ref = this.#ref;
    }
    _write(chunk, encoding, done) {
      if (this.connecting || this.#fd < 0) {
        if (this.destroyed) { done(network('EPIPE', 'write')); return; }
        this.once('_connected', () => this._write(chunk, encoding, done));
        return;
      }
      let at = 0;
      const go = () => {
        while (at < chunk.length) {
          const count = native.send(this.#fd, chunk.subarray(at));
          if (count === AGAIN) { this.#writing ??= loop.watch(this.#fd, 2, go); return; }
          if (count < 0) {
            loop.unwatch(this.#writing);
            this.#writing = null;
            done(network(count, 'write'));
            return;
          }
          at += count;
          this.bytesWritten += count;
        }
        loop.unwatch(this.#writing);
        this.#writing = null;
        this.#active();
        done();
      };
      go();
    }
    _final(done) {
      if (this.connecting) { this.once('_connected', () => this._final(done)); return; }
      if (this.#fd >= 0) native.shutdown(this.#fd);
      done();
    }
    _destroy(error, done) {
      loop.unwatch(this.#reading);
      loop.unwatch(this.#writing);
      this.#reading = this.#writing = null;
      clearTimeout(this.#idle);
      this.connecting = false;
      if (this.#fd >= 0) native.close(this.#fd);
      this.#fd = -1;
      done(error);
      this._onDestroy?.();
    }
    #active() { if (this.#timeout) this.setTimeout(this.#timeout); }
    setTimeout(delay, callback) {
      this.#timeout = delay;
      clearTimeout(this.#idle);
      if (delay > 0) this.#idle = setTimeout(() => this.emit('timeout'), delay).unref();
      if (callback) this.once('timeout', callback);
      return this;
    }
    get timeout() { return this.#timeout || undefined; }
    setNoDelay() { return this; }
    setKeepAlive() { return this; }
    ref() { this.#ref = true; if (this.#reading) this.#reading.ref = true; return this; }
    unref() { this.#ref = false; if (this.#reading) this.#reading.ref = false; return this; }
    address() { return this.localAddress ? { address: this.localAddress, family: this.localFamily, port: this.localPort } : {}; }
    destroySoon() { if (this.writable) this.end(); if (this.writableFinished) this.destroy(); else this.once('finish', () => this.destroy()); }
    resetAndDestroy() { return this.destroy(); }
  }
  exports.Socket = Socket;
  exports.Stream = Socket;
  exports.connect = exports.createConnection = (...args) => {
    const options = typeof args[0] === 'object' ? args[0] : {};
    return new Socket(options).connect(...args);
  };

  class Server extends EventEmitter {
    #fd = -1; #watcher = null; #connections = new Set(); #path = null; #options; #ref = true;
    constructor(options = {}, listener) {
      super();
      if (typeof options === 'function') { listener = options; options = {}; }
      this.#options = options;
      if (listener) this.on('connection', listener);
    }
    get listening() { return this.#fd >= 0; }
    listen(...args) {
      const callback = typeof args[args.length - 1] === 'function' ? args.pop() : null;
      let [options] = args;
      if (options === undefined || options === null || typeof options === 'number' || (typeof options === 'string' && /^\d+$/.test(options))) options = { port: Number(options ?? 0), host: typeof args[1] === 'string' ? args[1] : undefined };
      else if (typeof options === 'string') options = { path: options };
      if (callback) this.once('listening', callback);
      if (this.#fd >= 0) throw coded(Error, 'ERR_SERVER_ALREADY_LISTEN', 'Listen method has been called more than once without closing.');
      if (options.path === undefined && !(Number(options.port) >= 0 && Number(options.port) < 65536)) throw coded(RangeError, 'ERR_SOCKET_BAD_PORT', `options.port should be >= 0 and < 65536. Received ${require('_inspect').inspect(options.port)}.`);
      options.signal?.addEventListener('abort', () => this.close(), { once: true });
      const begin = (host) => {
        const port = options.path === undefined ? Number(options.port) : -1;
        let fd = native.listen(host, port, options.backlog ?? 511);
        if (fd < 0 && host === '::') fd = native.listen(host = '0.0.0.0', port, options.backlog ?? 511);
        if (fd < 0) {
          loop.complete(() => this.emit('error', Object.assign(network(fd, 'listen', host, port), { message: `listen ${require('_errors').errnoName(fd)}: ${fd === -98 ? 'address already in use' : 'not possible'} ${host}${port > 0 ? `:${port}` : ''}` })));
          return;
        }
        this.#fd = fd;
        this.#path = options.path ?? null;
        this.#watcher = loop.watch(fd, 1, () => this.#accept());
        this.#watcher.ref = this.#ref;
        loop.nextTick(() => this.emit('listening'));
      };
      if (options.path !== undefined) begin(options.path);
      else if (!options.host) begin('::');
      else if (exports.isIP(options.host)) begin(options.host);
      else require('dns').lookup(options.host, (error, address) => (error ? this.emit('error', error) : begin(address)));
      return this;
    }
    #accept() {
      for (let count = 0; count < 64 && this.#fd >= 0; count++) {
        const fd = native.accept(this.#fd);
        if (fd < 0) return;
        const socket = new Socket({ allowHalfOpen: this.#options.allowHalfOpen });
        this.#connections.add(socket);
        socket.server = this;
        socket._onDestroy = () => { this.#connections.delete(socket); this.#closed(); };
        socket._adopt(fd);
        this.emit('connection', socket);
      }
    }
    #closing = null;
    #closed() {
      if (this.#fd >= 0 || this.#connections.size || !this.#closing) return;
      this.#closing = null;
      loop.nextTick(() => this.emit('close'));
    }
    close(callback) {
      if (callback) {
        if (this.#fd < 0) this.once('close', () => callback(coded(Error, 'ERR_SERVER_NOT_RUNNING', 'Server is not running.')));
        else this.once('close', callback);
      }
      if (this.#fd >= 0) {
        loop.unwatch(this.#watcher);
        native.close(this.#fd);
        if (this.#path) native.unlink(this.#path);
        this.#fd = -1;
      }
      this.#closing = true;
      this.#closed();
      return this;
    }
    _sockets() { return this.#connections; }
    address() {
      if (this.#path) return this.#path;
      const name = this.#fd >= 0 ? native.socketName(this.#fd, false) : null;
      return Array.isArray(name) && name.length ? { address: name[0], family: name[2], port: Number(name[1]) } : null;
    }
    getConnections(callback) { loop.nextTick(callback, [null, this.#connections.size]); return this; }
    ref() { this.#ref = true; if (this.#watcher) this.#watcher.ref = true; return this; }
    unref() { this.#ref = false; if (this.#watcher) this.#watcher.ref = false; return this; }
    [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() { return new Promise((resolve) => this.close(() => resolve())); }
  }
  const callable = (Type) => new Proxy(Type, { apply: (target, self, args) => new Type(...args) });
  exports.Server = callable(Server);
  exports.createServer = (options, listener) => new Server(options, listener);
  exports.BlockList = class BlockList { constructor() { throw require('_errors').unsupported('net.BlockList'); } };
  exports.getDefaultAutoSelectFamily = () => true;
  exports.setDefaultAutoSelectFamily = () => {};
  void invalidArgType;
  void outOfRange;
})
