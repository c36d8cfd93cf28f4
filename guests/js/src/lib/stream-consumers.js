(function (exports, require, module, native) {
  'use strict';
  exports.buffer = async (stream) => {
    const parts = [];
    for await (const part of stream) parts.push(typeof part === 'string' ? Buffer.from(part) : part);
    return Buffer.concat(parts);
  };
  exports.text = async (stream) => (await exports.buffer(stream)).toString();
  exports.json = async (stream) => JSON.parse(await exports.text(stream));
  exports.arrayBuffer = async (stream) => {
    const bytes = await exports.buffer(stream);
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  };
  exports.blob = async (stream) => new Blob([await exports.buffer(stream)]);
})
