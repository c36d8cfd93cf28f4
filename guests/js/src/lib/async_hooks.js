// async_hooks: storage that follows promises, timers and callbacks is kept by wrapping what is handed over.
(function (exports, require, module, native) {
  'use strict';
  const { unsupported, validate } = require('_errors');
  let current = new Map();
  const inside = (map, fn, self, args) => {
    const before = current;
    current = map;
    try {
      return Reflect.apply(fn, self, args);
    } finally {
      current = before;
    }
  };
  const bind = (fn) => {
    if (typeof fn !== 'function') return fn;
    const map = current;
    return function (...args) { return inside(map, fn, this, args); };
  };
  let installed = false;
  // From its first use on, what is called later is called with the storage of where it was handed over.
  function install() {
    if (installed) return;
    installed = true;
    const { then } = Promise.prototype;
    Object.defineProperty(Promise.prototype, 'then', { writable: true, configurable: true, value: function (done, failed) { return then.call(this, bind(done), bind(failed)); } });
    const timers = require('timers');
    for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask']) {
      const original = globalThis[name];
      const wrapped = Object.defineProperties(function (fn, ...rest) { return original(bind(fn), ...rest); }, Object.getOwnPropertyDescriptors(original));
      globalThis[name] = wrapped;
      if (timers[name]) timers[name] = wrapped;
    }
    const process = require('process');
    const { nextTick } = process;
    process.nextTick = (fn, ...args) => nextTick(bind(fn), ...args);
  }
  class AsyncLocalStorage {
    constructor() { install(); }
    run(store, fn, ...args) { return inside(new Map(current).set(this, store), fn, undefined, args); }
    exit(fn, ...args) {
      const map = new Map(current);
      map.delete(this);
      return inside(map, fn, undefined, args);
    }
    getStore() { return current.get(this); }
    enterWith(store) { current = new Map(current).set(this, store); }
    disable() { current = new Map(current); current.delete(this); }
    static bind(fn) { return bind(fn); }
    static snapshot() { const map = current; return (fn, ...args) => inside(map, fn, undefined, args); }
  }
  let last = 1;
  class AsyncResource {
    #map = current; #id = ++last;
    constructor(type) { validate.string(type, 'type'); }
    runInAsyncScope(fn, self, ...args) { return inside(this.#map, fn, self, args); }
    bind(fn) { return (...args) => this.runInAsyncScope(fn, undefined, ...args); }
    static bind(fn) { return bind(fn); }
    emitDestroy() { return this; }
    asyncId() { return this.#id; }
    triggerAsyncId() { return 1; }
  }
  Object.assign(exports, { AsyncLocalStorage, AsyncResource, executionAsyncId: () => 1, triggerAsyncId: () => 0, executionAsyncResource: () => ({}) });
  exports.createHook = () => { throw unsupported('async_hooks.createHook', 'is not available in this sandbox: use AsyncLocalStorage'); };
})
