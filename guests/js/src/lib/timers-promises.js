(function (exports, require, module, native) { module.exports = require('timers').promises; })
