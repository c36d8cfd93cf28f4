// Streams of files, and watching them.
(function (exports, require, module, native) {
  'use strict';

  const fs = require('fs');
  const EventEmitter = require('events');
  const { Readable, Writable } = require('stream');
  const { system, invalidArgType, outOfRange, validate } = require('_errors');
  const loop = require('_loop');
  const timers = require('timers');

  const settings = (options) => (typeof options === 'string' ? { encoding: options } : options ?? {});
  function place(value, name) {
    if (value === undefined) return;
    validate.integer(value, name, 0);
  }

  class ReadStream extends Readable {
    constructor(file, options) {
      options = settings(options);
      super({ highWaterMark: options.highWaterMark ?? 65536, encoding: options.encoding, emitClose: options.emitClose, autoDestroy: options.autoDestroy, signal: options.signal, objectMode: false });
      place(options.start, 'start');
      if (options.end !== undefined && options.end !== Infinity) place(options.end, 'end');
      if (options.start !== undefined && options.end < options.start) throw outOfRange('start', `<= "end" (here: ${options.end})`, options.start);
      if (options.fd === undefined && typeof file !== 'string' && !(file instanceof Uint8Array) && !(file?.href)) throw invalidArgType('path', ['string', 'Buffer', 'URL'], file);
      this.fd = options.fd === undefined || options.fd === null ? null : typeof options.fd === 'object' ? options.fd.fd : options.fd;
      this.path = file;
      this.flags = options.flags ?? 'r';
      this.mode = options.mode ?? 0o666;
      this.start = options.start;
      this.end = options.end ?? Infinity;
      this.pos = options.start;
      this.bytesRead = 0;
      this.autoClose = options.autoClose ?? true;
      if (this.fd === null) this._open();
    }
    _open() {
      this._life.constructing = true;
      loop.complete(() => {
        this._life.constructing = false;
        try {
          this.fd = fs.openSync(this.path, this.flags, this.mode);
        } catch (error) {
          this.destroy(error);
          return;
        }
        this.emit('open', this.fd);
        this.emit('ready');
        if (!this.destroyed) this.read(0);
        else this._destroy(null, () => {});
      });
    }
    get pending() { return this.fd === null; }
    _read(count) {
      if (this.end !== Infinity) count = Math.min(count, this.end - (this.pos ?? this.bytesRead) + 1);
      if (count <= 0) { this.push(null); return; }
      loop.complete(() => {
        if (this.destroyed || this.fd === null) return;
        const room = Buffer.alloc(count);
        const got = native.read(this.fd, room, this.pos ?? -1);
        if (got < 0) { this.destroy(system(got, 'read')); return; }
        this.bytesRead += got;
        if (this.pos !== undefined) this.pos += got;
        this.push(got === 0 ? null : room.subarray(0, got));
      });
    }
    _destroy(error, done) {
      if (this.fd !== null && this.autoClose) {
        native.close(this.fd);
        this.fd = null;
      }
      done(error);
    }
    close(done) {
      if (done) this.once('close', done);
      this.destroy();
    }
  }

  class WriteStream extends Writable {
    constructor(file, options) {
      options = settings(options);
      super({ highWaterMark: options.highWaterMark, emitClose: options.emitClose, autoDestroy: options.autoDestroy, defaultEncoding: options.encoding, signal: options.signal });
      place(options.start, 'start');
      this.fd = options.fd === undefined || options.fd === null ? null : typeof options.fd === 'object' ? options.fd.fd : options.fd;
      this.path = file;
      this.flags = options.flags ?? 'w';
      this.mode = options.mode ?? 0o666;
      this.start = options.start;
      this.pos = options.start;
      this.bytesWritten = 0;
      this.autoClose = options.autoClose ?? true;
      if (this.fd === null) this._open();
    }
    _open() {
      this._life.constructing = true;
      loop.complete(() => {
        try {
          this.fd = fs.openSync(this.path, this.flags, this.mode);
        } catch (error) {
          this._life.constructing = false;
          this.destroy(error);
          return;
        }
        this._life.constructing = false;
        this.emit('open', this.fd);
        this.emit('ready');
        this.cork();
        this.uncork();
        this._resume();
      });
    }
    // Goes on with what was written or ended before the file was open.
    _resume() {
      const state = this._writableState;
      if (state.ending && state.length === 0 && !state.finished) {
        state.ending = false;
        this.end();
      }
    }
    get pending() { return this.fd === null; }
    _write(chunk, encoding, done) {
      loop.complete(() => {
        if (this.fd === null) return done(system(-9, 'write'));
        let at = 0;
        while (at < chunk.length) {
          const count = native.write(this.fd, chunk.subarray(at), this.pos ?? -1);
          if (count < 0) return done(system(count, 'write'));
          at += count;
          if (this.pos !== undefined) this.pos += count;
        }
        this.bytesWritten += chunk.length;
        done();
      });
    }
    _destroy(error, done) {
      if (this.fd !== null && this.autoClose) {
        native.close(this.fd);
        this.fd = null;
      }
      done(error);
    }
    close(done) {
      if (done) {
        if (this.closed) { require('process').nextTick(done); return; }
        this.once('close', done);
      }
      if (!this.autoClose) this.once('finish', () => this.destroy());
      this.end();
    }
  }
  WriteStream.prototype.destroySoon = WriteStream.prototype.end;

  const callable = (Type) => new Proxy(Type, { apply: (target, self, args) => new Type(...args) });
  exports.ReadStream = callable(ReadStream);
  exports.WriteStream = callable(WriteStream);
  exports.createReadStream = (file, options) => new ReadStream(file, options);
  exports.createWriteStream = (file, options) => new WriteStream(file, options);

  const snapshot = (file) => {
    const stat = native.stat(file, true);
    if (typeof stat === 'number') return null;
    let names = null;
    if ((stat[1] & 61440) === 16384) names = new Map(fs.readdirSync(file).map((name) => [name, String(native.stat(`${file}/${name}`, true))]));
    return { text: String(stat), names };
  };

  // Looks at a file or a directory again and again.
  exports.watch = (file, options, listener) => {
    if (typeof options === 'function') { listener = options; options = {}; }
    if (typeof options === 'string') options = { encoding: options };
    if (options?.recursive) throw require('_errors').unsupported('fs.watch with recursive: true');
    const watcher = new EventEmitter();
    let last = snapshot(file);
    if (!last) throw system(-2, 'watch', file);
    const name = require('path').basename(file);
    const timer = timers.setInterval(() => {
      const next = snapshot(file);
      if (!next || !last) {
        if (next !== last) watcher.emit('change', 'rename', name);
      } else if (next.names) {
        for (const one of new Set([...last.names.keys(), ...next.names.keys()])) {
          if (last.names.has(one) !== next.names.has(one)) watcher.emit('change', 'rename', one);
          else if (last.names.get(one) !== next.names.get(one)) watcher.emit('change', 'change', one);
        }
      } else if (next.text !== last.text) watcher.emit('change', 'change', name);
      last = next;
    }, 100);
    if (options?.persistent === false) timer.unref();
    watcher.close = () => { timers.clearInterval(timer); require('process').nextTick(() => watcher.emit('close')); };
    watcher.ref = () => { timer.ref(); return watcher; };
    watcher.unref = () => { timer.unref(); return watcher; };
    options?.signal?.addEventListener('abort', () => watcher.close(), { once: true });
    if (listener) watcher.on('change', listener);
    return watcher;
  };

  const watched = new Map();
  exports.watchFile = (file, options, listener) => {
    if (typeof options === 'function') { listener = options; options = {}; }
    const stat = () => fs.statSync(file, { throwIfNoEntry: false }) ?? new fs.Stats();
    let last = stat();
    const timer = timers.setInterval(() => {
      const next = stat();
      if (next.mtimeMs !== last.mtimeMs || next.size !== last.size) listener(next, last);
      last = next;
    }, options?.interval ?? 5007);
    if (options?.persistent === false) timer.unref();
    watched.set(file, [...(watched.get(file) ?? []), { timer, listener }]);
  };
  exports.unwatchFile = (file, listener) => {
    const rest = (watched.get(file) ?? []).filter((one) => {
      if (listener && one.listener !== listener) return true;
      timers.clearInterval(one.timer);
      return false;
    });
    watched.set(file, rest);
  };
})
