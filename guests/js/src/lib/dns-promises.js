(function (exports, require, module, native) { module.exports = require('dns').promises; })
