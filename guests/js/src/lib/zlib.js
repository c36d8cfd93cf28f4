// zlib: deflate and gzip, at once, with callbacks, and as streams that work when all is there.
(function (exports, require, module, native) {
  'use strict';

  const { Buffer, adopt } = require('buffer');
  const { Transform } = require('stream');
  const { coded, invalidArgType, unsupported } = require('_errors');
  const loop = require('_loop');
  const { promisify } = require('util');

  const MOST = 2 ** 31 - 1;
  const constants = {
    Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1,
    Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6, Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9,
    Z_DEFAULT_COMPRESSION: -1, Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2, Z_RLE: 3, Z_FIXED: 4, Z_DEFAULT_STRATEGY: 0, Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15,
    Z_DEFAULT_WINDOWBITS: 15, Z_MIN_CHUNK: 64, Z_MAX_CHUNK: Infinity, Z_DEFAULT_CHUNK: 16384, Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8,
    Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1,
  };

  function bytesOf(value) {
    if (typeof value === 'string') return Buffer.from(value);
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    throw invalidArgType('buffer', ['string', 'Buffer', 'TypedArray', 'DataView', 'ArrayBuffer'], value);
  }

  function check(options) {
    if (options?.dictionary !== undefined) throw unsupported('zlib option dictionary');
    const level = options?.level;
    if (level !== undefined && !(level >= -1 && level <= 9)) throw require('_errors').outOfRange('options.level', '>= -1 and <= 9', level);
  }
  function squeeze(kind, value, options) {
    check(options);
    return adopt(native.compress(kind, bytesOf(value), options?.level ?? -1));
  }
  function expand(kind, value, options) {
    check(options);
    const most = options?.maxOutputLength ?? MOST;
    const result = native.expand(kind, bytesOf(value), most);
    if (typeof result !== 'number') return adopt(result);
    if (result === -4) throw coded(RangeError, 'ERR_BUFFER_TOO_LARGE', `Cannot create a Buffer larger than ${most} bytes`);
    const [words, code, errno] = result === -2 ? ['unexpected end of file', 'Z_BUF_ERROR', -5] : result === -3 ? ['incorrect header check', 'Z_DATA_ERROR', -3] : ['invalid stored block lengths', 'Z_DATA_ERROR', -3];
    const error = new Error(words);
    error.errno = errno;
    error.code = code;
    throw error;
  }

  const METHODS = {
    deflate: (value, options) => squeeze('deflate', value, options), gzip: (value, options) => squeeze('gzip', value, options),
    deflateRaw: (value, options) => squeeze('raw', value, options), inflate: (value, options) => expand('deflate', value, options),
    gunzip: (value, options) => expand('gzip', value, options), inflateRaw: (value, options) => expand('raw', value, options),
    unzip: (value, options) => expand('unzip', value, options),
  };
  for (const name of Object.keys(METHODS)) {
    const act = METHODS[name];
    exports[`${name}Sync`] = Object.defineProperty((value, options) => act(value, options), 'name', { value: `${name}Sync` });
    exports[name] = Object.defineProperty(function (value, options, callback) {
      if (typeof options === 'function') { callback = options; options = {}; }
      if (typeof callback !== 'function') throw invalidArgType('callback', 'function', callback);
      bytesOf(value);
      let result, failure = null;
      try {
        result = act(value, options);
      } catch (error) {
        failure = error;
      }
      loop.complete(() => (failure ? callback(failure) : callback(null, result)));
    }, 'name', { value: name });
    void promisify;
    const Name = name === 'deflateRaw' ? 'DeflateRaw' : name === 'inflateRaw' ? 'InflateRaw' : name[0].toUpperCase() + name.slice(1);
    class Stream extends Transform {
      #parts = []; #options;
      constructor(options) {
        super(options);
        check(options);
        this.#options = options;
        this.bytesWritten = 0;
      }
      _transform(chunk, encoding, done) {
        this.#parts.push(Buffer.from(chunk));
        this.bytesWritten += chunk.length;
        done();
      }
      _flush(done) {
        let all;
        try {
          all = act(Buffer.concat(this.#parts.splice(0)), this.#options);
        } catch (error) {
          done(error);
          return;
        }
        for (let at = 0; at < all.length; at += 16384) this.push(all.subarray(at, at + 16384));
        done();
      }
      flush(kind, callback) { (typeof kind === 'function' ? kind : callback)?.(); }
      close(callback) { if (callback) this.once('close', callback); this.destroy(); }
      params(level, strategy, callback) { callback?.(); }
      reset() { this.#parts = []; }
    }
    Object.defineProperty(Stream, 'name', { value: Name });
    exports[Name] = new Proxy(Stream, { apply: (target, self, args) => new Stream(...args) });
    exports[`create${Name}`] = (options) => new Stream(options);
  }
  for (const name of ['brotliCompress', 'brotliDecompress', 'brotliCompressSync', 'brotliDecompressSync', 'createBrotliCompress', 'createBrotliDecompress']) {
    exports[name] = () => { throw unsupported(`zlib.${name}`, 'is not available in this sandbox: use gzip or deflate'); };
  }
  exports.crc32 = (data, value = 0) => {
    if (value !== 0) throw unsupported('zlib.crc32 with a start value');
    return native.crc32(bytesOf(data));
  };
  exports.constants = constants;
  exports.codes = Object.fromEntries(['Z_OK', 'Z_STREAM_END', 'Z_NEED_DICT', 'Z_ERRNO', 'Z_STREAM_ERROR', 'Z_DATA_ERROR', 'Z_MEM_ERROR', 'Z_BUF_ERROR', 'Z_VERSION_ERROR'].flatMap((name) => [[name, constants[name]], [constants[name], name]]));
  for (const name of Object.keys(constants)) Object.defineProperty(exports, name, { value: constants[name], enumerable: false });
})
