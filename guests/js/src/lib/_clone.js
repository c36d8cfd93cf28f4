// structuredClone.
(function (exports, require, module, native) {
  'use strict';

  const { C, typedName } = require('_inspect');

  exports.structuredClone = (value, options) => {
    if (options !== undefined && (options === null || typeof options !== 'object')) throw require('_errors').invalidArgType('options', 'Object', options);
    const memory = new Map();
    const moved = options?.transfer ?? [];
    const copy = clone(value, memory);
    for (const one of moved) if (one instanceof ArrayBuffer) one.transfer?.();
    return copy;
  };

  function refuse(value) {
    const { DOMException } = require('_events');
    const text = typeof value === 'symbol' ? String(value) : typeof value === 'function' ? Function.prototype.toString.call(value) : '#<Object>';
    throw new DOMException(`${text === '#<Object>' ? `#<${value?.constructor?.name ?? 'Object'}>` : text} could not be cloned.`, 'DataCloneError');
  }

  function clone(value, memory) {
    if (typeof value === 'symbol' || typeof value === 'function') refuse(value);
    if (value === null || typeof value !== 'object') return value;
    if (memory.has(value)) return memory.get(value);
    const keep = (copy) => { memory.set(value, copy); return copy; };
    const kind = native.classOf(value);
    switch (kind) {
      case C.Date: return keep(new Date(value.getTime()));
      case C.RegExp: return keep(new RegExp(value.source, value.flags));
      case C.Number: case C.String: case C.Boolean: case C.BigInt: return keep(Object(value.valueOf()));
      case C.Symbol: case C.Promise: case C.WeakMap: case C.WeakSet: case C.WeakRef: case C.Generator: case C.AsyncGenerator: return refuse(value);
      case C.ArrayBuffer: return keep(value.slice(0));
      case C.SharedArrayBuffer: return keep(value);
      case C.DataView: return keep(new DataView(clone(value.buffer, memory), value.byteOffset, value.byteLength));
      case C.Map: {
        const copy = keep(new Map());
        for (const [key, one] of [...value]) copy.set(clone(key, memory), clone(one, memory));
        return copy;
      }
      case C.Set: {
        const copy = keep(new Set());
        for (const one of [...value]) copy.add(clone(one, memory));
        return copy;
      }
      case C.Error: {
        const Type = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError }[value.name] ?? Error;
        const copy = keep(Object.create(Type.prototype));
        const made = new Type(value.message);
        memory.set(value, made);
        Object.defineProperty(made, 'stack', { value: value.stack, writable: true, configurable: true, enumerable: false });
        if (Object.hasOwn(value, 'cause')) Object.defineProperty(made, 'cause', { value: clone(value.cause, memory), writable: true, configurable: true, enumerable: false });
        void copy;
        return made;
      }
      default:
    }
    const typed = typedName(value);
    if (typed !== undefined) return keep(new globalThis[typed](clone(value.buffer, memory), value.byteOffset, value.length));
    if (value instanceof require('_blob').Blob) return keep(value);
    const copy = keep(kind === C.Array ? new Array(value.length) : {});
    for (const key of Object.keys(value)) copy[key] = clone(value[key], memory);
    return copy;
  }
})
