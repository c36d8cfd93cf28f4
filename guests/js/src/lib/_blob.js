// Blob and File.
(function (exports, require, module, native) {
  'use strict';

  const { invalidArgType } = require('_errors');
  const custom = Symbol.for('nodejs.util.inspect.custom');

  class Blob {
    #bytes; #type;
    constructor(parts = [], options = {}) {
      if (parts === null || typeof parts !== 'object' || typeof parts[Symbol.iterator] !== 'function') throw invalidArgType('sources', 'a sequence', parts);
      const list = [];
      for (const part of parts) {
        if (part instanceof Blob) list.push(part.#bytes);
        else if (part instanceof ArrayBuffer || part instanceof SharedArrayBuffer) list.push(new Uint8Array(part.slice(0)));
        else if (ArrayBuffer.isView(part)) list.push(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
        else list.push(native.encodeUtf8(options?.endings === 'native' ? `${part}`.replace(/\r\n?/g, '\n') : `${part}`));
      }
      this.#bytes = new Uint8Array(Buffer.concat(list.map((one) => Buffer.from(one))));
      const type = `${options?.type ?? ''}`;
      this.#type = /[^\x20-\x7e]/.test(type) ? '' : type.toLowerCase();
    }
    get size() { return this.#bytes.length; }
    get type() { return this.#type; }
    slice(start = 0, end = this.size, type = '') {
      const at = (value) => (value < 0 ? Math.max(0, this.size + value) : Math.min(value, this.size));
      return new Blob([this.#bytes.slice(at(start), at(end))], { type });
    }
    async arrayBuffer() { return this.#bytes.slice().buffer; }
    async bytes() { return this.#bytes.slice(); }
    async text() { return native.decodeUtf8(this.#bytes); }
    stream() { return require('stream/web').ReadableStream.from([this.#bytes.slice()]); }
    [custom](depth, options) { return `${this.constructor.name} { size: ${this.size}, type: '${this.#type}' }`; }
  }
  class File extends Blob {
    #name; #modified;
    constructor(parts, name, options) {
      if (arguments.length < 2) throw require('_errors').coded(TypeError, 'ERR_MISSING_ARGS', 'The "sources" and "fileName" arguments must be specified');
      super(parts, options);
      this.#name = `${name}`;
      this.#modified = options?.lastModified ?? Date.now();
    }
    get name() { return this.#name; }
    get lastModified() { return this.#modified; }
  }
  for (const Type of [Blob, File]) Object.defineProperty(Type.prototype, Symbol.toStringTag, { value: Type.name, configurable: true });
  exports.Blob = Blob;
  exports.File = File;
})
