// EventEmitter, and the functions around it.
(function (exports, require, module, native) {
  'use strict';

  const { validate, invalidArgType, coded, AbortError, outOfRange } = require('_errors');
  const { inspect } = require('_inspect');
  let most = 10;
  const shapeMode = Symbol('shapeMode'), kCapture = Symbol('kCapture');
  const monitor = Symbol('events.errorMonitor');
  const rejection = Symbol.for('nodejs.rejection');

  function EventEmitter(options) {
    EventEmitter.init.call(this, options);
  }
  module.exports = EventEmitter;

  EventEmitter.init = function (options) {
    if (this._events === undefined || this._events === Object.getPrototypeOf(this)._events) {
      this._events = Object.create(null);
      this._eventsCount = 0;
    }
    this._maxListeners = this._maxListeners || undefined;
    // As Node has them, for who prints an emitter.
    this[shapeMode] = false;
    this[kCapture] = !!options?.captureRejections;
  };

  const proto = EventEmitter.prototype;
  proto._events = undefined;
  proto._eventsCount = 0;
  proto._maxListeners = undefined;

  proto.setMaxListeners = function setMaxListeners(count) {
    if (typeof count !== 'number' || count < 0 || Number.isNaN(count)) throw outOfRange('n', 'a non-negative number', count);
    this._maxListeners = count;
    return this;
  };
  proto.getMaxListeners = function getMaxListeners() { return this._maxListeners ?? most; };

  proto.emit = function emit(type, ...args) {
    const events = this._events;
    if (type === 'error') {
      if (events?.[monitor] !== undefined) this.emit(monitor, ...args);
      if (events?.error === undefined) {
        const error = args[0];
        if (error instanceof Error) throw error;
        let text;
        try {
          text = inspect(error);
        } catch {
          text = String(error);
        }
        const unhandled = coded(Error, 'ERR_UNHANDLED_ERROR', `Unhandled error. (${text})`);
        unhandled.context = error;
        throw unhandled;
      }
    }
    const handler = events?.[type];
    if (handler === undefined) return false;
    if (typeof handler === 'function') {
      caught(this, type, args, Reflect.apply(handler, this, args));
    } else {
      for (const listener of handler.slice()) caught(this, type, args, Reflect.apply(listener, this, args));
    }
    return true;
  };

  function caught(emitter, type, args, result) {
    if (!emitter[kCapture] || result === undefined || result === null || typeof result.then !== 'function') return;
    result.then(undefined, (error) => require('process').nextTick(() => {
      if (typeof emitter[rejection] === 'function') emitter[rejection](error, type, ...args);
      else emitter.emit('error', error);
    }));
  }

  function add(emitter, type, listener, first) {
    if (typeof listener !== 'function') throw invalidArgType('listener', 'function', listener);
    if (emitter._events === undefined) {
      emitter._events = Object.create(null);
      emitter._eventsCount = 0;
    } else if (emitter._events.newListener !== undefined) {
      emitter.emit('newListener', type, listener.listener ?? listener);
    }
    const events = emitter._events;
    const existing = events[type];
    if (existing === undefined) {
      events[type] = listener;
      emitter._eventsCount++;
      return emitter;
    }
    if (typeof existing === 'function') events[type] = first ? [listener, existing] : [existing, listener];
    else if (first) existing.unshift(listener);
    else existing.push(listener);
    const limit = emitter.getMaxListeners();
    if (limit > 0 && events[type].length > limit && !events[type].warned) {
      events[type].warned = true;
      const name = emitter.constructor?.name;
      require('process').emitWarning(`Possible EventEmitter memory leak detected. ${events[type].length} ${String(type)} listeners added to [${name}]. MaxListeners is ${limit}. Use emitter.setMaxListeners() to increase limit`, 'MaxListenersExceededWarning');
    }
    return emitter;
  }

  proto.addListener = function addListener(type, listener) { return add(this, type, listener, false); };
  proto.on = proto.addListener;
  proto.prependListener = function prependListener(type, listener) { return add(this, type, listener, true); };

  function onceWrap(emitter, type, listener) {
    let fired = false;
    function wrapper(...args) {
      if (fired) return undefined;
      fired = true;
      emitter.removeListener(type, wrapper);
      return Reflect.apply(listener, emitter, args);
    }
    wrapper.listener = listener;
    return wrapper;
  }
  proto.once = function once(type, listener) {
    if (typeof listener !== 'function') throw invalidArgType('listener', 'function', listener);
    return this.on(type, onceWrap(this, type, listener));
  };
  proto.prependOnceListener = function prependOnceListener(type, listener) {
    if (typeof listener !== 'function') throw invalidArgType('listener', 'function', listener);
    return this.prependListener(type, onceWrap(this, type, listener));
  };

  proto.removeListener = function removeListener(type, listener) {
    if (typeof listener !== 'function') throw invalidArgType('listener', 'function', listener);
    const events = this._events;
    const list = events?.[type];
    if (list === undefined) return this;
    if (list === listener || list.listener === listener) {
      this._eventsCount--;
      if (this._eventsCount === 0) this._events = Object.create(null);
      else delete events[type];
    } else if (typeof list !== 'function') {
      let at = -1;
      for (let index = list.length - 1; index >= 0; index--) {
        if (list[index] === listener || list[index].listener === listener) { at = index; break; }
      }
      if (at < 0) return this;
      list.splice(at, 1);
      if (list.length === 1) events[type] = list[0];
    } else return this;
    if (this._events.removeListener !== undefined) this.emit('removeListener', type, listener);
    return this;
  };
  proto.off = proto.removeListener;

  proto.removeAllListeners = function removeAllListeners(type) {
    const events = this._events;
    if (events === undefined) return this;
    if (events.removeListener !== undefined) {
      const types = type === undefined ? Reflect.ownKeys(events).filter((key) => key !== 'removeListener') : [type];
      for (const one of types) for (const listener of this.listeners(one).reverse()) this.removeListener(one, listener);
      if (type === undefined) this.removeAllListeners('removeListener');
      return this;
    }
    if (type === undefined) {
      this._events = Object.create(null);
      this._eventsCount = 0;
    } else if (events[type] !== undefined) {
      this._eventsCount--;
      delete events[type];
    }
    return this;
  };

  const all = (emitter, type) => [].concat(emitter._events?.[type] ?? []);
  proto.listeners = function listeners(type) { return all(this, type).map((one) => one.listener ?? one); };
  proto.rawListeners = function rawListeners(type) { return all(this, type); };
  proto.listenerCount = function listenerCount(type, listener) {
    const list = all(this, type);
    return listener ? list.filter((one) => one === listener || one.listener === listener).length : list.length;
  };
  proto.eventNames = function eventNames() { return this._events ? Reflect.ownKeys(this._events) : []; };

  EventEmitter.EventEmitter = EventEmitter;
  EventEmitter.errorMonitor = monitor;
  EventEmitter.captureRejectionSymbol = rejection;
  EventEmitter.usingDomains = false;
  Object.defineProperty(EventEmitter, 'defaultMaxListeners', {
    enumerable: true,
    get: () => most,
    set(count) {
      validate.number(count, 'defaultMaxListeners');
      most = count;
    },
  });
  EventEmitter.listenerCount = (emitter, type) => emitter.listenerCount(type);
  EventEmitter.setMaxListeners = (count = most, ...targets) => {
    if (targets.length === 0) most = count;
    for (const target of targets) target.setMaxListeners?.(count);
  };
  EventEmitter.getEventListeners = (emitter, type) => emitter.listeners ? emitter.listeners(type) : [];

  const isEmitter = (value) => typeof value?.on === 'function';

  EventEmitter.once = function once(emitter, name, options) {
    const signal = options?.signal;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(new AbortError(undefined, { cause: signal.reason }));
      const clean = () => {
        if (isEmitter(emitter)) {
          emitter.removeListener(name, onEvent);
          emitter.removeListener('error', onError);
        } else emitter.removeEventListener(name, onEvent);
        signal?.removeEventListener('abort', onAbort);
      };
      const onEvent = (...args) => { clean(); resolve(args); };
      const onError = (error) => { clean(); reject(error); };
      const onAbort = () => { clean(); reject(new AbortError(undefined, { cause: signal.reason })); };
      if (isEmitter(emitter)) {
        emitter.once(name, onEvent);
        if (name !== 'error') emitter.once('error', onError);
      } else if (typeof emitter?.addEventListener === 'function') {
        emitter.addEventListener(name, onEvent, { once: true });
      } else throw invalidArgType('emitter', 'EventEmitter', emitter);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  };

  EventEmitter.on = function on(emitter, name, options) {
    const queue = [], waiting = [];
    let failed = null, done = false;
    const onEvent = (...args) => {
      const next = waiting.shift();
      if (next) next.resolve({ value: args, done: false });
      else queue.push(args);
    };
    const onError = (error) => {
      const next = waiting.shift();
      if (next) next.reject(error);
      else failed = error;
      iterator.return();
    };
    const iterator = {
      next() {
        if (queue.length) return Promise.resolve({ value: queue.shift(), done: false });
        if (failed) {
          const error = failed;
          failed = null;
          return Promise.reject(error);
        }
        if (done) return Promise.resolve({ value: undefined, done: true });
        return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
      },
      return() {
        emitter.off?.(name, onEvent);
        emitter.off?.('error', onError);
        done = true;
        for (const next of waiting.splice(0)) next.resolve({ value: undefined, done: true });
        return Promise.resolve({ value: undefined, done: true });
      },
      throw(error) { onError(error); return Promise.reject(error); },
      [Symbol.asyncIterator]() { return this; },
    };
    emitter.on(name, onEvent);
    if (name !== 'error') emitter.on('error', onError);
    options?.signal?.addEventListener('abort', () => onError(new AbortError(undefined, { cause: options.signal.reason })), { once: true });
    for (const end of options?.close ?? []) emitter.on(end, () => iterator.return());
    return iterator;
  };

  class EventEmitterAsyncResource extends EventEmitter {}
  EventEmitter.EventEmitterAsyncResource = EventEmitterAsyncResource;
})
