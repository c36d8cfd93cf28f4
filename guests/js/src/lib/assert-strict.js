(function (exports, require, module, native) { module.exports = require('assert').strict; })
