// StringDecoder: text from bytes that come in pieces.
(function (exports, require, module, native) {
  'use strict';

  const { Buffer, normalEncoding } = require('buffer');
  const { coded, invalidArgType } = require('_errors');

  // How many bytes at the end belong to a character that is not complete.
  function incomplete(bytes) {
    for (let back = 1; back <= Math.min(3, bytes.length); back++) {
      const byte = bytes[bytes.length - back];
      if ((byte & 0xc0) === 0x80) continue;
      const need = byte >= 0xf0 && byte < 0xf5 ? 4 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xc2 && byte < 0xe0 ? 2 : 1;
      return need > back ? back : 0;
    }
    return 0;
  }

  class StringDecoder {
    constructor(encoding) {
      this.encoding = normalEncoding(encoding);
      if (this.encoding === undefined) throw coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
      Object.defineProperty(this, '_rest', { value: Buffer.alloc(0), writable: true });
    }
    write(bytes) {
      if (typeof bytes === 'string') return bytes;
      if (!ArrayBuffer.isView(bytes)) throw invalidArgType('buf', ['Buffer', 'TypedArray', 'DataView'], bytes);
      let all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      if (this._rest.length) all = Buffer.concat([this._rest, all]);
      let keep = 0;
      if (this.encoding === 'utf8') keep = incomplete(all);
      else if (this.encoding === 'utf16le') {
        keep = all.length % 2;
        const high = all.length - keep >= 2 ? all[all.length - keep - 1] : 0;
        if (high >= 0xd8 && high < 0xdc) keep += 2;
      } else if (this.encoding.startsWith('base64')) keep = all.length % 3;
      this._rest = Buffer.from(all.subarray(all.length - keep));
      return all.toString(this.encoding, 0, all.length - keep);
    }
    end(bytes) {
      let text = bytes === undefined ? '' : this.write(bytes);
      if (this._rest.length) {
        text += this.encoding === 'utf8' ? '\ufffd' : this._rest.toString(this.encoding);
        this._rest = Buffer.alloc(0);
      }
      return text;
    }
    get lastNeed() { return 0; }
    get lastTotal() { return this._rest.length; }
  }
  exports.StringDecoder = StringDecoder;
})
