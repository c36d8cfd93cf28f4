// console: lines to standard output and standard error.
(function (exports, require, module, native) {
  'use strict';

  const { inspect, formatWithOptions, width } = require('_inspect');

  const kWrite = Symbol('write');

  class Console {
    #out; #err; #indent = ''; #counts = new Map(); #timers = new Map(); #options; #step;

    constructor(out, err = out) {
      let options = {};
      if (out && typeof out === 'object' && typeof out.write !== 'function') {
        options = out;
        ({ stdout: out, stderr: err = out } = options);
      }
      this.#out = out;
      this.#err = err;
      this.#options = options.inspectOptions;
      this.#step = options.groupIndentation ?? 2;
      for (const name of METHODS) {
        const method = this[name];
        Object.defineProperty(this, name, { value: method.bind(this), writable: true, enumerable: true, configurable: true });
      }
    }

    [kWrite](toError, args) {
      const stream = toError ? this.#err : this.#out;
      const options = this.#options ?? (stream?.isTTY ? { colors: true } : undefined);
      let text = formatWithOptions(options, ...args);
      if (this.#indent) text = this.#indent + text.replaceAll('\n', `\n${this.#indent}`);
      stream.write(`${text}\n`);
    }

    log(...args) { this[kWrite](false, args); }
    warn(...args) { this[kWrite](true, args); }
    info(...args) { this[kWrite](false, args); }
    debug(...args) { this[kWrite](false, args); }
    error(...args) { this[kWrite](true, args); }
    dir(value, options) { this[kWrite](false, [inspect(value, { customInspect: false, ...options })]); }
    dirxml(...args) { this.log(...args); }
    assert(value, ...args) {
      if (value) return;
      if (typeof args[0] === 'string') args[0] = `Assertion failed: ${args[0]}`;
      else args.unshift('Assertion failed');
      this.warn(...args);
    }
    trace(...args) {
      const error = { name: 'Trace', message: formatWithOptions(undefined, ...args) };
      Error.captureStackTrace(error, this.trace);
      const frames = String(error.stack).split('\n').slice(1).join('\n');
      this.error(`Trace${error.message ? `: ${error.message}` : ''}\n${frames}`);
    }
    count(label = 'default') {
      label = `${label}`;
      const count = (this.#counts.get(label) ?? 0) + 1;
      this.#counts.set(label, count);
      this.log(`${label}: ${count}`);
    }
    countReset(label = 'default') {
      if (!this.#counts.delete(`${label}`)) require('process').emitWarning(`Count for '${label}' does not exist`);
    }
    time(label = 'default') {
      label = `${label}`;
      if (this.#timers.has(label)) require('process').emitWarning(`Label '${label}' already exists for console.time()`);
      else this.#timers.set(label, native.hrtime());
    }
    #elapsed(label, name, rest) {
      const start = this.#timers.get(label);
      if (start === undefined) {
        require('process').emitWarning(`No such label '${label}' for console.${name}()`);
        return;
      }
      const ms = (native.hrtime() - start) / 1e6;
      const text = ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${Number(ms.toFixed(3))}ms`;
      this.log('%s: %s', label, text, ...rest);
    }
    timeEnd(label = 'default') {
      this.#elapsed(`${label}`, 'timeEnd', []);
      this.#timers.delete(`${label}`);
    }
    timeLog(label = 'default', ...rest) { this.#elapsed(`${label}`, 'timeLog', rest); }
    group(...args) {
      if (args.length) this.log(...args);
      this.#indent += ' '.repeat(this.#step);
    }
    groupCollapsed(...args) { this.group(...args); }
    groupEnd() { this.#indent = this.#indent.slice(0, Math.max(0, this.#indent.length - this.#step)); }
    clear() {
      if (this.#out?.isTTY) this.#out.write('\u001b[1;1H\u001b[0J');
    }
    table(data, columns) {
      if (data === null || typeof data !== 'object') return this.log(data);
      const deep = (value) => inspect(value, { maxArrayLength: 3, breakLength: Infinity, depth: value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length > 2 ? -1 : 0 });
      const isMap = data instanceof Map, isSet = data instanceof Set;
      const rows = isMap ? [...data] : isSet ? [...data].map((value, index) => [index, value]) : Object.keys(data).map((key) => [key, data[key]]);
      const indexName = isMap || isSet ? '(iteration index)' : '(index)';
      if (isMap) {
        return this.#grid([indexName, 'Key', 'Values'], rows.map(([key, value], index) => [index, deep(key), deep(value)]));
      }
      const names = new Set(columns);
      let plain = false;
      const cells = rows.map(([key, value]) => {
        const row = { key, values: new Map(), own: '' };
        if (value === null || (typeof value !== 'object' && typeof value !== 'function')) {
          plain = true;
          row.own = deep(value);
        } else {
          for (const name of columns ?? Object.keys(value)) {
            if (!columns) names.add(name);
            if (Object.hasOwn(value, name)) row.values.set(name, deep(value[name]));
          }
        }
        return row;
      });
      const head = [indexName, ...names];
      if (plain) head.push('Values');
      this.#grid(head, cells.map((row) => {
        const line = [String(row.key), ...[...names].map((name) => row.values.get(name) ?? '')];
        if (plain) line.push(row.own);
        return line;
      }));
    }
    #grid(head, rows) {
      const widths = head.map((name, column) => Math.max(width(name), ...rows.map((row) => width(String(row[column])))) + 2);
      const padded = (text, room) => ` ${text}${' '.repeat(room - 1 - width(text))}`;
      const line = (cells) => `│${cells.map((cell, column) => padded(String(cell), widths[column])).join('│')}│`;
      const rule = (left, middle, right) => left + widths.map((room) => '─'.repeat(room)).join(middle) + right;
      this.log([rule('┌', '┬', '┐'), line(head), rule('├', '┼', '┤'), ...rows.map(line), rule('└', '┴', '┘')].join('\n'));
    }
  }

  const METHODS = ['log', 'warn', 'dir', 'time', 'timeEnd', 'timeLog', 'trace', 'assert', 'clear', 'count', 'countReset',
    'group', 'groupEnd', 'table', 'debug', 'info', 'dirxml', 'error', 'groupCollapsed'];

  // The streams are made when the first line is written.
  const process = () => require('process');
  const lazy = (name) => ({
    get isTTY() { return process()[name].isTTY; },
    write(text) { return process()[name].write(text); },
  });
  const global = new Console({ stdout: lazy('stdout'), stderr: lazy('stderr') });
  const plain = Object.create({});
  for (const name of METHODS) plain[name] = global[name];
  Object.defineProperty(plain, Symbol.toStringTag, { value: 'console', configurable: true });
  plain.Console = Console;
  module.exports = plain;
})
