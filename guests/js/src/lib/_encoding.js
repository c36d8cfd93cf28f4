// TextEncoder and TextDecoder.
(function (exports, require, module, native) {
  'use strict';

  const { coded } = require('_errors');
  const custom = Symbol.for('nodejs.util.inspect.custom');

  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') { return native.encodeUtf8(`${text}`); }
    encodeInto(text, target) {
      let read = 0, written = 0;
      for (const char of `${text}`) {
        const bytes = native.encodeUtf8(char);
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += char.length;
      }
      return { read, written };
    }
    [custom]() { return "{ encoding: 'utf-8' }"; }
  }

  const LABELS = {
    'utf-8': 'utf-8', utf8: 'utf-8', 'unicode-1-1-utf-8': 'utf-8', 'utf-16le': 'utf-16le', 'utf-16': 'utf-16le', ucs2: 'utf-16le', 'iso-10646-ucs-2': 'utf-16le',
    latin1: 'windows-1252', ascii: 'windows-1252', 'iso-8859-1': 'windows-1252', 'windows-1252': 'windows-1252', 'us-ascii': 'windows-1252', l1: 'windows-1252',
  };

  class TextDecoder {
    #encoding; #fatal; #ignoreBom; #rest = new Uint8Array(0); #begun = false;
    constructor(label = 'utf-8', options = {}) {
      this.#encoding = LABELS[`${label}`.trim().toLowerCase()];
      if (!this.#encoding) throw coded(RangeError, 'ERR_ENCODING_NOT_SUPPORTED', `The "${label}" encoding is not supported`);
      this.#fatal = !!options?.fatal;
      this.#ignoreBom = !!options?.ignoreBOM;
    }
    get encoding() { return this.#encoding; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#ignoreBom; }
    decode(input = new Uint8Array(0), options = {}) {
      let bytes;
      if (ArrayBuffer.isView(input)) bytes = new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
      else if (input instanceof ArrayBuffer || input instanceof SharedArrayBuffer) bytes = new Uint8Array(input);
      else throw require('_errors').invalidArgType('list', ['ArrayBuffer', 'ArrayBufferView'], input);
      if (this.#rest.length) {
        const all = new Uint8Array(this.#rest.length + bytes.length);
        all.set(this.#rest);
        all.set(bytes, this.#rest.length);
        bytes = all;
        this.#rest = new Uint8Array(0);
      }
      if (options?.stream) {
        const keep = this.#incomplete(bytes);
        this.#rest = bytes.slice(bytes.length - keep);
        bytes = bytes.subarray(0, bytes.length - keep);
      }
      if (this.#fatal && this.#encoding === 'utf-8' && !native.isUtf8(bytes)) {
        throw coded(TypeError, 'ERR_ENCODING_INVALID_ENCODED_DATA', `The encoded data was not valid for encoding ${this.#encoding}`);
      }
      let text = this.#encoding === 'utf-8' ? native.decodeUtf8(bytes) : this.#encoding === 'utf-16le' ? native.decodeUtf16(bytes) : native.decodeLatin1(bytes);
      if (!this.#begun && text.length) {
        this.#begun = true;
        if (!this.#ignoreBom && this.#encoding !== 'windows-1252' && text.charCodeAt(0) === 0xfeff) text = text.slice(1);
      }
      if (!options?.stream) this.#begun = false;
      return text;
    }
    #incomplete(bytes) {
      if (this.#encoding === 'utf-16le') return bytes.length % 2;
      if (this.#encoding !== 'utf-8') return 0;
      for (let back = 1; back <= Math.min(3, bytes.length); back++) {
        const byte = bytes[bytes.length - back];
        if ((byte & 0xc0) === 0x80) continue;
        return (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1) > back ? back : 0;
      }
      return 0;
    }
  }
  for (const Type of [TextEncoder, TextDecoder]) Object.defineProperty(Type.prototype, Symbol.toStringTag, { value: Type.name, configurable: true });
  exports.TextEncoder = TextEncoder;
  exports.TextDecoder = TextDecoder;
})
