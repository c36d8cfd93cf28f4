// util: what does not belong elsewhere.
(function (exports, require, module, native) {
  'use strict';

  const { inspect, format, formatWithOptions, stripColors, C, typedName } = require('_inspect');
  const { validate, invalidArgType, invalidArgValue, coded, errnoName, ERRNOS } = require('_errors');

  const custom = Symbol.for('nodejs.util.promisify.custom');

  function promisify(original) {
    validate.function(original, 'original');
    if (original[custom]) {
      const own = original[custom];
      validate.function(own, 'util.promisify.custom');
      return Object.defineProperty(own, custom, { value: own, enumerable: false, writable: false, configurable: true });
    }
    const names = original[promisify.names];
    function promised(...args) {
      return new Promise((resolve, reject) => {
        Reflect.apply(original, this, [...args, (error, ...values) => {
          if (error) return reject(error);
          if (names && values.length > 1) return resolve(Object.fromEntries(names.map((name, index) => [name, values[index]])));
          return resolve(values[0]);
        }]);
      });
    }
    Object.setPrototypeOf(promised, Object.getPrototypeOf(original));
    Object.defineProperty(promised, custom, { value: promised, enumerable: false, writable: false, configurable: true });
    return Object.defineProperties(promised, Object.getOwnPropertyDescriptors(original));
  }
  promisify.custom = custom;
  promisify.names = Symbol('customPromisifyArgs');

  function callbackify(original) {
    validate.function(original, 'original');
    function called(...args) {
      const callback = args.pop();
      validate.function(callback, 'last argument');
      const { nextTick } = require('process');
      Reflect.apply(original, this, args).then(
        (value) => nextTick(callback, null, value),
        (reason) => {
          if (!reason) {
            const error = coded(Error, 'ERR_FALSY_VALUE_REJECTION', 'Promise was rejected with falsy value');
            error.reason = reason;
            reason = error;
          }
          nextTick(callback, reason);
        },
      );
    }
    return Object.defineProperty(called, 'name', { value: `${original.name}Callbackified`, configurable: true });
  }

  function inherits(constructor, parent) {
    validate.function(constructor, 'ctor');
    validate.function(parent, 'superCtor');
    Object.defineProperty(constructor, 'super_', { value: parent, writable: true, configurable: true });
    Object.setPrototypeOf(constructor.prototype, parent.prototype);
  }

  const warnedCodes = new Set();
  function deprecate(fn, message, code) {
    let warned = false;
    function deprecated(...args) {
      const process = require('process');
      if (!warned && !process.noDeprecation) {
        warned = true;
        if (code === undefined || !warnedCodes.has(code)) {
          if (code !== undefined) warnedCodes.add(code);
          process.emitWarning(message, 'DeprecationWarning', code);
        }
      }
      return new.target ? Reflect.construct(fn, args, new.target) : Reflect.apply(fn, this, args);
    }
    Object.setPrototypeOf(deprecated, fn);
    if (fn.prototype) deprecated.prototype = fn.prototype;
    return deprecated;
  }

  function debuglog(set, callback) {
    set = String(set).toUpperCase();
    const enabled = () => (require('process').env.NODE_DEBUG ?? '').split(',').some((one) => new RegExp(`^${one.trim().replace(/[^\w*]/g, '\\$&').replaceAll('*', '.*').toUpperCase()}$`).test(set) && one !== '');
    const log = (...args) => {
      if (enabled()) native.writeText(2, `${set} ${native.pid()}: ${format(...args)}\n`);
    };
    Object.defineProperty(log, 'enabled', { get: enabled });
    callback?.(log);
    return log;
  }

  const is = (...classes) => (value) => classes.includes(native.classOf(value)) && value !== null && typeof value === 'object';
  const kindOf = (value) => Object.prototype.toString.call(value).slice(8, -1);
  const types = {
    isPromise: is(C.Promise), isRegExp: is(C.RegExp), isDate: is(C.Date), isNativeError: is(C.Error), isMap: is(C.Map), isSet: is(C.Set),
    isWeakMap: is(C.WeakMap), isWeakSet: is(C.WeakSet), isArrayBuffer: is(C.ArrayBuffer), isSharedArrayBuffer: is(C.SharedArrayBuffer),
    isAnyArrayBuffer: is(C.ArrayBuffer, C.SharedArrayBuffer), isDataView: is(C.DataView), isMapIterator: is(C.MapIterator),
    isSetIterator: is(C.SetIterator), isGeneratorObject: is(C.Generator, C.AsyncGenerator), isArgumentsObject: is(C.Arguments, C.MappedArguments),
    isNumberObject: is(C.Number), isStringObject: is(C.String), isBooleanObject: is(C.Boolean), isBigIntObject: is(C.BigInt), isSymbolObject: is(C.Symbol),
    isBoxedPrimitive: is(C.Number, C.String, C.Boolean, C.BigInt, C.Symbol), isArrayBufferView: ArrayBuffer.isView,
    isTypedArray: (value) => typedName(value) !== undefined, isProxy: (value) => native.proxy(value) !== undefined,
    isAsyncFunction: (value) => typeof value === 'function' && /^Async/.test(kindOf(value)),
    isGeneratorFunction: (value) => typeof value === 'function' && /Generator/.test(kindOf(value)),
    isExternal: () => false, isModuleNamespaceObject: (value) => kindOf(value) === 'Module' && Object.getPrototypeOf(value) === null,
    isKeyObject: () => false, isCryptoKey: () => false,
  };
  for (const name of ['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array']) {
    types[`is${name}`] = (value) => typedName(value) === name;
  }

  function styleText(format, text, { validateStream = true, stream } = {}) {
    validate.string(text, 'text');
    for (const one of [].concat(format)) {
      const codes = inspect.colors[one];
      if (!codes) throw invalidArgValue('format', one, `must be one of: ${Object.keys(inspect.colors).map((name) => `'${name}'`).join(', ')}`);
    }
    if (validateStream && !(stream ?? require('process').stdout).isTTY) return text;
    return [].concat(format).reduceRight((inner, one) => `\u001b[${inspect.colors[one][0]}m${inner}\u001b[${inspect.colors[one][1]}m`, text);
  }

  function parseEnv(text) {
    const values = {};
    const line = /^\s*(?:export\s+)?([\w.-]+)\s*=[ \t]*(?:"((?:\\"|[^"])*)"|'([^']*)'|`([^`]*)`|([^\n#]*))?.*$/gm;
    for (const [, name, double, single, back, bare] of text.replace(/\r\n?/g, '\n').matchAll(line)) {
      values[name] = double !== undefined ? double.replaceAll('\\n', '\n') : single ?? back ?? (bare ?? '').trim();
    }
    return values;
  }

  exports.promisify = promisify;
  exports.callbackify = callbackify;
  exports.inherits = inherits;
  exports.deprecate = deprecate;
  exports.debuglog = debuglog;
  exports.debug = debuglog;
  exports.inspect = inspect;
  exports.format = format;
  exports.formatWithOptions = (options, ...args) => {
    validate.object(options, 'inspectOptions');
    return formatWithOptions(options, ...args);
  };
  exports.stripVTControlCharacters = (text) => {
    validate.string(text, 'str');
    return stripColors(text);
  };
  exports.styleText = styleText;
  exports.parseEnv = parseEnv;
  exports.types = types;
  exports.isDeepStrictEqual = (one, other) => require('_equal').equal(one, other, true);
  exports.toUSVString = (text) => `${text}`.toWellFormed();
  exports.getSystemErrorName = (number) => errnoName(number);
  exports.getSystemErrorMap = () => new Map(ERRNOS.map(([name, number, text]) => [-number, [name, text]]));
  exports.aborted = (signal) => new Promise((resolve) => { if (signal.aborted) resolve(); else signal.addEventListener('abort', () => resolve(), { once: true }); });
  exports.parseArgs = (config) => require('_parse_args').parseArgs(config);
  Object.defineProperty(exports, 'TextEncoder', { enumerable: true, configurable: true, get: () => require('_encoding').TextEncoder });
  Object.defineProperty(exports, 'TextDecoder', { enumerable: true, configurable: true, get: () => require('_encoding').TextDecoder });
  class MIMEType {
    constructor(text) {
      const match = /^\s*([^/;\s]+)\/([^;\s]+)\s*(;.*)?$/.exec(`${text}`);
      if (!match) throw coded(TypeError, 'ERR_INVALID_MIME_SYNTAX', `The MIME syntax for a type in ${inspect(text)} is invalid at 0`);
      this.type = match[1].toLowerCase();
      this.subtype = match[2].toLowerCase();
      this.params = new Map([...(match[3] ?? '').matchAll(/;\s*([^=;\s]+)=(?:"([^"]*)"|([^;\s]*))/g)].map((one) => [one[1].toLowerCase(), one[2] ?? one[3]]));
    }
    get essence() { return `${this.type}/${this.subtype}`; }
    toString() { return this.essence + [...this.params].map(([key, value]) => `;${key}=${value}`).join(''); }
  }
  exports.MIMEType = MIMEType;
  exports.isArray = Array.isArray;
  exports.isBoolean = (value) => typeof value === 'boolean';
  exports.isNull = (value) => value === null;
  exports.isNullOrUndefined = (value) => value === null || value === undefined;
  exports.isNumber = (value) => typeof value === 'number';
  exports.isString = (value) => typeof value === 'string';
  exports.isSymbol = (value) => typeof value === 'symbol';
  exports.isUndefined = (value) => value === undefined;
  exports.isRegExp = types.isRegExp;
  exports.isObject = (value) => value !== null && typeof value === 'object';
  exports.isDate = types.isDate;
  exports.isError = (value) => types.isNativeError(value) || value instanceof Error;
  exports.isFunction = (value) => typeof value === 'function';
  exports.isPrimitive = (value) => value === null || (typeof value !== 'object' && typeof value !== 'function');
  exports.isBuffer = (value) => require('buffer').Buffer.isBuffer(value);
  exports._extend = (target, source) => (source === null || typeof source !== 'object' ? target : Object.assign(target, source));
  exports.log = (...args) => console.log(new Date().toTimeString().slice(0, 8), '-', format(...args));
  void invalidArgType;
})
