(function (exports, require, module, native) {
  'use strict';
  exports.isatty = (fd) => Number.isInteger(fd) && fd >= 0 && native.isatty(fd);
  exports.ReadStream = function (fd) { return require('_stdio').reader(fd); };
  exports.WriteStream = function (fd) { return require('_stdio').output(fd); };
})
