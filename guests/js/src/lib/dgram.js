// dgram: UDP sockets.
(function (exports, require, module, native) {
  'use strict';
  const EventEmitter = require('events');
  const loop = require('_loop');
  const { network, unsupported } = require('_errors');
  class Socket extends EventEmitter {
    #fd = -1; #watcher = null; #type; #room = new Uint8Array(65536); #peer = null;
    constructor(options, listener) {
      super();
      this.#type = typeof options === 'string' ? options : options.type;
      if (!['udp4', 'udp6'].includes(this.#type)) throw require('_errors').coded(TypeError, 'ERR_SOCKET_BAD_TYPE', 'Bad socket type specified. Valid types are: udp4, udp6');
      if (listener) this.on('message', listener);
    }
    bind(port, host, callback) {
      if (typeof port === 'object' && port !== null) { callback = host; ({ port, address: host } = port); }
      if (typeof port === 'function') { callback = port; port = 0; }
      if (typeof host === 'function') { callback = host; host = undefined; }
      if (callback) this.once('listening', callback);
      const address = host ?? (this.#type === 'udp4' ? '0.0.0.0' : '::');
      const fd = native.datagram(address === 'localhost' ? '127.0.0.1' : address, port ?? 0);
      if (fd < 0) { loop.complete(() => this.emit('error', network(fd, 'bind', address, port))); return this; }
      this.#fd = fd;
      this.#watcher = loop.watch(fd, 1, () => {
        const got = native.receiveFrom(fd, this.#room);
        if (typeof got === 'number') return;
        const [size, from, at] = got;
        this.emit('message', Buffer.from(this.#room.subarray(0, Number(size))), { address: from, family: from.includes(':') ? 'IPv6' : 'IPv4', port: Number(at), size: Number(size) });
      });
      loop.nextTick(() => this.emit('listening'));
      return this;
    }
    send(message, ...rest) {
      const callback = typeof rest[rest.length - 1] === 'function' ? rest.pop() : null;
      let bytes = Array.isArray(message) ? Buffer.concat(message.map((one) => Buffer.from(one))) : Buffer.from(message);
      if (typeof rest[1] === 'number' && typeof rest[0] === 'number' && rest.length > 2) { bytes = bytes.subarray(rest[0], rest[0] + rest[1]); rest = rest.slice(2); }
      const [port = this.#peer?.port, host = this.#peer?.host ?? (this.#type === 'udp4' ? '127.0.0.1' : '::1')] = rest;
      if (this.#fd < 0) this.bind(0);
      require('dns').lookup(host, { family: this.#type === 'udp4' ? 4 : 6 }, (error, address) => {
        const count = error ? 0 : native.sendTo(this.#fd, new Uint8Array(bytes), address, port);
        const failure = error ?? (count < 0 ? network(count, 'send', address, port) : null);
        if (callback) callback(failure, count);
        else if (failure) this.emit('error', failure);
      });
    }
    connect(port, host, callback) { this.#peer = { port, host: typeof host === 'string' ? host : '127.0.0.1' }; const done = typeof host === 'function' ? host : callback; loop.complete(() => { done?.(); this.emit('connect'); }); }
    address() { const name = native.socketName(this.#fd, false); return { address: name[0], port: Number(name[1]), family: name[2] }; }
    close(callback) {
      if (callback) this.once('close', callback);
      loop.unwatch(this.#watcher);
      if (this.#fd >= 0) native.close(this.#fd);
      this.#fd = -1;
      loop.nextTick(() => this.emit('close'));
      return this;
    }
    ref() { if (this.#watcher) this.#watcher.ref = true; return this; }
    unref() { if (this.#watcher) this.#watcher.ref = false; return this; }
    setBroadcast() {}
    addMembership() { throw unsupported('dgram multicast'); }
  }
  exports.Socket = Socket;
  exports.createSocket = (options, listener) => new Socket(options, listener);
})
