// Node's error classes, messages in V8's words, and stack traces as Node prints them.
(function (exports, require, module, native) {
  'use strict';

  const WRAPPER = '(function (exports, require, module, __filename, __dirname) { ';
  // Functions that are the top level of a CommonJS module, and where errors were created.
  const topLevels = new WeakSet();
  const places = new WeakMap();
  const sources = new Map();
  // Files whose first line begins with the wrapper.
  const wrapped = new Set();
  let userPrepare;

  const hidden = (file) => typeof file === 'string' && file.startsWith('node:internal/');

  class CallSite {
    constructor(site) {
      this.file = site.getFileName();
      this.line = site.getLineNumber();
      this.column = site.getColumnNumber();
      this.name = site.getFunctionName() || null;
      this.fn = site.getFunction?.();
      // The engine counts the columns of the first line from zero.
      if (this.line === 1) this.column = Math.max(1, this.column + 1 - (wrapped.has(this.file) ? WRAPPER.length : 0));
    }
    getFileName() { return this.file; }
    getLineNumber() { return this.line; }
    getColumnNumber() { return this.column; }
    getFunctionName() { return this.name; }
    getFunction() { return undefined; }
    getMethodName() { return null; }
    getTypeName() { return 'Object'; }
    getThis() { return undefined; }
    getEvalOrigin() { return undefined; }
    getScriptNameOrSourceURL() { return this.file; }
    isNative() { return this.file == null; }
    isToplevel() { return true; }
    isConstructor() { return false; }
    isEval() { return false; }
    isAsync() { return false; }
    isPromiseAll() { return false; }
    toString() {
      const where = this.file == null ? '<anonymous>' : `${this.file}:${this.line}:${this.column}`;
      if (this.fn && topLevels.has(this.fn)) return `Object.<anonymous> (${where})`;
      if (!this.name || this.name === '<eval>' || this.name === '<anonymous>') return where;
      return `${this.name} (${where})`;
    }
  }

  function header(error) {
    try {
      return Error.prototype.toString.call(error);
    } catch {
      return 'Error';
    }
  }

  function prepare(error, rawSites) {
    const sites = [];
    for (const raw of rawSites) {
      const site = new CallSite(raw);
      // A native function has no place to show, except that V8 names it where it was called by a script.
      if (hidden(site.file)) continue;
      if (site.file == null && sites.length === 0) continue;
      sites.push(site);
    }
    while (sites.length && sites[sites.length - 1].file == null) sites.pop();
    const first = sites.find((site) => site.file != null);
    if (first) places.set(error, first);
    try {
      if (Object.prototype.hasOwnProperty.call(error, 'message')) translate(error, first);
    } catch {
      // The message stays the engine's.
    }
    if (typeof userPrepare === 'function') return userPrepare.call(Error, error, sites);
    const lines = sites.map((site) => `\n    at ${site}`);
    return header(error) + lines.join('');
  }

  function lineOf(place) {
    let source = sources.get(place.file);
    if (source === undefined) {
      const path = require('_esm').pathOf(place.file);
      const fd = path ? native.open(path, 0, 0) : -1;
      if (fd < 0) return undefined;
      const bytes = native.readRest(fd);
      native.close(fd);
      if (typeof bytes === 'number') return undefined;
      source = native.decodeUtf8(bytes);
    }
    return source.split('\n')[place.line - 1];
  }

  // The expression that ends before, or begins at, a place: what V8 would name in its message.
  function calledText(place) {
    const line = place && lineOf(place);
    if (line === undefined) return undefined;
    const rest = line.slice(0, place.column - 1);
    const after = line.slice(place.column - 1);
    let text = /^(?:new\s+)?((?:[\w$]+|this)(?:\?*\.[\w$#]+|\[[^[\]]*\])*)\s*\(/.exec(after)?.[1];
    const before = /((?:[\w$]+|this)(?:\?*\.[\w$#]+|\[[^[\]]*\]|\([^()]*\))*)$/.exec(rest)?.[1];
    if (text && /\.$/.test(rest)) {
      const owner = /((?:[\w$]+|this)(?:\?*\.[\w$#]+|\[[^[\]]*\]|\([^()]*\))*)\.$/.exec(rest)?.[1];
      text = owner ? `${owner}.${text}` : undefined;
    } else if (!text && /^[.([]/.test(after)) {
      const member = /^((?:\.[\w$#]+|\[[^[\]]*\])*)\s*\(/.exec(after);
      if (before && member) text = before + member[1];
    }
    return text?.replace(/\([^()]*\)/g, '(...)');
  }

  const PLAIN = {
    'invalid array length': 'Invalid array length',
    'invalid string length': 'Invalid string length',
    'toString() radix argument must be between 2 and 36': 'toString() radix argument must be between 2 and 36',
    'Date value is NaN': 'Invalid time value',
    'cannot convert symbol to string': 'Cannot convert a Symbol value to a string',
    'cannot convert symbol to number': 'Cannot convert a Symbol value to a number',
    'BigInt are forbidden in JSON.stringify': 'Do not know how to serialize a BigInt',
    'cannot convert BigInt to number': 'Cannot mix BigInt and other types, use explicit conversions',
    'invalid array buffer length': 'Array buffer allocation failed',
    'empty array': 'Reduce of empty array with no initial value',
    'cannot convert to object': 'Cannot convert undefined or null to object',
    'null or undefined are forbidden': 'Cannot convert undefined or null to object',
    "invalid 'instanceof' right operand": "Right-hand side of 'instanceof' is not callable",
    'resolving function already set': 'Promise executor has already been invoked with non-undefined arguments',
    'bad normalization form': 'The normalization form should be one of NFC, NFD, NFKC, NFKD.',
    'invalid normalization form': 'The normalization form should be one of NFC, NFD, NFKC, NFKD.',
    'malformed URI': 'URI malformed',
    'expecting hex digit': 'URI malformed',
    'expecting %': 'URI malformed',
    'unexpected end of string': 'Invalid or unexpected token',
    'unexpected character': 'Invalid or unexpected token',
    'return not in a function': 'Illegal return statement',
    'break must be inside loop or switch': 'Illegal break statement',
    'this is not initialized':
      "Must call super constructor in derived class before accessing 'this' or returning from derived constructor",
    'value has no property': 'Cannot convert undefined or null to object',
    'proxy: bad prototype': "'getPrototypeOf' on proxy: trap returned neither object nor null",
  };

  function translate(error, place) {
    const name = error.name;
    if (name === 'Error') return;
    const said = error.message;
    const words = v8Words(name, said, place);
    if (words !== undefined && words !== said) {
      Object.defineProperty(error, 'message', { value: words, writable: true, configurable: true, enumerable: false });
    }
  }

  function v8Words(name, said, place) {
    if (Object.hasOwn(PLAIN, said)) return PLAIN[said];
    let match;
    if (name === 'TypeError') {
      if ((match = /^cannot read property '(.*)' of (undefined|null)$/s.exec(said))) {
        return `Cannot read properties of ${match[2]} (reading '${match[1]}')`;
      }
      if ((match = /^cannot set property '(.*)' of (undefined|null)$/s.exec(said))) {
        return `Cannot set properties of ${match[2]} (setting '${match[1]}')`;
      }
      if (said === 'not a function' || (match = /^(.*) is not a function$/s.exec(said))) {
        const text = calledText(place);
        if (text) return `${text} is not a function`;
        return match ? said : 'value is not a function';
      }
      if (said === 'not a constructor' || (match = /^(.*) is not a constructor$/s.exec(said))) {
        const text = calledText(place);
        if (text) return `${text} is not a constructor`;
        return match ? said : 'value is not a constructor';
      }
      if (said === 'value is not iterable') return 'object is not iterable';
      if ((match = /^'(.*)' is read-only$/s.exec(said))) {
        return assigned(match[1], place);
      }
      if (said === 'object is not extensible') {
        const name = place && /^[\w$.]+\.([\w$]+)\s*=/.exec(lineOf(place)?.slice(place.column - 1) ?? '')?.[1];
        return `Cannot add property${name ? ` ${name}` : ''}, object is not extensible`;
      }
      if (said === 'class constructors must be invoked with \'new\'') {
        const text = calledText(place);
        return `Class constructor ${text ?? ''} cannot be invoked without 'new'`.replace('  ', ' ');
      }
      if (said === "invalid 'in' operand") return "Cannot use 'in' operator to search for a key in a value that is not an object";
    } else if (name === 'ReferenceError') {
      if ((match = /^(.*) is not initialized$/s.exec(said))) {
        return match[1] === 'this' ? PLAIN['this is not initialized'] : `Cannot access '${match[1]}' before initialization`;
      }
    } else if (name === 'SyntaxError') {
      if (/^invalid redefinition of /.test(said)) {
        const word = place && /^[\w$]+/.exec(lineOf(place)?.slice(place.column - 1) ?? '')?.[0];
        return word ? `Identifier '${word}' has already been declared` : said;
      }
      if ((match = /^unexpected token(?: in expression)?: '(.*)'$/s.exec(said))) {
        return match[1] === '' ? 'Unexpected end of input' : `Unexpected token '${match[1]}'`;
      }
    } else if (name === 'RangeError') {
      if (said === 'invalid repeat count') return 'Invalid count value: -1';
      if (said === 'invalid number of digits') return 'toFixed() digits argument must be between 0 and 100';
      if (said === 'invalid code point') return 'Invalid code point';
    }
    return undefined;
  }

  function assigned(name, place) {
    const rest = place && lineOf(place)?.slice(place.column - 1);
    if (rest === undefined || !rest.startsWith(name) && !/^[\w$]+\s*[.[]/.test(rest)) return 'Assignment to constant variable.';
    return rest.startsWith(name) ? 'Assignment to constant variable.' : `Cannot assign to read only property '${name}' of object '#<Object>'`;
  }

  exports.install = () => {
    Error.prepareStackTrace = prepare;
    Object.defineProperty(Error, 'prepareStackTrace', {
      configurable: true,
      enumerable: false,
      get: () => userPrepare,
      set: (value) => { userPrepare = value; },
    });
  };

  exports.sources = sources;
  exports.wrapped = wrapped;
  exports.WRAPPER = WRAPPER;
  exports.topLevels = topLevels;
  exports.placeOf = (error) => (typeof error === 'object' && error !== null ? places.get(error) : undefined);
  exports.lineOf = lineOf;

  // Errors of the system: names, Linux's numbers, and libuv's words.
  const ERRNOS = [
    ['EPERM', 1, 'operation not permitted'], ['ENOENT', 2, 'no such file or directory'],
    ['ESRCH', 3, 'no such process'], ['EINTR', 4, 'interrupted system call'], ['EIO', 5, 'i/o error'],
    ['ENXIO', 6, 'no such device or address'], ['E2BIG', 7, 'argument list too long'],
    ['ENOEXEC', 8, 'exec format error'], ['EBADF', 9, 'bad file descriptor'],
    ['ECHILD', 10, 'no child processes'], ['EAGAIN', 11, 'resource temporarily unavailable'],
    ['ENOMEM', 12, 'not enough memory'], ['EACCES', 13, 'permission denied'],
    ['EFAULT', 14, 'bad address in system call argument'], ['EBUSY', 16, 'resource busy or locked'],
    ['EEXIST', 17, 'file already exists'], ['EXDEV', 18, 'cross-device link not permitted'],
    ['ENODEV', 19, 'no such device'], ['ENOTDIR', 20, 'not a directory'],
    ['EISDIR', 21, 'illegal operation on a directory'], ['EINVAL', 22, 'invalid argument'],
    ['ENFILE', 23, 'file table overflow'], ['EMFILE', 24, 'too many open files'],
    ['ENOTTY', 25, 'inappropriate ioctl for device'], ['ETXTBSY', 26, 'text file is busy'],
    ['EFBIG', 27, 'file too large'], ['ENOSPC', 28, 'no space left on device'], ['ESPIPE', 29, 'invalid seek'],
    ['EROFS', 30, 'read-only file system'], ['EMLINK', 31, 'too many links'], ['EPIPE', 32, 'broken pipe'],
    ['ERANGE', 34, 'result too large'], ['ENAMETOOLONG', 36, 'name too long'],
    ['ENOSYS', 38, 'function not implemented'], ['ENOTEMPTY', 39, 'directory not empty'],
    ['ELOOP', 40, 'too many symbolic links encountered'], ['EOVERFLOW', 75, 'value too large for defined data type'],
    ['ENOTSOCK', 88, 'socket operation on non-socket'], ['EDESTADDRREQ', 89, 'destination address required'],
    ['EMSGSIZE', 90, 'message too long'], ['EPROTOTYPE', 91, 'protocol wrong type for socket'],
    ['EPROTONOSUPPORT', 93, 'protocol not supported'], ['ENOTSUP', 95, 'operation not supported on socket'],
    ['EAFNOSUPPORT', 97, 'address family not supported'], ['EADDRINUSE', 98, 'address already in use'],
    ['EADDRNOTAVAIL', 99, 'address not available'], ['ENETUNREACH', 101, 'network is unreachable'],
    ['ECONNABORTED', 103, 'software caused connection abort'], ['ECONNRESET', 104, 'connection reset by peer'],
    ['ENOBUFS', 105, 'no buffer space available'], ['EISCONN', 106, 'socket is already connected'],
    ['ENOTCONN', 107, 'socket is not connected'], ['ETIMEDOUT', 110, 'connection timed out'],
    ['ECONNREFUSED', 111, 'connection refused'], ['EHOSTUNREACH', 113, 'host is unreachable'],
    ['EALREADY', 114, 'connection already in progress'], ['EDQUOT', 122, 'disk quota exceeded'],
  ];
  const byNumber = new Map(ERRNOS.map(([name, number, text]) => [number, [name, text]]));
  exports.ERRNOS = ERRNOS;
  exports.errnoName = (number) => byNumber.get(Math.abs(number))?.[0] ?? `Unknown system error ${number}`;

  // The error of a failed call, as libuv has it: number is negative.
  exports.system = (number, syscall, path, dest) => {
    const [code, text] = byNumber.get(-number) ?? [`Unknown system error ${number}`, ''];
    let message = `${code}: ${text}, ${syscall}`;
    if (path !== undefined) message += ` '${path}'`;
    if (dest !== undefined) message += ` -> '${dest}'`;
    const error = new Error(message);
    error.errno = number;
    error.code = code;
    error.syscall = syscall;
    if (path !== undefined) error.path = path;
    if (dest !== undefined) error.dest = dest;
    return error;
  };

  // The error of a failed call on a socket.
  exports.network = (number, syscall, address, port) => {
    const code = typeof number === 'number' ? exports.errnoName(number) : number;
    const where = address === undefined ? '' : ` ${address}${port > 0 ? `:${port}` : ''}`;
    const error = new Error(`${syscall} ${code}${where}`);
    if (typeof number === 'number') error.errno = number;
    error.code = code;
    error.syscall = syscall;
    if (address !== undefined) error.address = address;
    if (port > 0) error.port = port;
    return error;
  };

  // Node's own errors have a code, which is in the first line of the stack too.
  function coded(Base, code, message) {
    const error = new Base(message);
    Object.defineProperty(error, 'code', { value: code, writable: true, enumerable: true, configurable: true });
    Object.defineProperty(error, 'stack', {
      value: String(error.stack).replace(`${error.name}: `, `${error.name} [${code}]: `),
      writable: true, configurable: true, enumerable: false,
    });
    Object.defineProperty(error, 'toString', {
      value() { return `${this.name} [${code}]: ${this.message}`; },
      writable: true, configurable: true, enumerable: false,
    });
    return error;
  }
  exports.coded = coded;

  const PRIMITIVES = ['string', 'function', 'number', 'object', 'Function', 'Object', 'boolean', 'bigint', 'symbol'];

  function list(words, last = 'or') {
    if (words.length < 2) return words.join('');
    if (words.length === 2) return `${words[0]} ${last} ${words[1]}`;
    return `${words.slice(0, -1).join(', ')}, ${last} ${words[words.length - 1]}`;
  }

  function received(value) {
    if (value == null) return ` Received ${value}`;
    if (typeof value === 'function') return ` Received function ${value.name}`;
    const { inspect } = require('_inspect');
    if (typeof value === 'object') {
      if (value.constructor?.name) return ` Received an instance of ${value.constructor.name}`;
      return ` Received ${inspect(value, { depth: -1 })}`;
    }
    let text = inspect(value, { colors: false });
    if (text.length > 28) text = `${text.slice(0, 25)}...`;
    return ` Received type ${typeof value} (${text})`;
  }

  exports.invalidArgType = (name, expected, actual) => {
    const types = [], instances = [], other = [];
    for (const one of [].concat(expected)) {
      if (PRIMITIVES.includes(one)) types.push(one.toLowerCase());
      else if (/^[A-Z][A-Za-z0-9]*$/.test(one)) instances.push(one);
      else other.push(one);
    }
    if (instances.length && types.includes('object')) {
      types.splice(types.indexOf('object'), 1);
      instances.push('Object');
    }
    let message = 'The ';
    message += name.endsWith(' argument') ? `${name} ` : `"${name}" ${name.includes('.') ? 'property' : 'argument'} `;
    message += 'must be ';
    const parts = [];
    if (types.length) parts.push(`${types.length > 1 ? 'one of type' : 'of type'} ${list(types)}`);
    if (instances.length) parts.push(`an instance of ${list(instances)}`);
    if (other.length) parts.push(other.length > 1 ? `one of ${list(other)}` : /[A-Z]/.test(other[0]) ? `an ${other[0]}` : other[0]);
    message += `${parts.join(' or ')}.${received(actual)}`;
    return coded(TypeError, 'ERR_INVALID_ARG_TYPE', message);
  };

  exports.invalidArgValue = (name, value, reason = 'is invalid') => {
    const { inspect } = require('_inspect');
    let text = inspect(value);
    if (text.length > 128) text = `${text.slice(0, 128)}...`;
    const what = name.includes('.') ? 'property' : 'argument';
    return coded(TypeError, 'ERR_INVALID_ARG_VALUE', `The ${what} '${name}' ${reason}. Received ${text}`);
  };

  function grouped(value) {
    const text = String(value);
    const [, sign, digits, rest] = /^(-?)(\d+)(.*)$/s.exec(text) ?? [null, '', text, ''];
    return Math.abs(Number(value)) > 2 ** 32 ? sign + digits.replace(/\B(?=(\d{3})+$)/g, '_') + rest : text;
  }

  exports.outOfRange = (name, range, value) => {
    const { inspect } = require('_inspect');
    const text = typeof value === 'number' && Number.isInteger(value) ? grouped(value)
      : typeof value === 'bigint' ? `${grouped(value)}n` : inspect(value);
    return coded(RangeError, 'ERR_OUT_OF_RANGE',
      `The value of "${name}" is out of range. It must be ${range}. Received ${text}`);
  };

  // What does not work here is refused by name.
  exports.unsupported = (what, why = 'is not supported in this sandbox') =>
    coded(Error, 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM', `${what} ${why}`);

  exports.validate = {
    string(value, name) {
      if (typeof value !== 'string') throw exports.invalidArgType(name, 'string', value);
    },
    function(value, name) {
      if (typeof value !== 'function') throw exports.invalidArgType(name, 'function', value);
    },
    object(value, name) {
      if (value === null || typeof value !== 'object') throw exports.invalidArgType(name, 'object', value);
    },
    boolean(value, name) {
      if (typeof value !== 'boolean') throw exports.invalidArgType(name, 'boolean', value);
    },
    integer(value, name, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER) {
      if (typeof value !== 'number') throw exports.invalidArgType(name, 'number', value);
      if (!Number.isInteger(value)) throw exports.outOfRange(name, 'an integer', value);
      if (value < min || value > max) throw exports.outOfRange(name, `>= ${min} && <= ${max}`, value);
    },
    number(value, name) {
      if (typeof value !== 'number') throw exports.invalidArgType(name, 'number', value);
    },
  };

  class AbortError extends Error {
    constructor(message = 'The operation was aborted', options) {
      super(message, options);
      this.code = 'ABORT_ERR';
      this.name = 'AbortError';
    }
  }
  exports.AbortError = AbortError;
})
