// Whether two values are equal in depth, strictly or as `==` has it.
(function (exports, require, module, native) {
  'use strict';

  const { C, typedName } = require('_inspect');
  const classOf = native.classOf;

  exports.equal = (one, other, strict) => same(one, other, strict, []);

  function same(one, other, strict, seen) {
    if (one === other) return one !== 0 || !strict || Object.is(one, other);
    if (strict) {
      if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return Object.is(one, other);
      if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
    } else {
      const plain = (value) => value === null || typeof value !== 'object';
      if (plain(one) || plain(other)) {
        if (!plain(one) || !plain(other)) return false;
        // eslint-disable-next-line eqeqeq
        return one == other || (Number.isNaN(one) && Number.isNaN(other));
      }
    }
    const kind = classOf(one);
    if (kind !== classOf(other)) return false;
    if (Object.prototype.toString.call(one) !== Object.prototype.toString.call(other)) return false;
    if (kind === C.Array && one.length !== other.length) return false;
    if (kind === C.Date && one.getTime() !== other.getTime()) return false;
    if (kind === C.RegExp && (one.source !== other.source || one.flags !== other.flags || one.lastIndex !== other.lastIndex)) return false;
    if (kind === C.Error && (one.message !== other.message || one.name !== other.name || !same(one.cause, other.cause, strict, seen) || !same(one.errors, other.errors, strict, seen))) return false;
    if ([C.Number, C.String, C.Boolean, C.BigInt, C.Symbol].includes(kind) && !Object.is(one.valueOf(), other.valueOf())) return false;
    if (kind === C.ArrayBuffer || kind === C.SharedArrayBuffer) {
      if (one.byteLength !== other.byteLength || native.compareBytes(new Uint8Array(one), new Uint8Array(other)) !== 0) return false;
    }
    if (typedName(one) !== undefined) {
      if (one.length !== other.length) return false;
      for (let index = 0; index < one.length; index++) if (!Object.is(one[index], other[index]) && (strict || one[index] !== other[index])) return false;
      return named(one, other, strict, seen, (key) => !/^\d+$/.test(key));
    }
    if ([C.WeakMap, C.WeakSet, C.Promise].includes(kind)) return false;
    // What is compared already is taken as equal: its own comparison decides.
    if (seen.some(([a, b]) => a === one && b === other)) return true;
    seen.push([one, other]);
    const result = (kind !== C.Set || sets(one, other, strict, seen)) && (kind !== C.Map || maps(one, other, strict, seen)) && named(one, other, strict, seen);
    seen.pop();
    return result;
  }

  function named(one, other, strict, seen, only = () => true) {
    const keys = Object.keys(one).filter(only), others = Object.keys(other).filter(only);
    if (keys.length !== others.length) return false;
    for (const key of keys) if (!Object.prototype.propertyIsEnumerable.call(other, key)) return false;
    if (strict) {
      const symbols = (value) => Object.getOwnPropertySymbols(value).filter((symbol) => Object.prototype.propertyIsEnumerable.call(value, symbol));
      const own = symbols(one);
      if (own.length !== symbols(other).length || own.some((symbol) => !Object.prototype.propertyIsEnumerable.call(other, symbol))) return false;
      keys.push(...own);
    }
    return keys.every((key) => same(one[key], other[key], strict, seen));
  }

  const isObject = (value) => typeof value === 'object' && value !== null;

  function sets(one, other, strict, seen) {
    if (one.size !== other.size) return false;
    const rest = new Set(other);
    const hard = [];
    for (const value of one) {
      if (rest.delete(value)) continue;
      if (strict && !isObject(value)) return false;
      hard.push(value);
    }
    return hard.every((value) => {
      for (const candidate of rest) if (same(value, candidate, strict, seen)) return rest.delete(candidate);
      return false;
    });
  }

  function maps(one, other, strict, seen) {
    if (one.size !== other.size) return false;
    const rest = new Map(other);
    const hard = [];
    for (const [key, value] of one) {
      if (rest.has(key) && same(value, rest.get(key), strict, seen)) { rest.delete(key); continue; }
      if (strict && !isObject(key)) return false;
      hard.push([key, value]);
    }
    return hard.every(([key, value]) => {
      for (const [candidate, its] of rest) {
        if (same(key, candidate, strict, seen) && same(value, its, strict, seen)) return rest.delete(candidate);
      }
      return false;
    });
  }
})
