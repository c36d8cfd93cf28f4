// TypeScript is refused by name.
(function (exports, require, module, native) {
  'use strict';
  exports.strip = (source, file) => {
    throw require('_errors').unsupported(`TypeScript (${file})`, 'is not available in this sandbox: compile it to JavaScript first');
  };
})
