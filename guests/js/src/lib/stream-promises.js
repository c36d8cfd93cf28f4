(function (exports, require, module, native) {
  'use strict';
  const stream = require('stream');
  exports.pipeline = (...streams) => new Promise((resolve, reject) => {
    stream.pipeline(...streams, (error, value) => (error ? reject(error) : resolve(value)));
  });
  exports.finished = (one, options) => new Promise((resolve, reject) => {
    stream.finished(one, options, (error) => (error ? reject(error) : resolve()));
  });
})
