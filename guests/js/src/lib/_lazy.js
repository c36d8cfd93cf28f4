(function (exports, require, module, native) {
  'use strict';
  // A member that is loaded when it is first used; without a name in the file, it is the file itself.
  exports.lazyMember = (target, name, file, member = name) => Object.defineProperty(target, name, {
    configurable: true, enumerable: true,
    get() {
      const value = member === null ? require(file) : require(file)[member];
      Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: true });
      return value;
    },
    set(value) { Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: true }); },
  });
})
