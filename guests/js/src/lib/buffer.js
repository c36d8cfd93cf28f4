// Buffer: bytes with text encodings.
(function (exports, require, module, native) {
  'use strict';

  const { validate, invalidArgType, invalidArgValue, outOfRange, coded } = require('_errors');
  const custom = Symbol.for('nodejs.util.inspect.custom');
  const MOST = 2 ** 32;
  const bytesOf = (value) => new Uint8Array(value.buffer, value.byteOffset, value.byteLength);

  const ENCODINGS = {
    utf8: 'utf8', 'utf-8': 'utf8', hex: 'hex', base64: 'base64', base64url: 'base64url', ascii: 'ascii', latin1: 'latin1',
    binary: 'latin1', ucs2: 'utf16le', 'ucs-2': 'utf16le', utf16le: 'utf16le', 'utf-16le': 'utf16le',
  };
  const normal = (encoding) => (encoding === undefined || encoding === null || encoding === '' ? 'utf8' : ENCODINGS[String(encoding).toLowerCase()]);
  exports.normalEncoding = normal;

  function encodingOf(encoding) {
    const name = normal(encoding);
    if (name === undefined) throw coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
    return name;
  }

  function encode(text, encoding) {
    switch (encoding) {
      case 'utf8': return native.encodeUtf8(text);
      case 'hex': return native.encodeHex(text);
      case 'base64': case 'base64url': return native.encodeBase64(text);
      case 'utf16le': return native.encodeUtf16(text);
      default: return native.encodeLatin1(text);
    }
  }

  function decode(bytes, encoding) {
    if (bytes.length === 0) return '';
    switch (encoding) {
      case 'utf8': return native.decodeUtf8(bytes);
      case 'hex': return native.decodeHex(bytes);
      case 'base64': return native.decodeBase64(bytes, false);
      case 'base64url': return native.decodeBase64(bytes, true);
      case 'utf16le': return native.decodeUtf16(bytes);
      case 'ascii': return native.decodeLatin1(bytes.map((byte) => byte & 127));
      default: return native.decodeLatin1(bytes);
    }
  }

  // A class, so that views of it are Buffers too; it may be called without `new`, as ever.
  class FastBuffer extends Uint8Array {
    static get [Symbol.species]() { return FastBuffer; }
  }

  function Buffer(value, encodingOrOffset, length) {
    if (typeof value === 'number') {
      if (typeof encodingOrOffset === 'string') throw invalidArgType('string', 'string', value);
      return Buffer.alloc(value);
    }
    return Buffer.from(value, encodingOrOffset, length);
  }
  Object.setPrototypeOf(Buffer, Uint8Array);
  Buffer.prototype = FastBuffer.prototype;
  Object.defineProperty(FastBuffer.prototype, 'constructor', { value: Buffer, writable: true, configurable: true, enumerable: false });
  Object.defineProperty(Buffer, Symbol.species, { configurable: true, get: () => FastBuffer });

  const adopt = (bytes) => Object.setPrototypeOf(bytes, Buffer.prototype);
  exports.adopt = adopt;

  Buffer.poolSize = 8192;
  Buffer.from = function from(value, encodingOrOffset, length) {
    if (typeof value === 'string') return adopt(encode(value, encodingOf(encodingOrOffset)));
    if (value !== null && typeof value === 'object') {
      if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) {
        const offset = encodingOrOffset === undefined ? 0 : Math.trunc(Number(encodingOrOffset)) || 0;
        if (offset < 0 || offset > value.byteLength) throw coded(RangeError, 'ERR_BUFFER_OUT_OF_BOUNDS', '"offset" is outside of buffer bounds');
        const left = value.byteLength - offset;
        if (length === undefined) length = left;
        else {
          length = Math.max(0, Math.trunc(Number(length)) || 0);
          if (length > left) throw coded(RangeError, 'ERR_BUFFER_OUT_OF_BOUNDS', '"length" is outside of buffer bounds');
        }
        return new FastBuffer(value, offset, length);
      }
      if (ArrayBuffer.isView(value)) {
        const copy = new FastBuffer(value.length ?? value.byteLength);
        if (value instanceof Uint8Array) native.putBytes(copy, value);
        else for (let index = 0; index < copy.length; index++) copy[index] = value[index];
        return copy;
      }
      const plain = value.valueOf?.();
      if (plain != null && plain !== value && (typeof plain === 'string' || typeof plain === 'object')) return Buffer.from(plain, encodingOrOffset, length);
      if (value.type === 'Buffer' && Array.isArray(value.data)) return Buffer.from(value.data);
      if (value.length !== undefined || Array.isArray(value)) {
        if (typeof value.length !== 'number') return new FastBuffer(0);
        const copy = new FastBuffer(Math.max(0, value.length));
        for (let index = 0; index < copy.length; index++) copy[index] = value[index];
        return copy;
      }
      const primitive = value[Symbol.toPrimitive]?.('string');
      if (typeof primitive === 'string') return Buffer.from(primitive, encodingOrOffset);
    }
    throw invalidArgType('first argument', ['string', 'Buffer', 'ArrayBuffer', 'Array', 'Array-like Object'], value);
  };
  Buffer.of = (...bytes) => Buffer.from(bytes);
  function size(value) {
    validate.number(value, 'size');
    if (!(value >= 0 && value <= MOST)) throw outOfRange('size', `>= 0 && <= ${MOST}`, value);
    return value;
  }
  Buffer.alloc = function alloc(length, fill, encoding) {
    const buffer = new FastBuffer(size(length));
    return fill !== undefined && fill !== 0 && length > 0 ? buffer.fill(fill, encoding) : buffer;
  };
  Buffer.allocUnsafe = (length) => new FastBuffer(size(length));
  Buffer.allocUnsafeSlow = Buffer.allocUnsafe;
  Buffer.isBuffer = (value) => value instanceof Buffer;
  Buffer.isEncoding = (encoding) => typeof encoding === 'string' && encoding.length !== 0 && normal(encoding) !== undefined;
  Buffer.byteLength = function byteLength(value, encoding) {
    if (typeof value !== 'string') {
      if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return value.byteLength;
      throw invalidArgType('string', ['string', 'Buffer', 'ArrayBuffer'], value);
    }
    switch (normal(encoding) ?? 'utf8') {
      case 'utf8': return native.utf8Length(value);
      case 'utf16le': return value.length * 2;
      case 'hex': return value.length >>> 1;
      case 'base64': case 'base64url': return (value.replace(/=+$/, '').length * 3) >>> 2;
      default: return value.length;
    }
  };
  Buffer.compare = function compare(one, other) {
    if (!(one instanceof Uint8Array)) throw invalidArgType('buf1', ['Buffer', 'Uint8Array'], one);
    if (!(other instanceof Uint8Array)) throw invalidArgType('buf2', ['Buffer', 'Uint8Array'], other);
    return native.compareBytes(one, other);
  };
  Buffer.concat = function concat(list, length) {
    if (!Array.isArray(list)) throw invalidArgType('list', 'Array', list);
    if (length === undefined) length = list.reduce((sum, one) => sum + one.length, 0);
    else validate.integer(length, 'length', 0, MOST);
    const out = Buffer.alloc(length);
    let at = 0;
    list.forEach((one, index) => {
      if (!(one instanceof Uint8Array)) throw invalidArgType(`list[${index}]`, ['Buffer', 'Uint8Array'], one);
      if (at < length) at += native.putBytes(out.subarray(at), one);
    });
    return out;
  };
  Buffer.copyBytesFrom = (view, offset = 0, length = view.length - offset) => Buffer.from(bytesOf(view.slice(offset, offset + length)));

  const proto = Buffer.prototype;
  const method = (name, value) => Object.defineProperty(proto, name, { value, writable: true, configurable: true, enumerable: true });
  Object.defineProperty(proto, 'parent', { enumerable: true, get() { return this instanceof Buffer ? this.buffer : undefined; } });
  Object.defineProperty(proto, 'offset', { enumerable: true, get() { return this instanceof Buffer ? this.byteOffset : undefined; } });

  const bound = (value, otherwise, length) => {
    if (value === undefined) return otherwise;
    value = Math.trunc(Number(value)) || 0;
    if (value < 0) return 0;
    return Math.min(value, length);
  };

  method('toString', function toString(encoding, start, end) {
    if (arguments.length === 0) return native.decodeUtf8(this);
    start = bound(start, 0, this.length);
    end = bound(end, this.length, this.length);
    if (end <= start) return '';
    return decode(start === 0 && end === this.length ? this : this.subarray(start, end), encodingOf(encoding));
  });
  method('toLocaleString', proto.toString);
  method('toJSON', function toJSON() { return { type: 'Buffer', data: Array.from(this) }; });
  method('equals', function equals(other) {
    if (!(other instanceof Uint8Array)) throw invalidArgType('otherBuffer', ['Buffer', 'Uint8Array'], other);
    return this === other || (this.length === other.length && native.compareBytes(this, other) === 0);
  });
  method('compare', function compare(target, start = 0, end = target.length, thisStart = 0, thisEnd = this.length) {
    if (!(target instanceof Uint8Array)) throw invalidArgType('target', ['Buffer', 'Uint8Array'], target);
    return native.compareBytes(this.subarray(thisStart, thisEnd), target.subarray(start, end));
  });
  method('copy', function copy(target, targetStart = 0, start = 0, end = this.length) {
    if (!(target instanceof Uint8Array)) throw invalidArgType('target', ['Buffer', 'Uint8Array'], target);
    if (start < 0 || start > this.length) throw outOfRange('sourceStart', `>= 0 && <= ${this.length}`, start);
    if (targetStart < 0) throw outOfRange('targetStart', '>= 0', targetStart);
    if (targetStart >= target.length || start >= end) return 0;
    return native.putBytes(target.subarray(targetStart), this.subarray(start, end));
  });
  method('slice', function slice(start, end) { return this.subarray(start, end); });
  method('subarray', function subarray(start, end) {
    const view = Uint8Array.prototype.subarray.call(this, start, end);
    return Object.getPrototypeOf(view) === proto ? view : adopt(view);
  });
  method('write', function write(text, offset, length, encoding) {
    if (typeof text !== 'string') throw invalidArgType('argument', 'string', text);
    if (typeof offset === 'string') { encoding = offset; offset = 0; length = undefined; }
    else if (typeof length === 'string') { encoding = length; length = undefined; }
    offset ??= 0;
    validate.integer(offset, 'offset', 0, this.length);
    const room = Math.min(length ?? this.length - offset, this.length - offset);
    const name = encodingOf(encoding);
    let bytes = encode(text, name);
    if (bytes.length > room) {
      let end = room;
      // No half characters.
      if (name === 'utf8') while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--;
      else if (name === 'utf16le') end -= end % 2;
      bytes = bytes.subarray(0, end);
    }
    return native.putBytes(this.subarray(offset), bytes);
  });
  method('fill', function fill(value, offset, end, encoding) {
    if (typeof offset === 'string') { encoding = offset; offset = undefined; }
    else if (typeof end === 'string') { encoding = end; end = undefined; }
    offset ??= 0;
    end ??= this.length;
    validate.integer(offset, 'offset', 0, this.length);
    validate.integer(end, 'end', 0, this.length);
    if (offset >= end) return this;
    if (typeof value === 'number') {
      Uint8Array.prototype.fill.call(this, value & 255, offset, end);
      return this;
    }
    const bytes = typeof value === 'string' ? encode(value, encodingOf(encoding)) : value instanceof Uint8Array ? value : typeof value === 'boolean' ? [+value] : [0];
    if (bytes.length === 0) {
      if (typeof value === 'string' && value.length === 0) Uint8Array.prototype.fill.call(this, 0, offset, end);
      else throw invalidArgValue('value', value);
      return this;
    }
    for (let at = offset, from = 0; at < end; at++) {
      this[at] = bytes[from];
      if (++from === bytes.length) from = 0;
    }
    return this;
  });

  function search(buffer, value, offset, encoding, last) {
    if (typeof offset === 'string') { encoding = offset; offset = undefined; }
    offset = Math.trunc(Number(offset));
    if (Number.isNaN(offset)) offset = last ? buffer.length : 0;
    if (offset < 0) offset += buffer.length;
    if (offset < 0) {
      if (last) return -1;
      offset = 0;
    }
    if (typeof value === 'number') {
      value &= 255;
      return last ? Uint8Array.prototype.lastIndexOf.call(buffer, value, offset) : Uint8Array.prototype.indexOf.call(buffer, value, offset);
    }
    let bytes = value;
    if (typeof value === 'string') bytes = encode(value, encodingOf(encoding));
    else if (!(value instanceof Uint8Array)) throw invalidArgType('value', ['number', 'string', 'Buffer', 'Uint8Array'], value);
    if (!last && offset > buffer.length) return bytes.length === 0 ? buffer.length : -1;
    return native.findBytes(buffer, bytes, offset, last);
  }
  method('indexOf', function indexOf(value, offset, encoding) { return search(this, value, offset, encoding, false); });
  method('lastIndexOf', function lastIndexOf(value, offset, encoding) { return search(this, value, offset, encoding, true); });
  method('includes', function includes(value, offset, encoding) { return search(this, value, offset, encoding, false) !== -1; });

  function swap(by) {
    return function () {
      if (this.length % by !== 0) throw coded(RangeError, 'ERR_INVALID_BUFFER_SIZE', `Buffer size must be a multiple of ${by * 8}-bits`);
      for (let at = 0; at < this.length; at += by) Uint8Array.prototype.subarray.call(this, at, at + by).reverse();
      return this;
    };
  }
  method('swap16', swap(2));
  method('swap32', swap(4));
  method('swap64', swap(8));

  Object.defineProperty(proto, custom, {
    enumerable: false, configurable: true, writable: true,
    value(depth, options) {
      const most = exports.INSPECT_MAX_BYTES;
      let text = native.decodeHex(this.subarray(0, Math.min(most, this.length))).replace(/(.{2})(?=.)/g, '$1 ');
      const left = this.length - most;
      if (left > 0) text += ` ... ${left} more byte${left > 1 ? 's' : ''}`;
      const extras = Object.keys(this).filter((key) => !/^\d+$/.test(key));
      if (extras.length) {
        const { inspect } = require('_inspect');
        const own = {};
        for (const key of extras) own[key] = this[key];
        text += `${this.length ? ', ' : ''}${inspect(own, { ...options, breakLength: Infinity, compact: true }).slice(2, -2)}`;
      }
      return `<${this.constructor.name}${text ? ` ${text}` : ''}>`;
    },
  });

  // Numbers: a view for each buffer would cost more than one that is moved.
  const scratch = new DataView(new ArrayBuffer(8));
  const scratchBytes = new Uint8Array(scratch.buffer);
  function at(buffer, offset, count) {
    validate.number(offset, 'offset');
    if (!Number.isInteger(offset)) throw outOfRange('offset', 'an integer', offset);
    if (offset < 0 || offset + count > buffer.length) {
      if (buffer.length - count < 0) throw coded(RangeError, 'ERR_BUFFER_OUT_OF_BOUNDS', 'Attempt to access memory outside buffer bounds');
      throw outOfRange('offset', `>= 0 and <= ${buffer.length - count}`, offset);
    }
    return offset;
  }
  function numbers(name, kind, count, range, aliases = []) {
    for (const [suffix, little] of count === 1 ? [['', true]] : [['LE', true], ['BE', false]]) {
      const reader = function (offset = 0) {
        at(this, offset, count);
        for (let index = 0; index < count; index++) scratchBytes[index] = this[offset + index];
        return scratch[`get${kind}`](0, little);
      };
      const writer = function (value, offset = 0) {
        if (range) checkRange(value, range, count);
        at(this, offset, count);
        scratch[`set${kind}`](0, value, little);
        for (let index = 0; index < count; index++) this[offset + index] = scratchBytes[index];
        return offset + count;
      };
      for (const one of [name, ...aliases]) {
        method(`read${one}${suffix}`, reader);
        method(`write${one}${suffix}`, writer);
      }
    }
  }
  function checkRange(value, [min, max], count) {
    if (value >= min && value <= max) return;
    if (typeof value !== typeof min && !(typeof value === 'number' || typeof value === 'bigint')) return;
    const n = typeof min === 'bigint' ? 'n' : '';
    let range;
    if (count > 3) range = min == 0 ? `>= 0${n} and < 2${n} ** ${count * 8}${n}` : `>= -(2${n} ** ${count * 8 - 1}${n}) and < 2${n} ** ${count * 8 - 1}${n}`;
    else range = `>= ${min}${n} and <= ${max}${n}`;
    throw outOfRange('value', range, value);
  }
  numbers('UInt8', 'Uint8', 1, [0, 255], ['Uint8']);
  numbers('UInt16', 'Uint16', 2, [0, 65535], ['Uint16']);
  numbers('UInt32', 'Uint32', 4, [0, 2 ** 32 - 1], ['Uint32']);
  numbers('Int8', 'Int8', 1, [-128, 127]);
  numbers('Int16', 'Int16', 2, [-32768, 32767]);
  numbers('Int32', 'Int32', 4, [-(2 ** 31), 2 ** 31 - 1]);
  numbers('Float', 'Float32', 4);
  numbers('Double', 'Float64', 8);
  numbers('BigInt64', 'BigInt64', 8, [-(2n ** 63n), 2n ** 63n - 1n]);
  numbers('BigUInt64', 'BigUint64', 8, [0n, 2n ** 64n - 1n], ['BigUint64']);
  for (const [suffix, little] of [['LE', true], ['BE', false]]) {
    const unsigned = function (offset, count) {
      at(this, offset, count);
      let value = 0;
      for (let index = 0; index < count; index++) value = value * 256 + this[offset + (little ? count - 1 - index : index)];
      return value;
    };
    const put = function (value, offset, count) {
      value = Number(value);
      at(this, offset, count);
      for (let index = 0; index < count; index++) {
        this[offset + (little ? index : count - 1 - index)] = value - Math.floor(value / 256) * 256;
        value = Math.floor(value / 256);
      }
      return offset + count;
    };
    for (const word of ['UInt', 'Uint']) {
      method(`read${word}${suffix}`, unsigned);
      method(`write${word}${suffix}`, function (value, offset, count) {
        checkRange(value, [0, 2 ** (8 * count) - 1], count);
        return put.call(this, value, offset, count);
      });
    }
    method(`readInt${suffix}`, function (offset, count) {
      const value = unsigned.call(this, offset, count);
      return value >= 2 ** (8 * count - 1) ? value - 2 ** (8 * count) : value;
    });
    method(`writeInt${suffix}`, function (value, offset, count) {
      checkRange(value, [-(2 ** (8 * count - 1)), 2 ** (8 * count - 1) - 1], count);
      return put.call(this, value, offset, count);
    });
  }
  for (const [name, encoding] of [['ascii', 'ascii'], ['base64', 'base64'], ['base64url', 'base64url'], ['latin1', 'latin1'], ['hex', 'hex'], ['ucs2', 'utf16le'], ['utf8', 'utf8']]) {
    method(`${name}Slice`, function (start, end) { return this.toString(encoding, start, end); });
    method(`${name}Write`, function (text, offset, length) { return this.write(text, offset, length, encoding); });
  }

  exports.Buffer = Buffer;
  exports.SlowBuffer = Buffer.alloc;
  exports.INSPECT_MAX_BYTES = 50;
  exports.kMaxLength = MOST;
  exports.kStringMaxLength = 2 ** 29 - 24;
  exports.constants = { MAX_LENGTH: MOST, MAX_STRING_LENGTH: 2 ** 29 - 24 };
  exports.isUtf8 = (value) => native.isUtf8(bytesOf(value));
  exports.isAscii = (value) => bytesOf(value).every((byte) => byte < 128);
  exports.atob = (text) => {
    if (arguments.length === 0) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "input" argument must be specified');
    const clean = `${text}`.replace(/[\t\n\f\r ]/g, '');
    const bare = clean.length % 4 === 0 ? clean.replace(/={1,2}$/, '') : clean;
    if (bare.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(bare)) {
      throw new (require('_events').DOMException)('The string to be decoded is not correctly encoded.', 'InvalidCharacterError');
    }
    return native.decodeLatin1(native.encodeBase64(bare));
  };
  exports.btoa = (text) => {
    text = `${text}`;
    // eslint-disable-next-line no-control-regex
    if (/[^\x00-\xff]/.test(text)) throw new (require('_events').DOMException)('Invalid character', 'InvalidCharacterError');
    return native.decodeBase64(native.encodeLatin1(text), false);
  };
  exports.transcode = (source, from, to) => Buffer.from(decode(source, encodingOf(from)), to);
  Object.defineProperty(exports, 'Blob', { enumerable: true, configurable: true, get: () => require('_blob').Blob });
  Object.defineProperty(exports, 'File', { enumerable: true, configurable: true, get: () => require('_blob').File });
})
