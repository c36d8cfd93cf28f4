// Streams: Readable, Writable, Duplex, Transform, and what puts them together.
(function (exports, require, module, native) {
  'use strict';

  const EventEmitter = require('events');
  const { Buffer } = require('buffer');
  const { coded, invalidArgType, validate, AbortError } = require('_errors');
  const nextTick = (...args) => require('process').nextTick(...args);

  let highWater = 16 * 1024, highWaterObjects = 16;
  const limitOf = (options, which, objects) => options?.[which] ?? options?.highWaterMark ?? (objects ? highWaterObjects : highWater);

  function Stream(options) { EventEmitter.call(this, options); }
  Object.setPrototypeOf(Stream.prototype, EventEmitter.prototype);
  Object.setPrototypeOf(Stream, EventEmitter);
  Stream.prototype.pipe = function (target, options) { return pipe(this, target, options); };

  // State that both sides share: being destroyed, and telling of it once.
  function destroy(error, callback) {
    const state = this._life;
    if (state.destroyed) {
      callback?.(error);
      return this;
    }
    state.destroyed = true;
    if (error) state.errored ??= error;
    const after = (failed) => {
      failed ??= error;
      if (failed) state.errored ??= failed;
      nextTick(() => {
        if (failed && !state.errorEmitted) {
          state.errorEmitted = true;
          state.closed = true;
          this.emit('error', failed);
        }
        state.closed = true;
        if (state.emitClose) this.emit('close');
      });
      callback?.(failed);
    };
    const go = () => {
      try {
        this._destroy(error ?? null, after);
      } catch (thrown) {
        after(thrown);
      }
    };
    if (state.constructing) this.once(kConstructed, go);
    else go();
    return this;
  }
  const kConstructed = Symbol('constructed');

  function live(stream, options) {
    stream._life = { destroyed: false, errored: null, errorEmitted: false, closed: false, emitClose: options?.emitClose !== false, autoDestroy: options?.autoDestroy !== false, constructing: false };
    Object.defineProperty(stream, '_life', { enumerable: false });
    if (typeof options?.destroy === 'function') stream._destroy = options.destroy;
    if (typeof options?.construct === 'function') stream._construct = options.construct;
    if (options?.signal) addAbortSignal(options.signal, stream);
  }
  function construct(stream, then) {
    if (typeof stream._construct !== 'function') return;
    stream._life.constructing = true;
    nextTick(() => stream._construct((error) => {
      stream._life.constructing = false;
      stream.emit(kConstructed);
      if (error) stream.destroy(error);
      else then();
    }));
  }

  const shared = {
    destroy,
    _destroy(error, callback) { callback(error); },
    _undestroy() {},
    [EventEmitter.captureRejectionSymbol](error) { this.destroy(error); },
  };
  const sharedGetters = {
    destroyed: { get() { return this._life?.destroyed ?? false; }, set(value) { if (this._life) this._life.destroyed = value; } },
    closed: { get() { return this._life.closed; } },
    errored: { get() { return this._life.errored; } },
  };
  function mixIn(prototype) {
    for (const key of Reflect.ownKeys(shared)) Object.defineProperty(prototype, key, { value: shared[key], writable: true, configurable: true, enumerable: false });
    for (const key of Object.keys(sharedGetters)) Object.defineProperty(prototype, key, { ...sharedGetters[key], configurable: true, enumerable: false });
    prototype[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')] = function () {
      const done = new Promise((resolve) => this.once('close', resolve));
      this.destroy(this.readableEnded || this.writableFinished ? null : new AbortError());
      return done;
    };
  }

  function fail(stream, error, sync) {
    if (stream._life.destroyed) return;
    stream._life.errored ??= error;
    if (stream._life.autoDestroy) stream.destroy(error);
    else if (!stream._life.errorEmitted) {
      stream._life.errorEmitted = true;
      if (sync) nextTick(() => stream.emit('error', error));
      else stream.emit('error', error);
    }
  }

  // --- Readable

  function Readable(options) {
    if (!(this instanceof Readable)) return new Readable(options);
    Stream.call(this, options);
    if (!this._life) live(this, options);
    readable(this, options);
    construct(this, () => more(this));
  }
  Object.setPrototypeOf(Readable.prototype, Stream.prototype);
  Object.setPrototypeOf(Readable, Stream);
  mixIn(Readable.prototype);

  function readable(stream, options) {
    const objects = !!(options?.objectMode || options?.readableObjectMode);
    const state = {
      objectMode: objects, highWaterMark: limitOf(options, 'readableHighWaterMark', objects), buffer: [], length: 0, flowing: null,
      ended: false, endEmitted: false, reading: false, sync: true, needReadable: false, emittedReadable: false, readableListening: false,
      resumeScheduled: false, pipes: [], awaitDrain: new Set(), encoding: null, decoder: null, readingMore: false, dataEmitted: false, paused: false,
    };
    if (options?.encoding) setDecoder(state, options.encoding);
    Object.defineProperty(stream, '_readableState', { value: state, writable: true, configurable: true, enumerable: true });
    if (typeof options?.read === 'function') stream._read = options.read;
  }
  function setDecoder(state, encoding) {
    const { StringDecoder } = require('string_decoder');
    state.decoder = new StringDecoder(encoding);
    state.encoding = state.decoder.encoding;
  }
  const sizeOf = (state, chunk) => (state.objectMode ? 1 : chunk.length);

  Readable.prototype.push = function (chunk, encoding) { return give(this, chunk, encoding, false); };
  Readable.prototype.unshift = function (chunk, encoding) { return give(this, chunk, encoding, true); };
  Readable.prototype._read = function () { throw coded(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The _read() method is not implemented'); };
  Readable.prototype.isPaused = function () { return this._readableState.paused === true || this._readableState.flowing === false; };
  Readable.prototype.setEncoding = function (encoding) {
    const state = this._readableState;
    setDecoder(state, encoding);
    const text = state.buffer.map((chunk) => state.decoder.write(chunk)).join('');
    state.buffer = text ? [text] : [];
    state.length = text.length;
    return this;
  };

  function give(stream, chunk, encoding, first) {
    const state = stream._readableState;
    if (!state.objectMode && chunk !== null && chunk !== undefined) {
      if (typeof chunk === 'string') {
        encoding ??= 'utf8';
        if (state.encoding !== encoding) {
          chunk = Buffer.from(chunk, encoding);
        } else if (state.decoder && !first) chunk = Buffer.from(chunk, encoding);
      } else if (chunk instanceof Uint8Array) {
        if (!Buffer.isBuffer(chunk)) chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      } else {
        fail(stream, invalidArgType('chunk', ['string', 'Buffer', 'Uint8Array'], chunk));
        return false;
      }
    }
    if (chunk === null) {
      state.reading = false;
      finishReading(stream, state);
      return false;
    }
    if (state.objectMode || (chunk !== undefined && chunk.length > 0)) {
      if (first) {
        if (state.endEmitted) fail(stream, coded(Error, 'ERR_STREAM_UNSHIFT_AFTER_END_EVENT', 'stream.unshift() after end event'));
        else if (!stream._life.destroyed) add(stream, state, chunk, true);
      } else if (state.ended) fail(stream, coded(Error, 'ERR_STREAM_PUSH_AFTER_EOF', 'stream.push() after EOF'));
      else if (stream._life.destroyed) return false;
      else {
        state.reading = false;
        if (state.decoder) {
          if (Buffer.isBuffer(chunk)) chunk = state.decoder.write(chunk);
          if (state.objectMode || chunk.length) add(stream, state, chunk, false);
          else more(stream);
        } else add(stream, state, chunk, false);
      }
    } else if (!first) {
      state.reading = false;
      more(stream);
    }
    return !state.ended && (state.length < state.highWaterMark || state.length === 0);
  }

  function add(stream, state, chunk, first) {
    if (state.flowing && state.length === 0 && !state.sync && stream.listenerCount('data') > 0) {
      state.dataEmitted = true;
      stream.emit('data', chunk);
    } else {
      state.length += sizeOf(state, chunk);
      if (first) state.buffer.unshift(chunk);
      else state.buffer.push(chunk);
      if (state.needReadable) tell(stream);
    }
    more(stream);
  }

  function finishReading(stream, state) {
    if (state.ended) return;
    const rest = state.decoder?.end();
    if (rest) {
      state.buffer.push(rest);
      state.length += sizeOf(state, rest);
    }
    state.ended = true;
    if (state.sync) tell(stream);
    else {
      state.needReadable = false;
      state.emittedReadable = true;
      tellNow(stream);
    }
  }

  function tell(stream) {
    const state = stream._readableState;
    state.needReadable = false;
    if (!state.emittedReadable) {
      state.emittedReadable = true;
      nextTick(tellNow, stream);
    }
  }
  function tellNow(stream) {
    const state = stream._readableState;
    if (!stream._life.destroyed && !stream._life.errored && (state.length || state.ended)) {
      stream.emit('readable');
      state.emittedReadable = false;
    }
    state.needReadable = !state.flowing && !state.ended && state.length <= state.highWaterMark;
    flow(stream);
  }

  function more(stream) {
    const state = stream._readableState;
    if (state.readingMore || stream._life.constructing) return;
    state.readingMore = true;
    nextTick(() => {
      while (!state.reading && !state.ended && (state.length < state.highWaterMark || (state.flowing && state.length === 0))) {
        const before = state.length;
        stream.read(0);
        if (before === state.length) break;
      }
      state.readingMore = false;
    });
  }

  function take(state, count) {
    if (state.length === 0) return null;
    if (state.objectMode) {
      state.length--;
      return state.buffer.shift();
    }
    if (!count || count >= state.length) {
      const all = state.decoder ? state.buffer.join('') : state.buffer.length === 1 ? state.buffer[0] : Buffer.concat(state.buffer, state.length);
      state.buffer = [];
      state.length = 0;
      return all;
    }
    const parts = [];
    let left = count;
    while (left > 0) {
      const chunk = state.buffer[0];
      if (chunk.length <= left) {
        parts.push(chunk);
        left -= chunk.length;
        state.buffer.shift();
      } else {
        parts.push(chunk.slice(0, left));
        state.buffer[0] = chunk.slice(left);
        left = 0;
      }
    }
    state.length -= count;
    return state.decoder ? parts.join('') : parts.length === 1 ? parts[0] : Buffer.concat(parts, count);
  }

  Readable.prototype.read = function (count) {
    const state = this._readableState;
    if (count === undefined) count = NaN;
    else if (!Number.isInteger(count)) count = parseInt(count, 10);
    const asked = count;
    if (count > state.highWaterMark) state.highWaterMark = 2 ** Math.ceil(Math.log2(count));
    if (count !== 0) state.emittedReadable = false;
    if (count === 0 && state.needReadable && ((state.highWaterMark !== 0 ? state.length >= state.highWaterMark : state.length > 0) || state.ended)) {
      if (state.length === 0 && state.ended) finish(this);
      else tell(this);
      return null;
    }
    const available = (wanted) => {
      if (wanted <= 0 || (state.length === 0 && state.ended)) return 0;
      if (state.objectMode) return 1;
      if (Number.isNaN(wanted)) return state.flowing && state.length ? state.buffer[0].length : state.length;
      return wanted <= state.length ? wanted : state.ended ? state.length : 0;
    };
    count = available(count);
    if (count === 0 && state.ended) {
      if (state.length === 0) finish(this);
      return null;
    }
    let wants = state.needReadable;
    if (state.length === 0 || state.length - count < state.highWaterMark) wants = true;
    if (state.ended || state.reading || this._life.destroyed || this._life.errored || this._life.constructing) wants = false;
    else if (wants) {
      state.reading = true;
      state.sync = true;
      if (state.length === 0) state.needReadable = true;
      try {
        this._read(state.highWaterMark);
      } catch (error) {
        fail(this, error, true);
      }
      state.sync = false;
      if (!state.reading) count = available(asked);
    }
    const chunk = count > 0 ? take(state, count) : null;
    if (chunk === null) {
      state.needReadable = state.length <= state.highWaterMark;
    }
    if (state.length === 0) {
      if (!state.ended) state.needReadable = true;
      if (asked !== count && state.ended) finish(this);
    }
    if (chunk !== null && !this._life.errored) {
      state.dataEmitted = true;
      this.emit('data', chunk);
    }
    return chunk;
  };

  function finish(stream) {
    const state = stream._readableState;
    if (state.endEmitted) return;
    state.ended = true;
    nextTick(() => {
      if (stream._life.errored || state.endEmitted || state.length !== 0 || stream._life.closed) return;
      state.endEmitted = true;
      stream.emit('end');
      const writable = stream._writableState;
      if (writable && stream.allowHalfOpen === false && !writable.ending) nextTick(() => { if (!stream._life.destroyed && !writable.ending) stream.end(); });
      else if (stream._life.autoDestroy && (!writable || (writable.autoDestroy !== false && writable.finished))) stream.destroy();
    });
  }

  Readable.prototype.on = function (name, listener) {
    const result = Stream.prototype.on.call(this, name, listener);
    const state = this._readableState;
    if (name === 'data') {
      state.readableListening = this.listenerCount('readable') > 0;
      if (state.flowing !== false && !state.readableListening) this.resume();
    } else if (name === 'readable' && !state.endEmitted && !state.readableListening) {
      state.readableListening = state.needReadable = true;
      state.flowing = false;
      state.emittedReadable = false;
      if (state.length) tell(this);
      else if (!state.reading) nextTick(() => this.read(0));
    }
    return result;
  };
  Readable.prototype.addListener = Readable.prototype.on;
  Readable.prototype.removeListener = function (name, listener) {
    const result = Stream.prototype.removeListener.call(this, name, listener);
    if (name === 'readable') nextTick(afterRemoval, this);
    return result;
  };
  Readable.prototype.off = Readable.prototype.removeListener;
  function afterRemoval(stream) {
    const state = stream._readableState;
    state.readableListening = stream.listenerCount('readable') > 0;
    if (state.resumeScheduled && !state.paused) state.flowing = true;
    else if (stream.listenerCount('data') > 0) stream.resume();
    else if (!state.readableListening) state.flowing = null;
  }

  Readable.prototype.resume = function () {
    const state = this._readableState;
    if (!state.flowing) {
      state.flowing = !state.readableListening;
      if (!state.resumeScheduled) {
        state.resumeScheduled = true;
        nextTick(() => {
          if (!state.reading) this.read(0);
          state.resumeScheduled = false;
          this.emit('resume');
          flow(this);
          if (state.flowing && !state.reading) this.read(0);
        });
      }
    }
    state.paused = false;
    return this;
  };
  Readable.prototype.pause = function () {
    if (this._readableState.flowing !== false) {
      this._readableState.flowing = false;
      this.emit('pause');
    }
    this._readableState.paused = true;
    return this;
  };
  function flow(stream) {
    const state = stream._readableState;
    while (state.flowing && stream.read() !== null);
  }

  Readable.prototype.pipe = function (target, options) { return pipe(this, target, options); };
  function pipe(source, target, options) {
    const state = source._readableState;
    state?.pipes.push(target);
    const ends = options?.end !== false && target !== require('process').stdout && target !== require('process').stderr;
    const onData = (chunk) => {
      if (target.write(chunk) === false) {
        if (state) state.awaitDrain.add(target);
        source.pause();
      }
    };
    const onDrain = () => {
      state?.awaitDrain.delete(target);
      if ((!state || state.awaitDrain.size === 0) && source.listenerCount('data')) {
        if (state) state.paused = false;
        source.resume();
      }
    };
    const onEnd = () => target.end();
    const onClose = () => clean();
    const onError = (error) => {
      source.unpipe?.(target);
      clean();
      if (target.listenerCount('error') === 0) {
        const life = target._life;
        if (life && !life.errorEmitted) target.destroy(error);
        else if (!life) target.emit('error', error);
      }
    };
    const onUnpipe = (one) => { if (one === source) clean(); };
    function clean() {
      source.removeListener('data', onData);
      source.removeListener('end', onEnd);
      target.removeListener('drain', onDrain);
      target.removeListener('close', onUnpipeClose);
      target.removeListener('error', onError);
      target.removeListener('unpipe', onUnpipe);
      if (state?.awaitDrain.has(target)) onDrain();
    }
    const onUnpipeClose = () => { source.unpipe?.(target); onClose(); };
    target.prependListener?.('error', onError);
    target.once('close', onUnpipeClose);
    target.on('drain', onDrain);
    target.on('unpipe', onUnpipe);
    source.on('data', onData);
    if (ends) {
      if (state?.endEmitted) nextTick(onEnd);
      else source.once('end', onEnd);
    }
    target.emit('pipe', source);
    if (target.writableNeedDrain === true) { state?.awaitDrain.add(target); source.pause(); } else if (!state?.flowing) source.resume?.();
    return target;
  }
  Readable.prototype.unpipe = function (target) {
    const state = this._readableState;
    const targets = target ? state.pipes.filter((one) => one === target) : state.pipes;
    if (targets.length === 0) return this;
    state.pipes = target ? state.pipes.filter((one) => one !== target) : [];
    if (state.pipes.length === 0) this.pause();
    for (const one of targets) one.emit('unpipe', this, { hasUnpiped: false });
    return this;
  };

  Readable.prototype[Symbol.asyncIterator] = function () { return iterate(this); };
  Readable.prototype.iterator = function (options) { return iterate(this, options); };
  async function* iterate(stream, options) {
    let wake = () => {};
    const next = () => wake();
    stream.on('readable', next);
    let failed;
    const stop = finished(stream, { writable: false }, (error) => {
      failed = error ?? null;
      wake();
    });
    let done = false;
    try {
      for (;;) {
        const chunk = stream._life.destroyed ? null : stream.read();
        if (chunk !== null) yield chunk;
        else if (failed) throw failed;
        else if (failed === null) { done = true; return; }
        else await new Promise((resolve) => { wake = resolve; });
      }
    } catch (error) {
      failed = error;
      throw error;
    } finally {
      if ((failed || options?.destroyOnReturn !== false) && (failed === undefined || stream._life.autoDestroy) && !done) stream.destroy(failed instanceof Error ? failed : null);
      else {
        stream.off('readable', next);
        stop();
      }
    }
  }

  const readableGetters = {
    readable: { get() { const state = this._readableState; return !!state && this._readableFlag !== false && !this._life.destroyed && !this._life.errored && !state.endEmitted; }, set(value) { this._readableFlag = !!value; } },
    readableFlowing: { get() { return this._readableState.flowing; }, set(value) { this._readableState.flowing = value; } },
    readableLength: { get() { return this._readableState.length; } },
    readableObjectMode: { get() { return this._readableState?.objectMode ?? false; } },
    readableEncoding: { get() { return this._readableState?.encoding ?? null; } },
    readableEnded: { get() { return this._readableState?.endEmitted ?? false; } },
    readableHighWaterMark: { get() { return this._readableState.highWaterMark; } },
    readableDidRead: { get() { return this._readableState.dataEmitted; } },
    readableAborted: { get() { return (this._life.destroyed || !!this._life.errored) && !this._readableState.endEmitted; } },
  };
  for (const key of Object.keys(readableGetters)) Object.defineProperty(Readable.prototype, key, { ...readableGetters[key], configurable: true, enumerable: false });

  Readable.from = function (source, options) {
    if (typeof source === 'string' || source instanceof Uint8Array) {
      return new Readable({ objectMode: true, ...options, read() { this.push(source); this.push(null); } });
    }
    const iterator = source?.[Symbol.asyncIterator]?.() ?? source?.[Symbol.iterator]?.();
    if (!iterator) throw invalidArgType('iterable', ['Iterable'], source);
    let busy = false;
    const stream = new Readable({ objectMode: true, highWaterMark: 1, ...options });
    stream._read = () => {
      if (busy) return;
      busy = true;
      (async () => {
        try {
          for (;;) {
            const { value, done } = await iterator.next();
            if (done) { stream.push(null); return; }
            const chunk = value && typeof value.then === 'function' ? await value : value;
            if (chunk === null) throw coded(TypeError, 'ERR_STREAM_NULL_VALUES', 'May not write null values to stream');
            if (!stream.push(chunk)) { busy = false; return; }
          }
        } catch (error) {
          stream.destroy(error);
        }
      })();
    };
    stream._destroy = (error, callback) => {
      Promise.resolve(iterator.return?.()).then(() => nextTick(callback, error), (failed) => nextTick(callback, failed ?? error));
    };
    return stream;
  };
  Readable.fromWeb = (stream) => Readable.from(stream);
  Readable.toWeb = (stream) => require('stream/web').ReadableStream.from(stream);
  Readable.isDisturbed = (stream) => !!(stream.readableDidRead || stream.readableAborted);

  // --- Writable

  function Writable(options) {
    if (!(this instanceof Writable) && !(this instanceof Duplex)) return new Writable(options);
    Stream.call(this, options);
    if (!this._life) live(this, options);
    writable(this, options);
    construct(this, () => { drainBuffer(this); maybeFinish(this); });
  }
  Object.setPrototypeOf(Writable.prototype, Stream.prototype);
  Object.setPrototypeOf(Writable, Stream);
  mixIn(Writable.prototype);
  Object.defineProperty(Writable, Symbol.hasInstance, {
    value(object) {
      if (Function.prototype[Symbol.hasInstance].call(this, object)) return true;
      return this === Writable && !!object?._writableState;
    },
  });

  function writable(stream, options) {
    const objects = !!(options?.objectMode || options?.writableObjectMode);
    Object.defineProperty(stream, '_writableState', {
      value: {
        objectMode: objects, highWaterMark: limitOf(options, 'writableHighWaterMark', objects), length: 0, buffered: [], writing: false,
        corked: 0, ending: false, ended: false, finished: false, finalCalled: false, prefinished: false, needDrain: false, sync: true,
        decodeStrings: options?.decodeStrings !== false, defaultEncoding: options?.defaultEncoding ?? 'utf8', pending: 0, endCallbacks: [],
      },
      writable: true, configurable: true, enumerable: true,
    });
    if (typeof options?.write === 'function') stream._write = options.write;
    if (typeof options?.writev === 'function') stream._writev = options.writev;
    if (typeof options?.final === 'function') stream._final = options.final;
  }

  Writable.prototype._write = function (chunk, encoding, callback) {
    if (this._writev) this._writev([{ chunk, encoding }], callback);
    else throw coded(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The _write() method is not implemented');
  };
  Writable.prototype._writev = null;
  Writable.prototype.pipe = function () { fail(this, coded(Error, 'ERR_STREAM_CANNOT_PIPE', 'Cannot pipe, not readable')); };

  Writable.prototype.write = function (chunk, encoding, callback) {
    const state = this._writableState;
    if (typeof encoding === 'function') { callback = encoding; encoding = undefined; }
    encoding ??= state.defaultEncoding;
    if (encoding !== 'buffer' && !Buffer.isEncoding(encoding)) throw coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
    if (chunk === null) throw coded(TypeError, 'ERR_STREAM_NULL_VALUES', 'May not write null values to stream');
    if (!state.objectMode) {
      if (typeof chunk === 'string') {
        if (state.decodeStrings) { chunk = Buffer.from(chunk, encoding); encoding = 'buffer'; }
      } else if (chunk instanceof Uint8Array) {
        if (!Buffer.isBuffer(chunk)) chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        encoding = 'buffer';
      } else throw invalidArgType('chunk', ['string', 'Buffer', 'Uint8Array'], chunk);
    }
    let error;
    if (state.ending) error = coded(Error, 'ERR_STREAM_WRITE_AFTER_END', 'write after end');
    else if (this._life.destroyed) error = coded(Error, 'ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed');
    if (error) {
      if (callback) nextTick(callback, error);
      fail(this, error, true);
      return false;
    }
    const length = state.objectMode ? 1 : chunk.length;
    state.length += length;
    const room = state.length < state.highWaterMark;
    if (!room) state.needDrain = true;
    state.pending++;
    if (state.writing || state.corked || this._life.errored || this._life.constructing) state.buffered.push({ chunk, encoding, callback: callback ?? (() => {}), length });
    else doWrite(this, chunk, encoding, callback ?? (() => {}), length);
    return room && !this._life.errored && !this._life.destroyed;
  };

  function doWrite(stream, chunk, encoding, callback, length) {
    const state = stream._writableState;
    state.writing = true;
    state.sync = true;
    let called = false;
    const done = (error) => {
      if (called) { fail(stream, coded(Error, 'ERR_MULTIPLE_CALLBACK', 'Callback called multiple times')); return; }
      called = true;
      written(stream, error, callback, length);
    };
    if (stream._life.destroyed) done(coded(Error, 'ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed'));
    else stream._write(chunk, encoding, done);
    state.sync = false;
  }

  function written(stream, error, callback, length) {
    const state = stream._writableState;
    const { sync } = state;
    state.writing = false;
    state.length -= length;
    if (error) {
      if (!stream._life.errored) stream._life.errored = error;
      state.pending--;
      const tell = () => { callback(error); failBuffer(stream); fail2(stream, error); };
      if (sync) nextTick(tell);
      else tell();
      return;
    }
    if (state.buffered.length) drainBuffer(stream);
    const after = () => {
      const needs = !state.ending && !stream._life.destroyed && state.length === 0 && state.needDrain;
      if (needs) {
        state.needDrain = false;
        stream.emit('drain');
      }
      state.pending--;
      callback(null);
      if (stream._life.destroyed) failBuffer(stream);
      maybeFinish(stream);
    };
    if (sync) nextTick(after);
    else after();
  }
  function fail2(stream, error) {
    if (stream._life.autoDestroy) stream.destroy(error);
    else if (!stream._life.errorEmitted) { stream._life.errorEmitted = true; stream.emit('error', error); }
  }
  function failBuffer(stream) {
    const state = stream._writableState;
    for (const { callback, length } of state.buffered.splice(0)) {
      state.length -= length;
      state.pending--;
      callback(stream._life.errored ?? coded(Error, 'ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed'));
    }
    for (const callback of state.endCallbacks.splice(0)) callback(stream._life.errored ?? coded(Error, 'ERR_STREAM_DESTROYED', 'Cannot call end after a stream was destroyed'));
  }
  function drainBuffer(stream) {
    const state = stream._writableState;
    if (state.corked || state.writing || stream._life.destroyed || stream._life.constructing) return;
    if (stream._writev && state.buffered.length > 1) {
      const batch = state.buffered.splice(0);
      const length = batch.reduce((sum, one) => sum + one.length, 0);
      state.writing = true;
      state.sync = true;
      state.pending -= batch.length - 1;
      stream._writev(batch.map(({ chunk, encoding }) => ({ chunk, encoding })), (error) => written(stream, error, (failed) => batch.forEach((one) => one.callback(failed)), length));
      state.sync = false;
      return;
    }
    while (state.buffered.length && !state.writing) {
      const { chunk, encoding, callback, length } = state.buffered.shift();
      doWrite(stream, chunk, encoding, callback, length);
    }
  }

  Writable.prototype.cork = function () { this._writableState.corked++; };
  Writable.prototype.uncork = function () {
    const state = this._writableState;
    if (state.corked) {
      state.corked--;
      if (!state.writing) drainBuffer(this);
    }
  };
  Writable.prototype.setDefaultEncoding = function (encoding) {
    if (!Buffer.isEncoding(encoding)) throw coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
    this._writableState.defaultEncoding = encoding;
    return this;
  };
  Writable.prototype.end = function (chunk, encoding, callback) {
    const state = this._writableState;
    if (typeof chunk === 'function') { callback = chunk; chunk = undefined; }
    else if (typeof encoding === 'function') { callback = encoding; encoding = undefined; }
    let error;
    if (chunk !== undefined && chunk !== null) {
      if (state.ending) error = coded(Error, 'ERR_STREAM_WRITE_AFTER_END', 'write after end');
      else this.write(chunk, encoding);
    }
    if (state.corked) {
      state.corked = 1;
      this.uncork();
    }
    if (!error) {
      if (!this._life.errored && !state.ending) {
        state.ending = true;
        maybeFinish(this, true);
        state.ended = true;
      } else if (state.finished) error = coded(Error, 'ERR_STREAM_ALREADY_FINISHED', 'Cannot call end after a stream was finished');
      else if (this._life.destroyed) error = coded(Error, 'ERR_STREAM_DESTROYED', 'Cannot call end after a stream was destroyed');
    } else fail(this, error, true);
    if (typeof callback === 'function') {
      if (error) nextTick(callback, error);
      else if (state.finished) nextTick(callback);
      else state.endCallbacks.push(callback);
    }
    return this;
  };

  const isDone = (stream, state) => state.ending && !stream._life.destroyed && !stream._life.constructing && state.length === 0 && !stream._life.errored && state.buffered.length === 0
    && !state.finished && !state.writing;
  function maybeFinish(stream, sync) {
    const state = stream._writableState;
    if (!isDone(stream, state)) return;
    if (!state.prefinished && !state.finalCalled) {
      if (typeof stream._final === 'function' && !stream._life.destroyed) {
        state.finalCalled = true;
        state.pending++;
        const final = () => {
          let called = false;
          const done = (error) => {
            if (called) return;
            called = true;
            state.pending--;
            if (error) {
              for (const callback of state.endCallbacks.splice(0)) callback(error);
              fail(stream, error, true);
            } else {
              state.prefinished = true;
              stream.emit('prefinish');
              state.pending++;
              nextTick(() => { state.pending--; finishWriting(stream); });
            }
          };
          try {
            stream._final(done);
          } catch (error) {
            done(error);
          }
        };
        if (sync) nextTick(final);
        else final();
        return;
      }
      state.prefinished = true;
      stream.emit('prefinish');
    }
    if (state.prefinished && state.pending === 0) {
      if (sync) {
        state.pending++;
        nextTick(() => { state.pending--; if (isDone(stream, state)) finishWriting(stream); });
      } else finishWriting(stream);
    }
  }
  function finishWriting(stream) {
    const state = stream._writableState;
    if (state.finished || stream._life.errored) return;
    state.finished = true;
    for (const callback of state.endCallbacks.splice(0)) callback();
    stream.emit('finish');
    if (stream._life.autoDestroy) {
      const reading = stream._readableState;
      if (!reading || (reading.endEmitted || reading.ended === false && stream._readableFlag === false)) stream.destroy();
    }
  }

  const writableGetters = {
    writable: { get() { const state = this._writableState; return !!state && this._writableFlag !== false && !this._life.destroyed && !this._life.errored && !state.ending && !state.ended; }, set(value) { this._writableFlag = !!value; } },
    writableFinished: { get() { return this._writableState?.finished ?? false; } },
    writableEnded: { get() { return this._writableState?.ending ?? false; } },
    writableObjectMode: { get() { return this._writableState?.objectMode ?? false; } },
    writableHighWaterMark: { get() { return this._writableState?.highWaterMark; } },
    writableLength: { get() { return this._writableState?.length; } },
    writableCorked: { get() { return this._writableState?.corked ?? 0; } },
    writableBuffer: { get() { return this._writableState?.buffered; } },
    writableNeedDrain: { get() { const state = this._writableState; return !!state && !this._life.destroyed && !state.ending && state.needDrain; } },
    writableAborted: { get() { return (this._life.destroyed || !!this._life.errored) && !this._writableState.finished; } },
  };
  for (const key of Object.keys(writableGetters)) Object.defineProperty(Writable.prototype, key, { ...writableGetters[key], configurable: true, enumerable: false });

  // --- Duplex, Transform

  function Duplex(options) {
    if (!(this instanceof Duplex)) return new Duplex(options);
    Stream.call(this, options);
    live(this, options);
    readable(this, options);
    writable(this, options);
    this.allowHalfOpen = options?.allowHalfOpen !== false;
    if (options?.readable === false) { this._readableFlag = false; this._readableState.ended = true; this._readableState.endEmitted = true; }
    if (options?.writable === false) { this._writableFlag = false; this._writableState.ending = this._writableState.ended = this._writableState.finished = true; }
    construct(this, () => { more(this); drainBuffer(this); maybeFinish(this); });
  }
  Object.setPrototypeOf(Duplex.prototype, Readable.prototype);
  Object.setPrototypeOf(Duplex, Readable);
  for (const key of Object.getOwnPropertyNames(Writable.prototype)) {
    if (!Object.hasOwn(Duplex.prototype, key) && !['constructor', 'pipe', ...Object.keys(shared), ...Object.keys(sharedGetters)].includes(key)) {
      Object.defineProperty(Duplex.prototype, key, Object.getOwnPropertyDescriptor(Writable.prototype, key));
    }
  }
  Duplex.from = (source) => {
    if (source instanceof Duplex) return source;
    if (typeof source === 'function') return compose([source]);
    const from = source?.readable ? source.readable : source;
    return new Duplex({ writable: false, objectMode: true, read() { const inner = this._inner ??= Readable.from(from).on('data', (chunk) => this.push(chunk)).on('end', () => this.push(null)); void inner; } });
  };

  function Transform(options) {
    if (!(this instanceof Transform)) return new Transform(options);
    Duplex.call(this, options);
    this._readableState.sync = false;
    Object.defineProperty(this, '_waiting', { value: null, writable: true, enumerable: false });
    if (typeof options?.transform === 'function') this._transform = options.transform;
    if (typeof options?.flush === 'function') this._flush = options.flush;
  }
  Object.setPrototypeOf(Transform.prototype, Duplex.prototype);
  Object.setPrototypeOf(Transform, Duplex);
  Transform.prototype._transform = function () { throw coded(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The _transform() method is not implemented'); };
  Transform.prototype._final = function (callback) {
    const end = (error, data) => {
      if (error) { callback(error); return; }
      if (data !== null && data !== undefined) this.push(data);
      this.push(null);
      callback();
    };
    if (typeof this._flush === 'function' && !this._life.destroyed) {
      const result = this._flush(end);
      if (result && typeof result.then === 'function') result.then((data) => nextTick(end, null, data), (error) => nextTick(end, error));
    } else end();
  };
  Transform.prototype._write = function (chunk, encoding, callback) {
    const state = this._readableState;
    const before = state.length;
    const done = (error, data) => {
      if (error) { callback(error); return; }
      if (data !== null && data !== undefined) this.push(data);
      if (this._writableState.ended || before === state.length || state.length < state.highWaterMark) callback();
      else this._waiting = callback;
    };
    const result = this._transform(chunk, encoding, done);
    if (result && typeof result.then === 'function') result.then((data) => nextTick(done, null, data), (error) => nextTick(done, error));
  };
  Transform.prototype._read = function () {
    if (this._waiting) {
      const callback = this._waiting;
      this._waiting = null;
      callback();
    }
  };

  function PassThrough(options) {
    if (!(this instanceof PassThrough)) return new PassThrough(options);
    Transform.call(this, options);
  }
  Object.setPrototypeOf(PassThrough.prototype, Transform.prototype);
  Object.setPrototypeOf(PassThrough, Transform);
  PassThrough.prototype._transform = (chunk, encoding, callback) => callback(null, chunk);
  for (const Type of [Stream, Readable, Writable, Duplex, Transform, PassThrough]) {
    Object.defineProperty(Type.prototype, 'constructor', { value: Type, writable: true, configurable: true, enumerable: false });
  }

  // --- Working with several

  function finished(stream, options, callback) {
    if (typeof options === 'function') { callback = options; options = {}; }
    options ??= {};
    let reads = options.readable ?? (!!stream._readableState || typeof stream.read === 'function');
    let writes = options.writable ?? (!!stream._writableState || (typeof stream.write === 'function' && typeof stream.end === 'function'));
    if (stream._readableFlag === false && stream._readableState?.endEmitted) reads = false;
    if (stream._writableFlag === false && stream._writableState?.finished) writes = false;
    let over = false;
    const call = (error) => {
      if (over) return;
      over = true;
      callback.call(stream, error);
    };
    const check = () => { if (!reads && !writes) call(); };
    const onFinish = () => { writes = false; check(); };
    const onEnd = () => { reads = false; check(); };
    const onError = (error) => call(error);
    const early = () => coded(Error, 'ERR_STREAM_PREMATURE_CLOSE', 'Premature close');
    const onClose = () => {
      const failed = stream._life?.errored;
      if (failed && typeof failed !== 'boolean') return call(failed);
      if (reads && stream._readableState && !stream._readableState.endEmitted) return call(early());
      if (writes && stream._writableState && !stream._writableState.finished) return call(early());
      return call();
    };
    stream.on('end', onEnd);
    stream.on('finish', onFinish);
    if (options.error !== false) stream.on('error', onError);
    stream.on('close', onClose);
    if (stream._life?.closed) nextTick(onClose);
    else {
      if (reads && stream._readableState?.endEmitted) reads = false;
      if (writes && stream._writableState?.finished) writes = false;
      if (!reads && !writes) nextTick(check);
    }
    const clean = () => {
      stream.off('end', onEnd);
      stream.off('finish', onFinish);
      stream.off('error', onError);
      stream.off('close', onClose);
    };
    if (options.signal) {
      const abort = () => { clean(); call(new AbortError(undefined, { cause: options.signal.reason })); };
      if (options.signal.aborted) nextTick(abort);
      else options.signal.addEventListener('abort', abort, { once: true });
    }
    return clean;
  }

  function compose(stages) {
    const first = new PassThrough({ objectMode: true });
    let last = first;
    for (const stage of stages) {
      if (typeof stage === 'function') last = Readable.from(stage(last));
      else last = last.pipe(stage);
    }
    return new Duplex({
      objectMode: true,
      write(chunk, encoding, callback) { if (first.write(chunk, encoding)) callback(); else first.once('drain', callback); },
      final(callback) { first.end(); callback(); },
      read() {
        if (this._started) return;
        this._started = true;
        last.on('data', (chunk) => this.push(chunk));
        last.on('end', () => this.push(null));
        last.on('error', (error) => this.destroy(error));
      },
    });
  }

  function pipeline(...args) {
    const callback = typeof args[args.length - 1] === 'function' ? args.pop() : () => {};
    let options = {};
    const tail = args[args.length - 1];
    if (tail && typeof tail === 'object' && typeof tail.pipe !== 'function' && typeof tail.on !== 'function' && !tail[Symbol.asyncIterator] && !tail[Symbol.iterator] && !tail.getWriter) options = args.pop();
    const stages = Array.isArray(args[0]) && args.length === 1 ? args[0] : args;
    if (stages.length < 2) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "streams" argument must be specified');
    const streams = [];
    let failure, value, left = 0, told = false;
    const end = () => {
      if (told) return;
      told = true;
      nextTick(callback, failure, value);
    };
    const abort = (error) => {
      if (error && (!failure || failure.code === 'ERR_STREAM_PREMATURE_CLOSE')) failure = error;
      for (const one of streams) if (one && !one.destroyed && failure) { one.on?.('error', () => {}); one.destroy?.(failure); }
    };
    const follow = (stream, reads, writes) => {
      streams.push(stream);
      left++;
      finished(stream, { readable: reads, writable: writes }, (error) => {
        left--;
        if (error) abort(error);
        if (left === 0) end();
      });
    };
    let current;
    stages.forEach((stage, index) => {
      const isLast = index === stages.length - 1;
      if (typeof stage === 'function') {
        const result = index === 0 ? stage({ signal: options.signal }) : stage(current, { signal: options.signal });
        if (isLast && result && typeof result.then === 'function' && !result[Symbol.asyncIterator]) {
          left++;
          result.then((got) => { value = got; left--; if (left === 0) end(); }, (error) => { left--; abort(error); if (left === 0) end(); });
          return;
        }
        if (isLast && !result?.[Symbol.asyncIterator] && !result?.[Symbol.iterator]) { value = result; return; }
        current = Readable.from(result);
        follow(current, true, false);
        if (isLast) current.resume();
        return;
      }
      if (typeof stage.pipe !== 'function' && typeof stage.write !== 'function') {
        if (index > 0) throw invalidArgType('streams', ['Stream', 'Function'], stage);
        current = Readable.from(stage);
        follow(current, true, false);
        return;
      }
      follow(stage, index < stages.length - 1 && index >= 0 && typeof stage.read === 'function', index > 0);
      if (current) {
        if (stage === require('process').stdout || stage === require('process').stderr) {
          left--;
          streams.pop();
          left++;
          current.pipe(stage);
          current.once('end', () => { left--; if (left === 0) end(); });
        } else current.pipe(stage, { end: options.end !== false });
      }
      current = stage;
    });
    if (options.signal) {
      const stop = () => abort(new AbortError(undefined, { cause: options.signal.reason }));
      if (options.signal.aborted) stop();
      else options.signal.addEventListener('abort', stop, { once: true });
    }
    return current;
  }

  function addAbortSignal(signal, stream) {
    const stop = () => stream.destroy(new AbortError(undefined, { cause: signal.reason }));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    return stream;
  }

  // What an array can do, for streams.
  const later = (fn) => Object.defineProperty(fn, 'later', { value: true });
  const operators = {
    map: (fn) => async function* (source) { for await (const one of source) yield fn(one, {}); },
    filter: (fn) => async function* (source) { for await (const one of source) if (await fn(one, {})) yield one; },
    flatMap: (fn) => async function* (source) { for await (const one of source) yield* await fn(one, {}); },
    take: (count) => async function* (source) { if (count > 0) for await (const one of source) { yield one; if (--count <= 0) return; } },
    drop: (count) => async function* (source) { for await (const one of source) if (count-- <= 0) yield one; },
  };
  for (const name of Object.keys(operators)) {
    Readable.prototype[name] = function (argument) { return Readable.from(operators[name](argument)(this)); };
  }
  void later;
  const results = {
    async toArray() { const all = []; for await (const one of this) all.push(one); return all; },
    async forEach(fn) { for await (const one of this) await fn(one, {}); },
    async some(fn) { for await (const one of this) if (await fn(one, {})) return true; return false; },
    async every(fn) { for await (const one of this) if (!await fn(one, {})) return false; return true; },
    async find(fn) { for await (const one of this) if (await fn(one, {})) return one; return undefined; },
    async reduce(fn, initial) {
      let any = arguments.length > 1, sum = initial;
      for await (const one of this) {
        if (any) sum = await fn(sum, one, {});
        else { sum = one; any = true; }
      }
      if (!any) throw new TypeError('Reduce of an empty stream requires an initial value');
      return sum;
    },
  };
  for (const name of Object.keys(results)) Object.defineProperty(Readable.prototype, name, { value: results[name], writable: true, configurable: true, enumerable: false });
  Readable.prototype.compose = function (stage) { return typeof stage === 'function' ? Readable.from(stage(this)) : this.pipe(stage); };
  Readable.prototype.wrap = function (old) {
    old.on('data', (chunk) => { if (!this.push(chunk)) old.pause?.(); });
    old.on('end', () => this.push(null));
    old.on('error', (error) => this.destroy(error));
    this._read = () => old.resume?.();
    return this;
  };

  Stream.Stream = Stream;
  Object.assign(Stream, { Readable, Writable, Duplex, Transform, PassThrough, finished, pipeline, addAbortSignal, compose: (...stages) => compose(stages) });
  Stream.isReadable = (stream) => !!stream?.readable;
  Stream.isErrored = (stream) => !!stream?.errored;
  Stream.isDisturbed = Readable.isDisturbed;
  Stream.getDefaultHighWaterMark = (objects) => (objects ? highWaterObjects : highWater);
  Stream.setDefaultHighWaterMark = (objects, value) => {
    validate.integer(value, 'value', 0);
    if (objects) highWaterObjects = value;
    else highWater = value;
  };
  Object.defineProperty(Stream, 'promises', { enumerable: true, configurable: true, get: () => require('stream/promises') });
  const { promisify } = require('util');
  Object.defineProperty(pipeline, promisify.custom, { get: () => require('stream/promises').pipeline });
  Object.defineProperty(finished, promisify.custom, { get: () => require('stream/promises').finished });
  module.exports = Stream;
})
