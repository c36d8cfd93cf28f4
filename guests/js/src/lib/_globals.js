// The globals of Node, each loaded when it is first used.
(function (exports, require, module, native) {
  'use strict';

  const LAZY = {
    Buffer: ['buffer'], URL: ['_url'], URLSearchParams: ['_url'], TextEncoder: ['_encoding'], TextDecoder: ['_encoding'],
    DOMException: ['_events'], Event: ['_events'], EventTarget: ['_events'], CustomEvent: ['_events'],
    AbortController: ['_events'], AbortSignal: ['_events'], MessageChannel: ['_events'], MessagePort: ['_events'], MessageEvent: ['_events'],
    BroadcastChannel: ['_events'], Blob: ['_blob'], File: ['_blob'], FormData: ['_fetch'], Headers: ['_fetch'], Request: ['_fetch'],
    Response: ['_fetch'], Performance: ['perf_hooks'], PerformanceEntry: ['perf_hooks'], PerformanceObserver: ['perf_hooks'],
    ReadableStream: ['stream/web'], WritableStream: ['stream/web'], TransformStream: ['stream/web'], TextDecoderStream: ['stream/web'],
    TextEncoderStream: ['stream/web'], CompressionStream: ['stream/web'], DecompressionStream: ['stream/web'],
    ByteLengthQueuingStrategy: ['stream/web'], CountQueuingStrategy: ['stream/web'], Intl: ['_intl'],
  };
  const ENUMERABLE = { performance: ['perf_hooks'], fetch: ['_fetch'], crypto: ['crypto', 'webcrypto'] };

  function lazy(name, [file, member = name], enumerable) {
    Object.defineProperty(globalThis, name, {
      configurable: true, enumerable,
      get() {
        const value = require(file)[member];
        Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable });
        return value;
      },
      set(value) { Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable }); },
    });
  }
  const define = (name, value, enumerable = true) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable });

  exports.install = () => {
    // The engine has some of them already: theirs is another order.
    for (const name of ['queueMicrotask', 'btoa', 'atob', 'performance', 'DOMException', 'navigator']) delete globalThis[name];
    define('global', globalThis);
    const { any } = Promise;
    Object.defineProperty(Promise, 'any', {
      writable: true, configurable: true, enumerable: false,
      value: function (list) {
        return any.call(this, list).then(undefined, (error) => {
          if (error instanceof AggregateError && error.message === '') {
            Object.defineProperty(error, 'message', { value: 'All promises were rejected', writable: true, configurable: true, enumerable: false });
          }
          throw error;
        });
      },
    });
    const timers = require('timers');
    for (const name of ['clearImmediate', 'setImmediate', 'clearInterval', 'clearTimeout', 'setInterval', 'setTimeout']) define(name, timers[name]);
    define('queueMicrotask', function queueMicrotask(callback) {
      require('_errors').validate.function(callback, 'callback');
      Promise.resolve().then(() => {
        try {
          callback();
        } catch (error) {
          require('_rejections').uncaught(error, 'uncaughtException');
        }
      });
    });
    define('structuredClone', function structuredClone(value, options) { return require('_clone').structuredClone(value, options); });
    define('atob', function atob(text) { return require('buffer').atob(text); });
    define('btoa', function btoa(text) { return require('buffer').btoa(text); });
    for (const name of Object.keys(ENUMERABLE)) lazy(name, ENUMERABLE[name], true);
    for (const name of Object.keys(LAZY)) lazy(name, LAZY[name], false);
    define('console', require('console'), false);
    define('process', require('process'), false);
    Object.defineProperty(globalThis, Symbol.toStringTag, { value: 'global', writable: false, configurable: true, enumerable: false });
    Object.defineProperty(Math, 'random', { value: native.random, writable: true, configurable: true, enumerable: false });
    require('_intl').install();
  };
})
