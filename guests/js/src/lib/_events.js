// Events of the web: EventTarget, AbortController, messages between ports.
(function (exports, require, module, native) {
  'use strict';

  const { coded, invalidArgType } = require('_errors');
  const custom = Symbol.for('nodejs.util.inspect.custom');
  const CODES = {
    IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5, NoModificationAllowedError: 7, NotFoundError: 8,
    NotSupportedError: 9, InUseAttributeError: 10, InvalidStateError: 11, SyntaxError: 12, InvalidModificationError: 13, NamespaceError: 14,
    InvalidAccessError: 15, TypeMismatchError: 17, SecurityError: 18, NetworkError: 19, AbortError: 20, URLMismatchError: 21, QuotaExceededError: 22,
    TimeoutError: 23, InvalidNodeTypeError: 24, DataCloneError: 25,
  };

  class DOMException extends Error {
    #name;
    constructor(message = '', options = 'Error') {
      const name = typeof options === 'object' && options !== null ? options.name ?? 'Error' : `${options}`;
      super(message);
      this.#name = name;
      if (typeof options === 'object' && options !== null && 'cause' in options) Object.defineProperty(this, 'cause', { value: options.cause, configurable: true, writable: true });
      Object.defineProperty(this, 'stack', { value: String(this.stack).replace(/^Error/, name), writable: true, configurable: true });
    }
    get name() { return this.#name; }
    get code() { return CODES[this.#name] ?? 0; }
  }
  for (const name of Object.keys(CODES)) {
    const constant = `${name.replace(/Error$/, '').replace(/([a-z])([A-Z])/g, '$1_$2').toUpperCase()}_ERR`;
    Object.defineProperty(DOMException, constant, { value: CODES[name], enumerable: true });
  }
  Object.defineProperty(DOMException.prototype, Symbol.toStringTag, { value: 'DOMException', configurable: true });
  exports.DOMException = DOMException;

  class Event {
    #type; #options; #now = native.hrtime() / 1e6;
    _target = null; _current = null; _stopped = false; _stoppedNow = false; _prevented = false; _phase = 0; _passive = false;
    constructor(type, options) {
      if (arguments.length === 0) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "type" argument must be specified');
      this.#type = `${type}`;
      this.#options = options ?? {};
      for (const name of ['_target', '_current', '_stopped', '_stoppedNow', '_prevented', '_phase', '_passive']) Object.defineProperty(this, name, { enumerable: false });
    }
    get type() { return this.#type; }
    get target() { return this._target; }
    get srcElement() { return this._target; }
    get currentTarget() { return this._current; }
    get bubbles() { return !!this.#options.bubbles; }
    get cancelable() { return !!this.#options.cancelable; }
    get composed() { return !!this.#options.composed; }
    get defaultPrevented() { return this.cancelable && this._prevented; }
    get returnValue() { return !this.defaultPrevented; }
    get cancelBubble() { return this._stopped; }
    set cancelBubble(value) { if (value) this._stopped = true; }
    get eventPhase() { return this._phase; }
    get timeStamp() { return this.#now; }
    get isTrusted() { return false; }
    composedPath() { return this._current ? [this._current] : []; }
    preventDefault() { if (!this._passive) this._prevented = true; }
    stopPropagation() { this._stopped = true; }
    stopImmediatePropagation() { this._stoppedNow = true; }
    [custom](depth, options) {
      const { inspect } = require('_inspect');
      return `${this.constructor.name} ${inspect({ type: this.type, defaultPrevented: this.defaultPrevented, cancelable: this.cancelable, timeStamp: this.timeStamp }, options)}`;
    }
    static NONE = 0; static CAPTURING_PHASE = 1; static AT_TARGET = 2; static BUBBLING_PHASE = 3;
  }
  exports.Event = Event;
  class CustomEvent extends Event {
    #detail;
    constructor(type, options) { super(type, options); this.#detail = options?.detail ?? null; }
    get detail() { return this.#detail; }
  }
  exports.CustomEvent = CustomEvent;
  class MessageEvent extends Event {
    constructor(type, options = {}) {
      super(type, options);
      Object.defineProperty(this, 'data', { value: options.data ?? null, enumerable: true });
      Object.defineProperty(this, 'ports', { value: options.ports ?? [], enumerable: true });
    }
  }
  exports.MessageEvent = MessageEvent;

  class EventTarget {
    #listeners = new Map();
    addEventListener(type, listener, options) {
      if (arguments.length < 2) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "type" and "listener" arguments must be specified');
      if (listener === null || listener === undefined) return;
      if (typeof listener !== 'function' && typeof listener !== 'object') throw invalidArgType('listener', 'EventListener', listener);
      const { once = false, capture = false, passive = false, signal } = typeof options === 'boolean' ? { capture: options } : options ?? {};
      if (signal?.aborted) return;
      const list = this.#listeners.get(`${type}`) ?? [];
      if (list.some((one) => one.listener === listener && one.capture === !!capture)) return;
      list.push({ listener, once, capture: !!capture, passive, removed: false });
      this.#listeners.set(`${type}`, list);
      signal?.addEventListener('abort', () => this.removeEventListener(type, listener, options), { once: true });
      this._changed?.(`${type}`, list.length);
    }
    removeEventListener(type, listener, options) {
      const capture = !!(typeof options === 'boolean' ? options : options?.capture);
      const list = this.#listeners.get(`${type}`);
      const index = list?.findIndex((one) => one.listener === listener && one.capture === capture) ?? -1;
      if (index >= 0) {
        list[index].removed = true;
        list.splice(index, 1);
        this._changed?.(`${type}`, list.length);
      }
    }
    dispatchEvent(event) {
      if (!(event instanceof Event)) throw invalidArgType('event', 'Event', event);
      event._target = this;
      event._current = this;
      event._phase = 2;
      for (const entry of [...this.#listeners.get(event.type) ?? []]) {
        if (entry.removed) continue;
        if (entry.once) this.removeEventListener(event.type, entry.listener, { capture: entry.capture });
        event._passive = entry.passive;
        try {
          const result = typeof entry.listener === 'function' ? entry.listener.call(this, event) : entry.listener.handleEvent(event);
          if (result && typeof result.then === 'function') result.then(undefined, (error) => require('process').nextTick(() => { throw error; }));
        } catch (error) {
          require('process').nextTick(() => { throw error; });
        }
        if (event._stoppedNow) break;
      }
      event._current = null;
      event._phase = 0;
      return !event.defaultPrevented;
    }
    [custom](depth) { return depth < 0 ? `[${this.constructor.name}]` : `${this.constructor.name} {}`; }
  }
  exports.EventTarget = EventTarget;
  for (const Type of [Event, EventTarget, CustomEvent]) Object.defineProperty(Type.prototype, Symbol.toStringTag, { value: Type.name, configurable: true });

  // `onname` as a listener.
  function handler(Type, name) {
    const key = Symbol(name);
    Object.defineProperty(Type.prototype, `on${name}`, {
      configurable: true, enumerable: true,
      get() { return this[key]?.fn ?? null; },
      set(fn) {
        if (this[key]) this.removeEventListener(name, this[key].listener);
        Object.defineProperty(this, key, { value: undefined, writable: true, configurable: true, enumerable: false });
        if (typeof fn === 'function') {
          this[key] = { fn, listener: (event) => fn.call(this, event) };
          this.addEventListener(name, this[key].listener);
        }
      },
    });
  }

  const inner = Symbol('inner');
  class AbortSignal extends EventTarget {
    #aborted = false; #reason;
    constructor(key) {
      if (key !== inner) throw coded(TypeError, 'ERR_ILLEGAL_CONSTRUCTOR', 'Illegal constructor');
      super();
    }
    get aborted() { return this.#aborted; }
    get reason() { return this.#reason; }
    throwIfAborted() { if (this.#aborted) throw this.#reason; }
    static _abort(signal, reason = new DOMException('This operation was aborted', 'AbortError')) {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason;
      signal.dispatchEvent(new Event('abort'));
    }
    static abort(reason) {
      const signal = new AbortSignal(inner);
      AbortSignal._abort(signal, reason);
      return signal;
    }
    static timeout(delay) {
      require('_errors').validate.integer(delay, 'delay', 0);
      const signal = new AbortSignal(inner);
      require('timers').setTimeout(() => AbortSignal._abort(signal, new DOMException('The operation was aborted due to timeout', 'TimeoutError')), delay).unref();
      return signal;
    }
    static any(signals) {
      const signal = new AbortSignal(inner);
      for (const one of signals) {
        if (one.aborted) {
          AbortSignal._abort(signal, one.reason);
          break;
        }
        one.addEventListener('abort', () => AbortSignal._abort(signal, one.reason), { once: true });
      }
      return signal;
    }
    [custom](depth, options) { return depth < 0 ? '[AbortSignal]' : `AbortSignal { aborted: ${this.#aborted} }`; }
  }
  Object.defineProperty(AbortSignal, '_abort', { enumerable: false });
  handler(AbortSignal, 'abort');
  exports.AbortSignal = AbortSignal;
  class AbortController {
    #signal = new AbortSignal(inner);
    get signal() { return this.#signal; }
    abort(reason) { AbortSignal._abort(this.#signal, reason); }
    [custom](depth, options) { return `AbortController { signal: ${require('_inspect').inspect(this.#signal, options)} }`; }
  }
  exports.AbortController = AbortController;
  for (const Type of [AbortSignal, AbortController]) Object.defineProperty(Type.prototype, Symbol.toStringTag, { value: Type.name, configurable: true });

  // Ports of this one thread.
  class MessagePort extends EventTarget {
    #other = null; #started = false; #queue = []; #closed = false;
    static _join(one, other) { one.#other = other; other.#other = one; }
    postMessage(value) {
      const other = this.#other;
      if (!other || other.#closed) return;
      other.#queue.push(require('_clone').structuredClone(value));
      if (other.#started) other.#deliver();
    }
    #deliver() {
      require('_loop').complete(() => {
        const value = this.#queue.length && this.#started ? { data: this.#queue.shift() } : null;
        if (value) this.dispatchEvent(new MessageEvent('message', value));
      });
    }
    start() {
      if (this.#started) return;
      this.#started = true;
      this.#queue.forEach(() => this.#deliver());
    }
    _changed(type) { if (type === 'message') this.start(); }
    on(name, listener) { this.addEventListener(name, (event) => listener(event.data)); return this; }
    once(name, listener) { this.addEventListener(name, (event) => listener(event.data), { once: true }); return this; }
    close() {
      this.#closed = true;
      this.dispatchEvent(new Event('close'));
    }
    ref() {}
    unref() {}
  }
  handler(MessagePort, 'message');
  exports.MessagePort = MessagePort;
  exports.MessageChannel = class MessageChannel {
    constructor() {
      this.port1 = new MessagePort();
      this.port2 = new MessagePort();
      MessagePort._join(this.port1, this.port2);
    }
  };
  const channels = new Map();
  class BroadcastChannel extends EventTarget {
    constructor(name) {
      super();
      this.name = `${name}`;
      channels.set(this.name, [...channels.get(this.name) ?? [], this]);
    }
    postMessage(value) {
      for (const one of channels.get(this.name)) if (one !== this) require('_loop').complete(() => one.dispatchEvent(new MessageEvent('message', { data: require('_clone').structuredClone(value) })));
    }
    close() { channels.set(this.name, channels.get(this.name).filter((one) => one !== this)); }
    ref() { return this; }
    unref() { return this; }
  }
  handler(BroadcastChannel, 'message');
  exports.BroadcastChannel = BroadcastChannel;
})
