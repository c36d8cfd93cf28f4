// https: HTTP over connections whose TLS the gateway speaks.
(function (exports, require, module, native) {
  'use strict';
  const http = require('http');
  class Agent extends http.Agent {
    constructor(options) { super(options); this.defaultPort = 443; this.protocol = 'https:'; }
  }
  const secure = (args) => {
    let [input, options, callback] = args;
    if (typeof input !== 'string' && !(input instanceof URL)) { callback = options; options = input; input = undefined; }
    if (typeof options === 'function') { callback = options; options = {}; }
    options = { ...options, _secure: true };
    return input === undefined ? [options, callback] : [input, options, callback];
  };
  exports.Agent = Agent;
  exports.globalAgent = new Agent({ keepAlive: true });
  exports.request = (...args) => http.request(...secure(args));
  exports.get = (...args) => {
    const request = exports.request(...args);
    request.end();
    return request;
  };
  exports.createServer = () => { throw require('_errors').unsupported('https.createServer', 'is not available in this sandbox: the gateway speaks TLS for those who connect outwards'); };
  exports.Server = exports.createServer;
})
