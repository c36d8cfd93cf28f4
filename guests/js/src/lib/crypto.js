// crypto: hashes, HMAC, PBKDF2 and HKDF, random values. There are no ciphers, signatures or keys.
(function (exports, require, module, native) {
  'use strict';

  const { Buffer, adopt } = require('buffer');
  const { Transform } = require('stream');
  const { coded, validate, invalidArgType, outOfRange, unsupported } = require('_errors');
  const loop = require('_loop');

  const HASHES = ['md5', 'sha1', 'sha224', 'sha256', 'sha3-224', 'sha3-256', 'sha3-384', 'sha3-512', 'sha384', 'sha512', 'sha512-224', 'sha512-256'];
  const canonical = (name) => {
    const low = name.toLowerCase().replace(/^rsa-/, '').replace('/', '-');
    return low.replace(/^sha-(\d+)$/, 'sha$1');
  };

  function bytesOf(value, encoding, name = 'data') {
    if (typeof value === 'string') return Buffer.from(value, encoding === 'buffer' ? 'utf8' : encoding);
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return new Uint8Array(value);
    if (value instanceof KeyObject) return value._bytes;
    throw invalidArgType(name, ['string', 'Buffer', 'TypedArray', 'DataView'], value);
  }
  const out = (bytes, encoding) => {
    const buffer = adopt(bytes);
    return encoding && encoding !== 'buffer' ? buffer.toString(encoding) : buffer;
  };

  class Digest extends Transform {
    #state; #done = false;
    constructor(state, options) {
      super(options);
      this.#state = state;
    }
    update(data, encoding) {
      if (this.#done) throw coded(Error, 'ERR_CRYPTO_HASH_FINALIZED', 'Digest already called');
      this.#state.update(bytesOf(data, encoding));
      return this;
    }
    digest(encoding) {
      if (this.#done) throw coded(Error, 'ERR_CRYPTO_HASH_FINALIZED', 'Digest already called');
      this.#done = true;
      return out(this.#state.digest(), encoding);
    }
    _transform(chunk, encoding, done) {
      this.#state.update(bytesOf(chunk, encoding));
      done();
    }
    _flush(done) {
      this.push(this.digest());
      done();
    }
    _copy(Type, options) {
      if (this.#done) throw coded(Error, 'ERR_CRYPTO_HASH_FINALIZED', 'Digest already called');
      return new Type(this.#state.copy(), options);
    }
  }
  class Hash extends Digest {
    copy(options) { return this._copy(Hash, options); }
  }
  class Hmac extends Digest {}
  exports.Hash = Hash;
  exports.Hmac = Hmac;

  exports.createHash = (algorithm, options) => {
    validate.string(algorithm, 'algorithm');
    const state = native.hash(canonical(algorithm), null);
    if (!state) {
      throw new Error('Digest method not supported');
    }
    return new Hash(state, options);
  };
  exports.createHmac = (algorithm, key, options) => {
    validate.string(algorithm, 'hmac');
    if (key === null || key === undefined) throw invalidArgType('key', ['ArrayBuffer', 'Buffer', 'TypedArray', 'DataView', 'string', 'KeyObject', 'CryptoKey'], key);
    const state = native.hash(canonical(algorithm), new Uint8Array(bytesOf(key, options?.encoding, 'key')));
    if (!state) throw coded(Error, 'ERR_CRYPTO_INVALID_DIGEST', `Invalid digest: ${algorithm}`);
    return new Hmac(state, options);
  };
  exports.hash = (algorithm, data, encoding = 'hex') => exports.createHash(algorithm).update(data).digest(encoding);
  exports.getHashes = () => ['RSA-MD5', 'RSA-SHA1', 'RSA-SHA224', 'RSA-SHA256', 'RSA-SHA384', 'RSA-SHA512', ...HASHES];
  exports.getCiphers = () => [];
  exports.getCurves = () => [];

  exports.randomBytes = (size, callback) => {
    validate.number(size, 'size');
    if (!(size >= 0 && size <= 2147483647)) throw outOfRange('size', '>= 0 && <= 2147483647', size);
    if (callback === undefined) return adopt(native.randomBytes(size));
    validate.function(callback, 'callback');
    return void loop.complete(() => callback(null, adopt(native.randomBytes(size))));
  };
  exports.pseudoRandomBytes = exports.randomBytes;
  const fill = (buffer, offset = 0, size = buffer.byteLength - offset) => {
    const view = ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) : new Uint8Array(buffer);
    native.randomFill(view.subarray(offset, offset + size));
    return buffer;
  };
  exports.randomFillSync = fill;
  exports.randomFill = (buffer, ...rest) => {
    const callback = rest.pop();
    validate.function(callback, 'callback');
    loop.complete(() => callback(null, fill(buffer, ...rest)));
  };
  exports.randomInt = (min, max, callback) => {
    if (max === undefined || typeof max === 'function') { callback = max; max = min; min = 0; }
    if (!Number.isSafeInteger(min)) throw invalidArgType('min', 'a safe integer', min);
    if (!Number.isSafeInteger(max)) throw invalidArgType('max', 'a safe integer', max);
    if (max <= min) throw outOfRange('max', `greater than the value of "min" (${min})`, max);
    const range = max - min;
    if (range > 2 ** 48 - 1) throw outOfRange(min === 0 ? 'max' : 'max - min', `<= ${2 ** 48 - 1}`, range);
    // Values beyond the last whole range are drawn again, so that all are as likely.
    const limit = 2 ** 48 - (2 ** 48 % range);
    let drawn;
    do drawn = Buffer.from(native.randomBytes(6)).readUIntBE(0, 6); while (drawn >= limit);
    const value = min + (drawn % range);
    if (callback) return void loop.complete(() => callback(null, value));
    return value;
  };
  exports.randomUUID = () => {
    const bytes = native.randomBytes(16);
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    return native.decodeHex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  };
  exports.timingSafeEqual = (one, other) => {
    for (const [value, name] of [[one, 'buf1'], [other, 'buf2']]) {
      if (!ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) throw invalidArgType(name, ['ArrayBuffer', 'Buffer', 'TypedArray', 'DataView'], value);
    }
    if (one.byteLength !== other.byteLength) throw coded(RangeError, 'ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH', 'Input buffers must have the same byte length');
    return native.equalAlwaysSlow(bytesOf(one), bytesOf(other));
  };

  function derive(password, salt, iterations, length, digest) {
    validate.string(digest, 'digest');
    validate.integer(iterations, 'iterations', 1, 2147483647);
    validate.integer(length, 'keylen', 0, 2147483647);
    const key = native.pbkdf2(canonical(digest), new Uint8Array(bytesOf(password, 'utf8', 'password')), new Uint8Array(bytesOf(salt, 'utf8', 'salt')), iterations, length);
    if (!key) throw coded(TypeError, 'ERR_CRYPTO_INVALID_DIGEST', `Invalid digest: ${digest}`);
    return adopt(key);
  }
  exports.pbkdf2Sync = derive;
  exports.pbkdf2 = (password, salt, iterations, length, digest, callback) => {
    validate.function(callback, 'callback');
    const key = derive(password, salt, iterations, length, digest);
    loop.complete(() => callback(null, key));
  };
  exports.hkdfSync = (digest, key, salt, info, length) => {
    const mac = (secret, ...parts) => { const one = exports.createHmac(digest, secret); parts.forEach((part) => one.update(part)); return one.digest(); };
    const size = exports.createHash(digest).digest().length;
    salt = bytesOf(salt);
    const extracted = mac(salt.length ? salt : Buffer.alloc(size), bytesOf(key));
    const parts = [];
    for (let block = 1, last = Buffer.alloc(0), have = 0; have < length; block++) {
      last = mac(extracted, last, bytesOf(info), Buffer.from([block]));
      parts.push(last);
      have += last.length;
    }
    const all = Buffer.concat(parts).subarray(0, length);
    return all.buffer.slice(all.byteOffset, all.byteOffset + length);
  };
  exports.hkdf = (digest, key, salt, info, length, callback) => {
    const derived = exports.hkdfSync(digest, key, salt, info, length);
    loop.complete(() => callback(null, derived));
  };

  class KeyObject {
    constructor(bytes) { Object.defineProperty(this, '_bytes', { value: bytes }); }
    get type() { return 'secret'; }
    get symmetricKeySize() { return this._bytes.length; }
    export(options) { return options?.format === 'jwk' ? { kty: 'oct', k: Buffer.from(this._bytes).toString('base64url') } : Buffer.from(this._bytes); }
    equals(other) { return Buffer.from(this._bytes).equals(other._bytes); }
  }
  exports.KeyObject = KeyObject;
  exports.createSecretKey = (key, encoding) => new KeyObject(Buffer.from(bytesOf(key, encoding)));

  for (const name of ['createCipheriv', 'createDecipheriv', 'createCipher', 'createDecipher', 'createSign', 'createVerify', 'sign', 'verify', 'createDiffieHellman',
    'createECDH', 'createPrivateKey', 'createPublicKey', 'generateKeyPair', 'generateKeyPairSync', 'publicEncrypt', 'privateDecrypt', 'scrypt', 'scryptSync', 'generateKey',
    'generateKeySync', 'diffieHellman', 'getDiffieHellman', 'X509Certificate', 'generatePrime', 'checkPrime']) {
    exports[name] = function () { throw unsupported(`crypto.${name}`, 'is not available in this sandbox: of crypto there are hashes, HMAC, PBKDF2, HKDF and random values'); };
  }

  const algorithmOf = (algorithm) => canonical(typeof algorithm === 'string' ? algorithm : algorithm?.name ?? '');
  const subtle = {
    async digest(algorithm, data) {
      const state = native.hash(algorithmOf(algorithm), null);
      if (!state) throw new (require('_events').DOMException)('Unrecognized algorithm name', 'NotSupportedError');
      state.update(bytesOf(data));
      const { buffer } = state.digest();
      return new Promise((resolve) => loop.complete(() => resolve(buffer)));
    },
  };
  for (const name of ['encrypt', 'decrypt', 'sign', 'verify', 'generateKey', 'deriveKey', 'deriveBits', 'importKey', 'exportKey', 'wrapKey', 'unwrapKey']) {
    subtle[name] = async () => { throw unsupported(`crypto.subtle.${name}`, 'is not available in this sandbox: of crypto.subtle there is digest'); };
  }
  const webcrypto = {
    subtle,
    getRandomValues(array) {
      if (!ArrayBuffer.isView(array) || array instanceof Float32Array || array instanceof Float64Array || array instanceof DataView) throw new (require('_events').DOMException)('The data argument must be an integer-type TypedArray', 'TypeMismatchError');
      if (array.byteLength > 65536) throw new (require('_events').DOMException)(`The requested length exceeds 65,536 bytes`, 'QuotaExceededError');
      return fill(array);
    },
    randomUUID: exports.randomUUID,
  };
  Object.defineProperty(webcrypto, Symbol.toStringTag, { value: 'Crypto', configurable: true });
  exports.webcrypto = webcrypto;
  exports.subtle = subtle;
  exports.getRandomValues = webcrypto.getRandomValues;
  exports.constants = {};
  exports.getFips = () => 0;
})
