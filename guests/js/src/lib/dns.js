// dns: names as the sandbox's network knows them.
(function (exports, require, module, native) {
  'use strict';
  const loop = require('_loop');
  const { unsupported } = require('_errors');
  const familyOf = (address) => (address.includes(':') ? 6 : 4);
  const find = (host, family) => {
    if (require('net').isIP(host)) return [{ address: host, family: familyOf(host) }];
    const found = native.lookUp(host);
    if (found[0]?.startsWith('!') || found.length === 0) {
      const code = found[0]?.slice(1) ?? 'ENOTFOUND';
      const error = new Error(`getaddrinfo ${code} ${host}`);
      throw Object.assign(error, { errno: code === 'EAI_AGAIN' ? -3001 : -3008, code, syscall: 'getaddrinfo', hostname: host });
    }
    return found.map((address) => ({ address, family: familyOf(address) })).filter((one) => !family || one.family === family);
  };
  exports.lookup = (host, options, callback) => {
    if (typeof options === 'function') { callback = options; options = {}; }
    if (typeof options === 'number') options = { family: options };
    let result, failure = null;
    try {
      result = find(host || '127.0.0.1', options?.family);
    } catch (error) {
      failure = error;
    }
    loop.complete(() => {
      if (failure) callback(failure);
      else if (options?.all) callback(null, result);
      else callback(null, result[0].address, result[0].family);
    });
  };
  const resolve = (family) => (host, options, callback) => {
    if (typeof options === 'function') callback = options;
    exports.lookup(host, { all: true, family }, (error, found) => (error ? callback(error) : callback(null, found.map((one) => one.address))));
  };
  exports.resolve4 = resolve(4);
  exports.resolve6 = resolve(6);
  exports.resolve = (host, type, callback) => (typeof type === 'function' ? exports.resolve4(host, type) : type === 'A' ? exports.resolve4(host, callback) : type === 'AAAA' ? exports.resolve6(host, callback) : refuse(`dns.resolve of type ${type}`));
  const refuse = (what) => { throw unsupported(what, 'is not available in this sandbox: names have addresses only'); };
  for (const name of ['resolveMx', 'resolveTxt', 'resolveSrv', 'resolveNs', 'resolveCname', 'resolveAny', 'resolveSoa', 'resolvePtr', 'resolveCaa', 'reverse', 'lookupService', 'setServers']) exports[name] = () => refuse(`dns.${name}`);
  exports.getServers = () => [];
  exports.setDefaultResultOrder = () => {};
  exports.getDefaultResultOrder = () => 'verbatim';
  const { promisify } = require('util');
  exports.promises = { lookup: async (host, options) => { const found = find(host, typeof options === 'number' ? options : options?.family); await new Promise((resolve) => loop.complete(resolve)); return options?.all ? found : found[0]; } };
  Object.defineProperty(exports.lookup, promisify.custom, { value: exports.promises.lookup, enumerable: false });
  for (const name of ['resolve', 'resolve4', 'resolve6']) exports.promises[name] = promisify(exports[name]);
})
