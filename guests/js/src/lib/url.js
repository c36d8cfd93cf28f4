// url: the WHATWG's URL, and Node's older functions.
(function (exports, require, module, native) {
  'use strict';

  const { URL, URLSearchParams, parseHost, decodePercent } = require('_url');
  const { coded, invalidArgType, validate } = require('_errors');
  const querystring = () => require('querystring');

  exports.URL = URL;
  exports.URLSearchParams = URLSearchParams;
  exports.domainToASCII = (domain) => parseHost(`${domain}`, true) ?? '';
  exports.domainToUnicode = (domain) => (parseHost(`${domain}`, true) ?? '').split('.').map((label) => (label.startsWith('xn--') ? require('punycode').decode(label.slice(4)) : label)).join('.');

  exports.fileURLToPath = (url) => {
    if (typeof url === 'string') url = new URL(url);
    else if (url === null || typeof url !== 'object' || !url.href) throw invalidArgType('path', ['string', 'URL'], url);
    if (url.protocol !== 'file:') throw coded(TypeError, 'ERR_INVALID_URL_SCHEME', 'The URL must be of scheme file');
    if (url.hostname !== '') throw coded(TypeError, 'ERR_INVALID_FILE_URL_HOST', 'File URL host must be "localhost" or empty on linux');
    if (/%2f/i.test(url.pathname)) throw coded(TypeError, 'ERR_INVALID_FILE_URL_PATH', 'File URL path must not include encoded / characters');
    return decodePercent(url.pathname);
  };
  exports.pathToFileURL = (path) => {
    validate.string(path, 'path');
    let full = require('path').resolve(path);
    if (path.endsWith('/') && !full.endsWith('/')) full += '/';
    return new URL(`file://${full.replaceAll('%', '%25').replaceAll('\\', '%5C').replaceAll('\n', '%0A').replaceAll('\r', '%0D').replaceAll('\t', '%09').replaceAll('?', '%3F').replaceAll('#', '%23')}`);
  };
  exports.urlToHttpOptions = (url) => {
    const options = {
      protocol: url.protocol, hostname: url.hostname.replace(/^\[|\]$/g, ''), hash: url.hash, search: url.search, pathname: url.pathname,
      path: `${url.pathname || ''}${url.search || ''}`, href: url.href,
    };
    if (url.port !== '') options.port = Number(url.port);
    if (url.username || url.password) options.auth = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    return options;
  };

  function Url() {
    Object.assign(this, { protocol: null, slashes: null, auth: null, host: null, port: null, hostname: null, hash: null, search: null, query: null, pathname: null, path: null, href: null });
  }
  const SLASHED = /^(?:https?|ftp|gopher|file|wss?):$/;

  Url.prototype.parse = function (text, parseQuery, slashesDenoteHost) {
    validate.string(text, 'url');
    let rest = text.trim();
    const cut = rest.search(/[?#]/);
    rest = cut < 0 ? rest.replaceAll('\\', '/') : rest.slice(0, cut).replaceAll('\\', '/') + rest.slice(cut);
    const scheme = /^[a-zA-Z0-9.+-]+:/.exec(rest);
    if (scheme) {
      this.protocol = scheme[0].toLowerCase();
      rest = rest.slice(scheme[0].length);
    }
    const slashes = /^\/\//.test(rest);
    if (slashes && (scheme || slashesDenoteHost || /^\/\/[^@/]+@[^@/]+/.test(rest)) && this.protocol !== 'javascript:') {
      rest = rest.slice(2);
      this.slashes = true;
    }
    if (this.slashes || (this.protocol && SLASHED.test(this.protocol) && this.protocol !== 'file:' && slashes)) {
      const end = rest.search(/[/?#]/);
      let host = end < 0 ? rest : rest.slice(0, end);
      rest = end < 0 ? '' : rest.slice(end);
      const at = host.lastIndexOf('@');
      if (at >= 0) {
        this.auth = decodeURIComponent(host.slice(0, at));
        host = host.slice(at + 1);
      }
      const port = /:(\d*)$/.exec(host);
      if (port) {
        if (port[1]) this.port = port[1];
        host = host.slice(0, port.index);
      }
      this.hostname = host.toLowerCase().replace(/^\[|\]$/g, '');
      this.host = (host.startsWith('[') ? `[${this.hostname}]` : this.hostname) + (this.port ? `:${this.port}` : '');
    }
    rest = rest.replace(/[\s"<>`{}|\\^']/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
    const hash = rest.indexOf('#');
    if (hash >= 0) {
      this.hash = rest.slice(hash);
      rest = rest.slice(0, hash);
    }
    const mark = rest.indexOf('?');
    if (mark >= 0) {
      this.search = rest.slice(mark);
      this.query = parseQuery ? querystring().parse(rest.slice(mark + 1)) : rest.slice(mark + 1);
      rest = rest.slice(0, mark);
    } else if (parseQuery) {
      this.search = null;
      this.query = Object.create(null);
    }
    if (rest) this.pathname = rest;
    if (this.protocol && SLASHED.test(this.protocol) && this.hostname && !this.pathname) this.pathname = '/';
    if (this.pathname || this.search) this.path = (this.pathname ?? '') + (this.search ?? '');
    this.href = this.format();
    return this;
  };
  Url.prototype.format = function () {
    let auth = this.auth ? `${encodeURIComponent(this.auth).replace(/%3A/i, ':')}@` : '';
    let protocol = this.protocol ?? '', pathname = this.pathname ?? '', hash = this.hash ?? '', host = '';
    if (this.host) host = auth + this.host;
    else if (this.hostname) host = auth + (this.hostname.includes(':') ? `[${this.hostname}]` : this.hostname) + (this.port ? `:${this.port}` : '');
    let query = '';
    if (this.query !== null && typeof this.query === 'object') query = querystring().stringify(this.query);
    let search = this.search || (query && `?${query}`) || '';
    if (protocol && !protocol.endsWith(':')) protocol += ':';
    if (this.slashes || (SLASHED.test(protocol) && host)) {
      if (this.slashes || host) {
        if (pathname && !pathname.startsWith('/')) pathname = `/${pathname}`;
        host = `//${host}`;
      }
    }
    if (hash && !hash.startsWith('#')) hash = `#${hash}`;
    if (search && !search.startsWith('?')) search = `?${search}`;
    return protocol + host + pathname.replace(/[?#]/g, encodeURIComponent) + search.replaceAll('#', '%23') + hash;
  };
  exports.Url = Url;
  exports.parse = (text, parseQuery, slashes) => (text instanceof Url ? text : new Url().parse(text, parseQuery, slashes));
  exports.format = (url, options) => {
    if (typeof url === 'string') return exports.parse(url).format();
    if (url === null || typeof url !== 'object') throw invalidArgType('urlObject', ['Object', 'string'], url);
    if (url instanceof URL) {
      const copy = new URL(url.href);
      if (options?.fragment === false) copy.hash = '';
      if (options?.search === false) copy.search = '';
      if (options?.auth === false) { copy.username = ''; copy.password = ''; }
      return options?.unicode ? copy.href.replace(copy.hostname, exports.domainToUnicode(copy.hostname)) : copy.href;
    }
    return Url.prototype.format.call(Object.assign(new Url(), url));
  };
  exports.resolve = (from, to) => {
    const base = new URL(from, new URL('resolve://'));
    const resolved = new URL(to, base);
    if (resolved.protocol === 'resolve:') {
      const { pathname, search, hash } = resolved;
      return pathname + search + hash;
    }
    return resolved.toString();
  };
  exports.resolveObject = (from, to) => exports.parse(exports.resolve(typeof from === 'string' ? from : from.format(), to));
})
