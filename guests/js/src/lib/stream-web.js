// stream/web: the streams of the web, as far as scripts use them: queues without byte readers.
(function (exports, require, module, native) {
  'use strict';
  const { coded } = require('_errors');
  const deferred = () => { const out = {}; out.promise = new Promise((resolve, reject) => Object.assign(out, { resolve, reject })); out.promise.catch(() => {}); return out; };
  const state = (words) => coded(TypeError, 'ERR_INVALID_STATE', `Invalid state: ${words}`);

  class ReadableStream {
    #queue = []; #waiting = []; #closed = false; #error = null; #source; #reader = null; #pulling = false; #most; #started;
    constructor(source = {}, strategy = {}) {
      this.#source = source;
      this.#most = strategy.highWaterMark ?? 1;
      const self = this;
      const size = strategy.size ?? (() => 1);
      this._controller = {
        enqueue(chunk) {
          if (self.#closed) throw state('Controller is already closed');
          const next = self.#waiting.shift();
          if (next) next.resolve({ value: chunk, done: false });
          else self.#queue.push(chunk);
        },
        close() { self.#finish(); },
        error(error) { self.#fail(error); },
        get desiredSize() { return self.#closed ? 0 : self.#most - self.#queue.reduce((sum, one) => sum + size(one), 0); },
      };
      Object.defineProperty(this, '_controller', { enumerable: false });
      this.#started = Promise.resolve(source.start?.(this._controller)).then(() => this.#pull(), (error) => this.#fail(error));
    }
    #finish() {
      this.#closed = true;
      if (this.#queue.length === 0) { for (const next of this.#waiting.splice(0)) next.resolve({ value: undefined, done: true }); this._done?.resolve(); }
    }
    #fail(error) {
      this.#error = { error };
      this.#queue = [];
      for (const next of this.#waiting.splice(0)) next.reject(error);
      this._done?.reject(error);
    }
    async #pull() {
      if (this.#pulling || this.#closed || this.#error || !this.#source.pull) return;
      if (this.#waiting.length === 0 && this.#queue.length >= this.#most) return;
      this.#pulling = true;
      try {
        await this.#source.pull(this._controller);
        this.#pulling = false;
        if (this.#waiting.length) void this.#pull();
      } catch (error) {
        this.#pulling = false;
        this.#fail(error);
      }
    }
    _read() {
      if (this.#queue.length) {
        const value = this.#queue.shift();
        if (this.#closed && this.#queue.length === 0) this._done?.resolve();
        void this.#pull();
        return Promise.resolve({ value, done: false });
      }
      if (this.#error) return Promise.reject(this.#error.error);
      if (this.#closed) return Promise.resolve({ value: undefined, done: true });
      const next = deferred();
      this.#waiting.push(next);
      void this.#started.then(() => this.#pull());
      return next.promise;
    }
    get locked() { return this.#reader !== null; }
    getReader(options) {
      if (this.#reader) throw state('ReadableStream is locked');
      if (options?.mode === 'byob') throw require('_errors').unsupported('ReadableStream.getReader with mode byob');
      const self = this;
      this._done = deferred();
      if (this.#closed && this.#queue.length === 0) this._done.resolve();
      if (this.#error) this._done.reject(this.#error.error);
      this.#reader = {
        read: () => self._read(), cancel: (reason) => self._cancel(reason), closed: this._done.promise,
        releaseLock() { self.#reader = null; },
      };
      return this.#reader;
    }
    async _cancel(reason) {
      this.#queue = [];
      this.#finish();
      await this.#source.cancel?.(reason);
    }
    cancel(reason) { return this.locked ? Promise.reject(state('ReadableStream is locked')) : this._cancel(reason); }
    tee() {
      const reader = this.getReader();
      const sides = [];
      let pulling = null;
      const pull = () => (pulling ??= reader.read().then(({ value, done }) => {
        pulling = null;
        for (const side of sides) if (done) side._controller.close(); else side._controller.enqueue(value);
      }));
      sides.push(new ReadableStream({ pull }), new ReadableStream({ pull }));
      return sides;
    }
    async pipeTo(target, options = {}) {
      const writer = target.getWriter();
      try {
        for await (const chunk of this) await writer.write(chunk);
        if (!options.preventClose) await writer.close();
      } catch (error) {
        if (!options.preventAbort) await writer.abort(error);
        throw error;
      }
    }
    pipeThrough({ readable, writable }, options) {
      this.pipeTo(writable, options).catch(() => {});
      return readable;
    }
    async* values() {
      const reader = this.getReader();
      let over = false;
      try {
        for (;;) {
          const { value, done } = await reader.read();
          if (done) { over = true; return; }
          yield value;
        }
      } finally {
        if (!over) await reader.cancel();
        reader.releaseLock();
      }
    }
    [Symbol.asyncIterator]() { return this.values(); }
    static from(iterable) {
      const iterator = iterable[Symbol.asyncIterator]?.() ?? iterable[Symbol.iterator]();
      return new ReadableStream({
        async pull(controller) {
          const { value, done } = await iterator.next();
          if (done) controller.close();
          else controller.enqueue(await value);
        },
        async cancel(reason) { await iterator.return?.(reason); },
      }, { highWaterMark: 0 });
    }
  }

  class WritableStream {
    #sink; #locked = false; #last = Promise.resolve(); #error = null; #closed = deferred();
    constructor(sink = {}) {
      this.#sink = sink;
      const controller = { error: (error) => { this.#error = { error }; this.#closed.reject(error); }, signal: new AbortController().signal };
      this.#last = Promise.resolve(sink.start?.(controller));
      Object.defineProperty(this, '_controller', { value: controller, enumerable: false });
    }
    get locked() { return this.#locked; }
    getWriter() {
      if (this.#locked) throw state('WritableStream is locked');
      this.#locked = true;
      const step = (fn) => {
        if (this.#error) return Promise.reject(this.#error.error);
        const next = this.#last.then(fn);
        this.#last = next.catch((error) => { this.#error ??= { error }; this.#closed.reject(error); });
        return next;
      };
      return {
        write: (chunk) => step(() => this.#sink.write?.(chunk, this._controller)),
        close: () => step(async () => { await this.#sink.close?.(); this.#closed.resolve(); }),
        abort: async (reason) => { this.#error ??= { error: reason }; await this.#sink.abort?.(reason); this.#closed.reject(reason); },
        closed: this.#closed.promise, ready: Promise.resolve(), desiredSize: 1, releaseLock: () => { this.#locked = false; },
      };
    }
    close() { const writer = this.getWriter(); return writer.close().finally(() => writer.releaseLock()); }
    abort(reason) { return this.getWriter().abort(reason); }
  }

  class TransformStream {
    constructor(transformer = {}) {
      let out;
      this.readable = new ReadableStream({ start: (controller) => { out = controller; } });
      const controller = { enqueue: (chunk) => out.enqueue(chunk), error: (error) => out.error(error), terminate: () => out.close(), get desiredSize() { return out.desiredSize; } };
      this.writable = new WritableStream({
        start: () => transformer.start?.(controller),
        async write(chunk) {
          if (transformer.transform) await transformer.transform(chunk, controller);
          else out.enqueue(chunk);
        },
        async close() {
          await transformer.flush?.(controller);
          try { out.close(); } catch { /* it was terminated */ }
        },
        abort: (error) => out.error(error),
      });
    }
  }
  class TextDecoderStream extends TransformStream {
    constructor(label, options) {
      const decoder = new TextDecoder(label, options);
      const put = (text, controller) => { if (text) controller.enqueue(text); };
      super({ transform: (chunk, controller) => put(decoder.decode(chunk, { stream: true }), controller), flush: (controller) => put(decoder.decode(), controller) });
    }
  }
  class TextEncoderStream extends TransformStream {
    constructor() { super({ transform: (chunk, controller) => controller.enqueue(native.encodeUtf8(`${chunk}`)) }); }
  }
  const gathered = (act) => {
    const parts = [];
    return { transform: (chunk) => { parts.push(Buffer.from(chunk)); }, flush: (controller) => controller.enqueue(new Uint8Array(act(Buffer.concat(parts)))) };
  };
  const kinds = { gzip: ['gzipSync', 'gunzipSync'], deflate: ['deflateSync', 'inflateSync'], 'deflate-raw': ['deflateRawSync', 'inflateRawSync'] };
  const kind = (name, which) => {
    if (!Object.hasOwn(kinds, name)) throw require('_errors').invalidArgValue('format', name, 'must be one of: deflate, deflate-raw, gzip');
    return (bytes) => require('zlib')[kinds[name][which]](bytes);
  };
  class CompressionStream extends TransformStream { constructor(name) { super(gathered(kind(name, 0))); } }
  class DecompressionStream extends TransformStream { constructor(name) { super(gathered(kind(name, 1))); } }
  class CountQueuingStrategy { constructor({ highWaterMark }) { this.highWaterMark = highWaterMark; } size() { return 1; } }
  class ByteLengthQueuingStrategy { constructor({ highWaterMark }) { this.highWaterMark = highWaterMark; } size(chunk) { return chunk.byteLength; } }
  for (const Type of [ReadableStream, WritableStream, TransformStream]) Object.defineProperty(Type.prototype, Symbol.toStringTag, { value: Type.name, configurable: true });
  Object.assign(exports, { ReadableStream, WritableStream, TransformStream, TextDecoderStream, TextEncoderStream, CompressionStream, DecompressionStream, CountQueuingStrategy, ByteLengthQueuingStrategy });
})
