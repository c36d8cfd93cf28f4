// querystring: forms as objects.
(function (exports, require, module, native) {
  'use strict';

  const { decodePercent } = require('_url');

  exports.escape = (value) => {
    const text = typeof value === 'object' ? String(value) : `${value}`;
    return encodeURIComponent(text);
  };
  exports.unescape = (text) => decodePercent(`${text}`);
  exports.unescapeBuffer = (text) => Buffer.from(decodePercent(`${text}`));
  const plain = (value) => (typeof value === 'string' ? value : typeof value === 'number' && Number.isFinite(value) ? `${value}` : typeof value === 'bigint' ? `${value}` : typeof value === 'boolean' ? `${value}` : '');
  exports.stringify = (object, separator, equals, options) => {
    separator ||= '&';
    equals ||= '=';
    if (object === null || typeof object !== 'object') return '';
    const escape = options?.encodeURIComponent ?? exports.escape;
    return Object.keys(object).flatMap((key) => [].concat(object[key]).map((value) => escape(key) + equals + escape(plain(value)))).join(separator);
  };
  exports.parse = (text, separator, equals, options) => {
    const out = Object.create(null);
    if (typeof text !== 'string' || text.length === 0) return out;
    separator = separator ? `${separator}` : '&';
    equals = equals ? `${equals}` : '=';
    const decode = options?.decodeURIComponent ?? exports.unescape;
    const clean = (part) => {
      part = part.replaceAll('+', ' ');
      try {
        return decode(part);
      } catch {
        return exports.unescape(part);
      }
    };
    const most = options?.maxKeys ?? 1000;
    let parts = text.split(separator);
    if (most > 0) parts = parts.slice(0, most);
    for (const part of parts) {
      if (part === '') continue;
      const cut = part.indexOf(equals);
      const key = clean(cut < 0 ? part : part.slice(0, cut)), value = cut < 0 ? '' : clean(part.slice(cut + equals.length));
      if (!(key in out)) out[key] = value;
      else if (Array.isArray(out[key])) out[key].push(value);
      else out[key] = [out[key], value];
    }
    return out;
  };
  exports.encode = exports.stringify;
  exports.decode = exports.parse;
})
