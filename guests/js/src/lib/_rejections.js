// What nobody catches: exceptions and rejected promises, and how they are printed.
(function (exports, require, module, native) {
  'use strict';

  const pending = new Map();
  const warned = new Map();

  exports.track = (promise, reason, handled) => {
    if (!handled) {
      pending.set(promise, reason);
      return;
    }
    if (pending.delete(promise)) return;
    if (warned.delete(promise)) require('_loop').complete(() => require('process').emit('rejectionHandled', promise));
  };

  // Reports the promises that are still rejected after all microtasks. Says whether there were any.
  exports.check = () => {
    if (pending.size === 0) return false;
    const list = [...pending];
    pending.clear();
    const process = require('process');
    for (const [promise, reason] of list) {
      warned.set(promise, reason);
      const mode = process._rejections ?? 'throw';
      if (mode !== 'strict' && process.listenerCount('unhandledRejection')) {
        try {
          process.emit('unhandledRejection', reason, promise);
        } catch (error) {
          exports.uncaught(error, 'uncaughtException');
        }
        continue;
      }
      if (mode === 'none') continue;
      if (mode === 'warn') {
        process.emitWarning(`Unhandled promise rejection: ${String(reason?.message ?? reason)}`, 'UnhandledPromiseRejectionWarning');
        continue;
      }
      let error = reason;
      if (!(reason instanceof Error)) {
        const { inspect } = require('_inspect');
        const text = typeof reason === 'string' ? reason : inspect(reason);
        error = new Error(`This error originated either by throwing inside of an async function without a catch block, or by rejecting a promise which was not handled with .catch(). The promise rejected with the reason "${text}".`);
        Object.defineProperty(error, 'name', { value: 'UnhandledPromiseRejection', enumerable: false, configurable: true, writable: true });
        Object.defineProperty(error, 'stack', { value: `UnhandledPromiseRejection: ${error.message}`, configurable: true, writable: true });
        error.code = 'ERR_UNHANDLED_REJECTION';
      }
      exports.uncaught(error, 'unhandledRejection');
    }
    return true;
  };

  exports.uncaught = (error, origin) => {
    const process = require('process');
    process.emit('uncaughtExceptionMonitor', error, origin);
    if (process._capture) {
      process._capture(error);
      return;
    }
    if (process.listenerCount('uncaughtException')) {
      try {
        process.emit('uncaughtException', error, origin);
      } catch (again) {
        exports.print(again);
        leave(7);
      }
      return;
    }
    exports.print(error);
    leave(1);
  };

  function leave(code) {
    const process = require('process');
    process.exitCode = code;
    try {
      process._emitExit(code);
    } catch {
      // It could not say more than the first error did.
    }
    native.exit(process.exitCode ?? code);
  }

  exports.text = (error) => {
    const { inspect } = require('_inspect');
    const { placeOf, lineOf } = require('_errors');
    let text = '';
    const place = placeOf(error);
    const line = place && lineOf(place);
    if (place && line !== undefined) {
      let column = place.column - 1;
      // The engine notes where the error was created; it is the throw that is shown.
      const thrown = /\bthrow\b\s*(?=(?:new\s+)?[\w$.]*\(?)/.exec(line.slice(0, column));
      if (thrown && /^(?:new\s+)?[\w$.]*$/.test(line.slice(thrown.index + thrown[0].length, column).trim())) column = thrown.index;
      // V8 points at the property.
      const name = /^Cannot (?:read|set) properties of .* \((?:read|sett)ing '(.*)'\)$/s.exec(error?.message)?.[1];
      const property = name === undefined ? -1 : line.indexOf(`.${name}`, column);
      if (property >= 0) column = property + 1;
      text += `${place.file}:${place.line}\n${line}\n${line.slice(0, column).replace(/[^\t]/g, ' ')}^\n\n`;
    }
    if (error instanceof Error) {
      text += inspect(error);
      if (!/\n {4}at /.test(String(error.stack)) && /^\[[\s\S]*\]$/.test(text) && !place) text = text.slice(1, -1);
    } else {
      text += `Uncaught:\n${typeof error === 'string' ? `'${error}'` : inspect(error)}\n(Use \`node --trace-uncaught ...\` to show where the exception was thrown)`;
    }
    return text;
  };

  exports.print = (error) => {
    let text;
    try {
      text = exports.text(error);
    } catch {
      text = 'Uncaught exception';
    }
    native.writeText(2, `${text}\n\nNode.js ${require('process').version}\n`);
  };
})
