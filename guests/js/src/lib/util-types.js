(function (exports, require, module, native) { module.exports = require('util').types; })
