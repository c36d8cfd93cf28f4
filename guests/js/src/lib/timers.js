// setTimeout and its like.
(function (exports, require, module, native) {
  'use strict';

  const loop = require('_loop');
  const { validate, AbortError, invalidArgType } = require('_errors');
  const custom = Symbol.for('nodejs.util.promisify.custom');
  const known = new Map();
  let last = 0;

  class Timeout {
    constructor(fn, delay, args, repeat) {
      delay = Number(delay);
      if (!(delay >= 1 && delay <= 2147483647)) {
        if (delay > 2147483647) {
          require('process').emitWarning(`${delay} does not fit into a 32-bit signed integer.\nTimeout duration was set to 1.`, 'TimeoutOverflowWarning');
        }
        delay = 1;
      }
      this._idleTimeout = Math.trunc(delay);
      this._onTimeout = fn;
      this._repeat = repeat ? this._idleTimeout : null;
      this._destroyed = false;
      const timer = { delay: this._idleTimeout, ref: true, fire: undefined };
      Object.defineProperty(this, '_timer', { value: timer, enumerable: false });
      Object.defineProperty(this, '_id', { value: ++last, enumerable: false });
      timer.fire = () => {
        if (repeat) loop.addTimer(timer);
        else this.#end();
        fn.apply(this, args);
      };
      loop.addTimer(timer);
    }
    #end() {
      this._destroyed = true;
      known.delete(this._id);
    }
    ref() { this._timer.ref = true; return this; }
    unref() { this._timer.ref = false; return this; }
    hasRef() { return this._timer.ref; }
    refresh() {
      loop.removeTimer(this._timer);
      if (!this._destroyed) loop.addTimer(this._timer);
      return this;
    }
    close() { this._stop(); return this; }
    _stop() {
      loop.removeTimer(this._timer);
      this.#end();
    }
    [Symbol.toPrimitive]() {
      known.set(this._id, this);
      return this._id;
    }
    [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() { this._stop(); }
  }

  class Immediate {
    constructor(fn, args) {
      this._onImmediate = fn;
      const entry = { ref: true, cleared: false, fire: () => fn.apply(this, args) };
      Object.defineProperty(this, '_entry', { value: entry, enumerable: false });
      loop.addImmediate(entry);
    }
    ref() { this._entry.ref = true; return this; }
    unref() { this._entry.ref = false; return this; }
    hasRef() { return this._entry.ref; }
  }

  exports.setTimeout = function setTimeout(callback, delay, ...args) {
    validate.function(callback, 'callback');
    return new Timeout(callback, delay, args, false);
  };
  exports.setInterval = function setInterval(callback, delay, ...args) {
    validate.function(callback, 'callback');
    return new Timeout(callback, delay, args, true);
  };
  exports.setImmediate = function setImmediate(callback, ...args) {
    validate.function(callback, 'callback');
    return new Immediate(callback, args);
  };
  exports.clearTimeout = function clearTimeout(timer) {
    if (timer instanceof Timeout) timer._stop();
    else if (typeof timer === 'number' || typeof timer === 'string') known.get(Number(timer))?._stop();
  };
  exports.clearInterval = function clearInterval(timer) { exports.clearTimeout(timer); };
  exports.clearImmediate = function clearImmediate(immediate) {
    if (immediate instanceof Immediate) immediate._entry.cleared = true;
  };

  function abortable(options, start) {
    const signal = options?.signal;
    if (signal !== undefined && (signal === null || typeof signal !== 'object' || !('aborted' in signal))) {
      return Promise.reject(invalidArgType('options.signal', 'AbortSignal', signal));
    }
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(new AbortError(undefined, { cause: signal.reason }));
      const stop = start((value) => {
        signal?.removeEventListener('abort', onAbort);
        resolve(value);
      });
      function onAbort() {
        stop();
        reject(new AbortError(undefined, { cause: signal.reason }));
      }
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  const promises = {
    setTimeout: (delay, value, options) => abortable(options, (resolve) => {
      const timer = exports.setTimeout(resolve, delay, value);
      if (options?.ref === false) timer.unref();
      return () => exports.clearTimeout(timer);
    }),
    setImmediate: (value, options) => abortable(options, (resolve) => {
      const immediate = exports.setImmediate(resolve, value);
      return () => exports.clearImmediate(immediate);
    }),
    async* setInterval(delay, value, options) {
      for (;;) {
        await promises.setTimeout(delay, undefined, options);
        yield value;
      }
    },
  };
  promises.scheduler = { wait: (delay, options) => promises.setTimeout(delay, undefined, options), yield: () => promises.setImmediate() };
  Object.defineProperty(exports.setTimeout, custom, { enumerable: true, get: () => promises.setTimeout });
  Object.defineProperty(exports.setImmediate, custom, { enumerable: true, get: () => promises.setImmediate });
  exports.promises = promises;
})
