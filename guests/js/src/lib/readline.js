// readline: lines of a stream, and questions.
(function (exports, require, module, native) {
  'use strict';

  const EventEmitter = require('events');
  const { StringDecoder } = require('string_decoder');
  const { AbortError, coded, validate } = require('_errors');

  class Interface extends EventEmitter {
    #decoder = new StringDecoder('utf8'); #rest = ''; #sawReturn = false; #question = null; #prompt; #paused = false; #completed = false; #pending = [];
    constructor(input, output, completer, terminal) {
      super();
      let options = input;
      if (typeof input?.on === 'function') options = { input, output, completer, terminal };
      if (!options?.input) throw coded(TypeError, 'ERR_INVALID_ARG_TYPE', 'The "input" argument must be a stream');
      this.input = options.input;
      this.output = options.output;
      this.terminal = !!(options.terminal ?? options.output?.isTTY);
      this.line = '';
      this.cursor = 0;
      this.closed = false;
      this.history = options.history ?? [];
      this.#prompt = options.prompt ?? '> ';
      this.input.on('error', (error) => this.emit('error', error));
      this._onData = (chunk) => this.#take(typeof chunk === 'string' ? chunk : this.#decoder.write(chunk));
      this._onEnd = () => {
        const last = this.#rest + this.#decoder.end();
        this.#rest = '';
        if (last) this.#line(last);
        this.close();
      };
      for (const name of ['_onData', '_onEnd']) Object.defineProperty(this, name, { enumerable: false });
      this.input.on('data', this._onData);
      this.input.on('end', this._onEnd);
      options.signal?.addEventListener('abort', () => this.close(), { once: true });
      this.input.resume();
    }
    #take(text) {
      if (this.#sawReturn && text.startsWith('\n')) text = text.slice(1);
      this.#sawReturn = text.endsWith('\r');
      this.#rest += text;
      const lines = this.#rest.split(/\r\n|\n|\r|\u2028|\u2029/);
      this.#rest = lines.pop();
      for (const line of lines) this.#line(line);
    }
    #line(line) {
      if (this.closed && !this.#pending) return;
      if (this.#paused) { this.#pending.push(line); return; }
      if (this.#question) {
        const ask = this.#question;
        this.#question = null;
        ask(line);
      } else this.emit('line', line);
    }
    getPrompt() { return this.#prompt; }
    setPrompt(prompt) { this.#prompt = `${prompt}`; }
    prompt() {
      if (this.#paused) this.resume();
      this.output?.write(this.#prompt);
    }
    question(query, options, callback) {
      if (typeof options === 'function') { callback = options; options = {}; }
      if (this.closed) throw coded(Error, 'ERR_USE_AFTER_CLOSE', 'readline was closed');
      if (this.#question) { this.prompt(); return; }
      if (options?.signal?.aborted) return;
      options?.signal?.addEventListener('abort', () => { this.#question = null; }, { once: true });
      this.output?.write(query);
      this.#question = callback;
      if (this.#paused) this.resume();
    }
    write(data, key) {
      if (this.closed) throw coded(Error, 'ERR_USE_AFTER_CLOSE', 'readline was closed');
      if (data) this.#take(typeof data === 'string' ? data : data.toString());
    }
    pause() {
      if (this.#paused) return this;
      this.#paused = true;
      this.input.pause();
      this.emit('pause');
      return this;
    }
    resume() {
      if (!this.#paused) return this;
      this.#paused = false;
      this.input.resume();
      this.emit('resume');
      while (this.#pending.length && !this.#paused) this.#line(this.#pending.shift());
      return this;
    }
    close() {
      if (this.closed) return;
      this.input.off('data', this._onData);
      this.input.off('end', this._onEnd);
      this.input.pause();
      this.closed = true;
      this.emit('close');
    }
    getCursorPos() { return { rows: 0, cols: 0 }; }
    [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() { this.close(); }
    [Symbol.asyncIterator]() {
      const queue = [], waiting = [];
      let done = this.closed;
      this.on('line', (line) => { const next = waiting.shift(); if (next) next({ value: line, done: false }); else queue.push(line); });
      this.on('close', () => { done = true; for (const next of waiting.splice(0)) next({ value: undefined, done: true }); });
      return {
        next: () => (queue.length ? Promise.resolve({ value: queue.shift(), done: false }) : done ? Promise.resolve({ value: undefined, done: true }) : new Promise((resolve) => waiting.push(resolve))),
        return: () => { this.close(); return Promise.resolve({ value: undefined, done: true }); },
        [Symbol.asyncIterator]() { return this; },
      };
    }
  }
  exports.Interface = Interface;
  exports.createInterface = (...args) => new Interface(...args);
  const { promisify } = require('util');
  Interface.prototype.question[promisify.custom] = function (query, options) {
    return new Promise((resolve, reject) => {
      options?.signal?.addEventListener('abort', () => reject(new AbortError(undefined, { cause: options.signal.reason })), { once: true });
      this.question(query, options ?? {}, resolve);
    });
  };
  const say = (stream, text, done) => {
    if (done !== undefined) validate.function(done, 'callback');
    if (!stream) { if (done) require('process').nextTick(done, null); return true; }
    return stream.write(text, done);
  };
  exports.clearLine = (stream, way, done) => say(stream, way < 0 ? '\u001b[1K' : way > 0 ? '\u001b[0K' : '\u001b[2K', done);
  exports.cursorTo = (stream, x, y, done) => (typeof y === 'function' ? say(stream, `\u001b[${x + 1}G`, y) : say(stream, y === undefined ? `\u001b[${x + 1}G` : `\u001b[${y + 1};${x + 1}H`, done));
  exports.moveCursor = (stream, x, y, done) => say(stream, (x < 0 ? `\u001b[${-x}D` : x > 0 ? `\u001b[${x}C` : '') + (y < 0 ? `\u001b[${-y}A` : y > 0 ? `\u001b[${y}B` : ''), done);
  exports.clearScreenDown = (stream, done) => say(stream, '\u001b[0J', done);
  const NAMES = { '\r': 'return', '\n': 'enter', '\t': 'tab', '\u007f': 'backspace', '\b': 'backspace', '\u001b': 'escape', ' ': 'space', '\u001b[A': 'up', '\u001b[B': 'down', '\u001b[C': 'right', '\u001b[D': 'left', '\u001b[H': 'home', '\u001b[F': 'end', '\u001b[3~': 'delete' };
  exports.emitKeypressEvents = (stream) => {
    stream.on('data', (chunk) => {
      // eslint-disable-next-line no-control-regex
      for (const sequence of chunk.toString().match(/\u001b\[[0-9;]*[A-Za-z~]|[\s\S]/gu) ?? []) {
        const code = sequence.charCodeAt(0);
        const ctrl = sequence.length === 1 && code < 27 && !NAMES[sequence];
        const name = NAMES[sequence] ?? (ctrl ? String.fromCharCode(code + 96) : /^[a-zA-Z0-9]$/.test(sequence) ? sequence.toLowerCase() : undefined);
        stream.emit('keypress', sequence.length === 1 ? sequence : undefined, { sequence, name, ctrl, meta: false, shift: /^[A-Z]$/.test(sequence) });
      }
    });
  };
  Object.defineProperty(exports, 'promises', { enumerable: true, configurable: true, get: () => require('readline/promises') });
})
