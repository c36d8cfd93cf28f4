(function (exports, require, module, native) { module.exports = require('path').win32; })
