// The streams of a process: standard output and error, which are written at once, and standard input.
(function (exports, require, module, native) {
  'use strict';

  const { Writable } = require('stream');
  const { system } = require('_errors');
  const loop = require('_loop');

  exports.output = (fd) => {
    const stream = new Writable({
      decodeStrings: false,
      write(chunk, encoding, done) {
        const result = typeof chunk === 'string' && (encoding === 'utf8' || encoding === 'utf-8' || !encoding)
          ? native.writeText(fd, chunk)
          : native.writeAll(fd, typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
        if (typeof result === 'number') {
          const error = system(result, 'write');
          error.message = `write ${error.code}`;
          error.stack = `Error: ${error.message}${error.stack.slice(error.stack.indexOf('\n'))}`;
          done(error);
        } else done();
      },
    });
    stream.fd = fd;
    stream._type = 'pipe';
    stream.destroySoon = stream.destroy;
    stream._destroy = (error, done) => done(error);
    stream._isStdio = true;
    if (native.isatty(fd)) {
      stream.isTTY = true;
      const size = () => { const found = native.window(fd); return typeof found === 'number' ? [24, 80] : found; };
      Object.defineProperty(stream, 'rows', { get: () => size()[0], enumerable: true, configurable: true });
      Object.defineProperty(stream, 'columns', { get: () => size()[1], enumerable: true, configurable: true });
      stream.getWindowSize = () => size().reverse();
      stream.hasColors = (count = 16) => count <= 256;
      stream.getColorDepth = () => 8;
      const say = (text, done) => { stream.write(text); done?.(); return true; };
      stream.clearLine = (way, done) => say(way < 0 ? '\u001b[1K' : way > 0 ? '\u001b[0K' : '\u001b[2K', done);
      stream.cursorTo = (x, y, done) => say(typeof y === 'number' ? `\u001b[${y + 1};${x + 1}H` : `\u001b[${x + 1}G`, typeof y === 'function' ? y : done);
      stream.moveCursor = (x, y, done) => say((x < 0 ? `\u001b[${-x}D` : x > 0 ? `\u001b[${x}C` : '') + (y < 0 ? `\u001b[${-y}A` : y > 0 ? `\u001b[${y}B` : ''), done);
      stream.clearScreenDown = (done) => say('\u001b[0J', done);
    }
    return stream;
  };

  exports.input = () => {
    const stream = exports.reader(0);
    stream.fd = 0;
    if (native.isatty(0)) {
      stream.isTTY = true;
      stream.isRaw = false;
      stream.setRawMode = (raw) => { native.rawMode(0, raw); stream.isRaw = raw; return stream; };
    }
    return stream;
  };

  // A stream of what can be read from a descriptor, which is waited for only while somebody wants it.
  exports.reader = (fd, onClose) => {
    const { Readable } = require('stream');
    const room = new Uint8Array(65536);
    let watcher = null, ref = true;
    const stop = () => { loop.unwatch(watcher); watcher = null; };
    const stream = new Readable({
      highWaterMark: 65536,
      read() {
        if (watcher) return;
        watcher = loop.watch(fd, 1, () => {
          const count = native.read(fd, room, -1);
          if (count === -11) return;
          stop();
          if (count < 0) stream.destroy(system(count, 'read'));
          else if (count === 0) stream.push(null);
          else stream.push(Buffer.from(room.subarray(0, count)));
        });
        watcher.ref = ref;
      },
      destroy(error, done) {
        stop();
        onClose?.();
        done(error);
      },
    });
    stream.on('pause', () => { if (stream.readableFlowing === false) stop(); });
    stream.ref = () => { ref = true; if (watcher) watcher.ref = true; return stream; };
    stream.unref = () => { ref = false; if (watcher) watcher.ref = false; return stream; };
    return stream;
  };

  // A stream that writes to a descriptor without waiting.
  exports.writer = (fd, onClose) => {
    let watcher = null;
    const stop = () => { loop.unwatch(watcher); watcher = null; };
    native.setNonblocking(fd, true);
    const stream = new Writable({
      write(chunk, encoding, done) {
        let at = 0;
        const go = () => {
          while (at < chunk.length) {
            const count = native.write(fd, chunk.subarray(at), -1);
            if (count === -11) {
              watcher ??= loop.watch(fd, 2, go);
              return;
            }
            if (count < 0) {
              stop();
              const error = system(count, 'write');
              error.message = `write ${error.code}`;
              done(error);
              return;
            }
            at += count;
          }
          stop();
          done();
        };
        go();
      },
      final(done) { onClose?.(); onClose = undefined; done(); },
      destroy(error, done) { stop(); onClose?.(); onClose = undefined; done(error); },
    });
    return stream;
  };
})
