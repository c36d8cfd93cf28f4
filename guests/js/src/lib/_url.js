// URL and URLSearchParams, as the WHATWG has them.
(function (exports, require, module, native) {
  'use strict';

  const { coded, invalidArgType } = require('_errors');
  const custom = Symbol.for('nodejs.util.inspect.custom');
  const SPECIAL = { 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443', 'ftp:': '21', 'file:': '' };
  const isSpecial = (protocol) => Object.hasOwn(SPECIAL, protocol);

  const bytes = (text) => native.encodeUtf8(text.toWellFormed());
  // Percent-encodes what is in a class of characters, and all that is not ASCII.
  const encode = (text, what) => {
    let out = '';
    for (const char of text) {
      if (char > '~' || char < ' ' || what.test(char)) for (const byte of bytes(char)) out += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
      else out += char;
    }
    return out;
  };
  const FRAGMENT = /[ "<>`]/, QUERY = /[ "#<>]/, SPECIAL_QUERY = /[ "#<>']/, PATH = /[ "#<>?`{}^]/, USER = /[ "#<>?`{}/:;=@[\\\]^|]/, OPAQUE = /[\x00-\x1f]/;

  function decodePercent(text) {
    if (!text.includes('%')) return text;
    const out = [];
    const from = bytes(text);
    for (let at = 0; at < from.length; at++) {
      const hex = from[at] === 37 ? String.fromCharCode(from[at + 1] ?? 0, from[at + 2] ?? 0) : '';
      if (/^[0-9a-fA-F]{2}$/.test(hex)) {
        out.push(parseInt(hex, 16));
        at += 2;
      } else out.push(from[at]);
    }
    return native.decodeUtf8(new Uint8Array(out));
  }

  function ipv4(host) {
    const parts = host.split('.');
    if (parts[parts.length - 1] === '' && parts.length > 1) parts.pop();
    const last = parts[parts.length - 1];
    if (!/^(?:\d+|0[xX][0-9a-fA-F]*)$/.test(last)) return null;
    if (parts.length > 4) return false;
    const numbers = [];
    for (const part of parts) {
      let number;
      if (/^0[xX][0-9a-fA-F]*$/.test(part)) number = part.length === 2 ? 0 : parseInt(part, 16);
      else if (/^0[0-7]*$/.test(part)) number = parseInt(part, 8);
      else if (/^[1-9]\d*$/.test(part)) number = parseInt(part, 10);
      else return false;
      numbers.push(number);
    }
    const tail = numbers.pop();
    if (numbers.some((number) => number > 255) || tail >= 256 ** (4 - numbers.length)) return false;
    const value = numbers.reduce((sum, number, index) => sum + number * 256 ** (3 - index), tail);
    return [3, 2, 1, 0].map((power) => Math.floor(value / 256 ** power) % 256).join('.');
  }

  function ipv6(text) {
    const halves = text.split('::');
    if (halves.length > 2) return null;
    const words = (half) => {
      if (half === '') return [];
      const out = [];
      const parts = half.split(':');
      for (const [index, part] of parts.entries()) {
        if (index === parts.length - 1 && part.includes('.')) {
          const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(part);
          if (!match || match.slice(1).some((one) => Number(one) > 255 || (one.length > 1 && one[0] === '0'))) return null;
          out.push(Number(match[1]) * 256 + Number(match[2]), Number(match[3]) * 256 + Number(match[4]));
        } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) out.push(parseInt(part, 16));
        else return null;
      }
      return out;
    };
    const left = words(halves[0]), right = halves.length === 2 ? words(halves[1]) : [];
    if (!left || !right) return null;
    const missing = 8 - left.length - right.length;
    if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
    const all = [...left, ...Array(Math.max(0, missing)).fill(0), ...right];
    let best = { at: -1, length: 1 };
    for (let at = 0; at < 8; at++) {
      let length = 0;
      while (at + length < 8 && all[at + length] === 0) length++;
      if (length > best.length) best = { at, length };
    }
    const hex = all.map((word) => word.toString(16));
    if (best.at < 0) return hex.join(':');
    return `${hex.slice(0, best.at).join(':')}::${hex.slice(best.at + best.length).join(':')}`;
  }

  // A host as it is written in a URL; null if it is none.
  function parseHost(text, special) {
    if (text.startsWith('[')) {
      if (!text.endsWith(']')) return null;
      const found = ipv6(text.slice(1, -1));
      return found === null ? null : `[${found}]`;
    }
    if (!special) return /[\0\t\n\r #/:<>?@[\\\]^|]/.test(text) ? null : encode(text, OPAQUE);
    let host = decodePercent(text).normalize('NFKC').toLowerCase().replace(/[\u3002\uff0e\uff61]/g, '.').replaceAll('\u00ad', '');
    if (/[^\x00-\x7f]/.test(host)) host = host.split('.').map((label) => (/[^\x00-\x7f]/.test(label) ? `xn--${require('punycode').encode(label)}` : label)).join('.');
    if (host === '' || /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/.test(host)) return null;
    const address = ipv4(host);
    if (address === false) return null;
    return address ?? host;
  }

  function shorten(url) {
    if (url.protocol === 'file:' && url.path.length === 1 && /^[a-zA-Z]:$/.test(url.path[0])) return;
    url.path.pop();
  }

  // Takes a text apart; null if it is not a URL.
  function parse(input, base) {
    let text = input.replace(/^[\0-\x20]+|[\0-\x20]+$/g, '').replace(/[\t\n\r]/g, '');
    const url = { protocol: '', username: '', password: '', host: null, port: '', path: [], opaque: null, query: null, fragment: null };
    const hash = text.indexOf('#');
    if (hash >= 0) {
      url.fragment = encode(text.slice(hash + 1), FRAGMENT);
      text = text.slice(0, hash);
    }
    const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text);
    let rest;
    if (scheme) {
      url.protocol = scheme[0].toLowerCase();
      rest = text.slice(scheme[0].length);
      if (isSpecial(url.protocol)) {
        if (url.protocol !== 'file:' && base && base.protocol === url.protocol && !/^[/\\]/.test(rest)) return relative(url, rest, base);
        rest = rest.replace(/\\/g, '\\');
        if (url.protocol === 'file:') return file(url, rest, base && base.protocol === 'file:' ? base : null);
        return authority(url, rest.replace(/^[/\\]*/, ''));
      }
      if (rest.startsWith('//')) return authority(url, rest.slice(2));
      if (rest.startsWith('/')) return tail(url, rest);
      const cut = rest.indexOf('?');
      url.opaque = encode(cut < 0 ? rest : rest.slice(0, cut), OPAQUE);
      if (cut >= 0) url.query = encode(rest.slice(cut + 1), QUERY);
      return url;
    }
    if (!base) return null;
    if (base.opaque !== null) {
      if (text !== '' || hash < 0) return null;
      return { ...base, path: [...base.path], fragment: url.fragment };
    }
    url.protocol = base.protocol;
    if (base.protocol === 'file:') return file(url, text, base);
    return relative(url, text, base);
  }

  function relative(url, text, base) {
    const slash = isSpecial(url.protocol) ? /^[/\\]/ : /^\//;
    if (slash.test(text)) {
      if (slash.test(text.slice(1))) return authority(url, text.replace(isSpecial(url.protocol) ? /^[/\\]*/ : /^\/\//, ''));
      Object.assign(url, { username: base.username, password: base.password, host: base.host, port: base.port });
      return tail(url, text);
    }
    Object.assign(url, { username: base.username, password: base.password, host: base.host, port: base.port, path: [...base.path], query: base.query });
    if (text === '') return url;
    if (text.startsWith('?')) return tail(url, text, true);
    shorten(url);
    url.query = null;
    return tail(url, text, true);
  }

  function file(url, text, base) {
    url.host = '';
    if (/^[/\\]{2}/.test(text)) {
      const match = /^[/\\]{2}([^/\\?]*)/.exec(text);
      if (/^[a-zA-Z][:|]$/.test(match[1])) return tail(url, text.slice(1));
      if (match[1] !== '') {
        const host = parseHost(match[1], true);
        if (host === null) return null;
        url.host = host === 'localhost' ? '' : host;
      }
      return tail(url, text.slice(match[0].length));
    }
    if (/^[/\\]/.test(text)) {
      if (base) url.host = base.host;
      return tail(url, text);
    }
    if (base) {
      url.host = base.host;
      url.path = [...base.path];
      if (text === '') { url.query = base.query; return url; }
      if (text.startsWith('?')) return tail(url, text, true);
      shorten(url);
      return tail(url, text, true);
    }
    return tail(url, text);
  }

  function authority(url, rest) {
    const special = isSpecial(url.protocol);
    const end = rest.search(special ? /[/\\?]/ : /[/?]/);
    let host = end < 0 ? rest : rest.slice(0, end);
    const at = host.lastIndexOf('@');
    if (at >= 0) {
      const who = host.slice(0, at);
      const colon = who.indexOf(':');
      url.username = encode(colon < 0 ? who : who.slice(0, colon), USER);
      url.password = colon < 0 ? '' : encode(who.slice(colon + 1), USER);
      host = host.slice(at + 1);
      if (host === '') return null;
    }
    const port = /:(\d*)$/.exec(host);
    if (port) {
      host = host.slice(0, port.index);
      if (port[1] !== '') {
        if (Number(port[1]) > 65535) return null;
        url.port = String(Number(port[1]));
        if (url.port === SPECIAL[url.protocol]) url.port = '';
      }
    } else if (/:[^\]]*$/.test(host)) return null;
    if (host === '') {
      if (special || port || at >= 0) return null;
      url.host = '';
    } else {
      url.host = parseHost(host, special);
      if (url.host === null) return null;
    }
    return tail(url, end < 0 ? '' : rest.slice(end));
  }

  // The path and the query.
  function tail(url, text, keep = false) {
    const special = isSpecial(url.protocol);
    const cut = text.indexOf('?');
    let way = cut < 0 ? text : text.slice(0, cut);
    if (cut >= 0) url.query = encode(text.slice(cut + 1), special ? SPECIAL_QUERY : QUERY);
    if (way === '' && (keep || (!special && cut >= 0) || !special)) {
      if (special && url.path.length === 0) url.path = [''];
      return url;
    }
    if (special) way = way.replaceAll('\\', '/');
    const parts = (way.startsWith('/') ? way.slice(1) : way).split('/');
    parts.forEach((part, index) => {
      const last = index === parts.length - 1;
      const plain = part.toLowerCase().replaceAll('%2e', '.');
      if (plain === '..') {
        shorten(url);
        if (last) url.path.push('');
      } else if (plain === '.') {
        if (last) url.path.push('');
      } else {
        if (url.protocol === 'file:' && url.path.length === 0 && /^[a-zA-Z][:|]$/.test(part)) part = `${part[0]}:`;
        url.path.push(encode(part, PATH));
      }
    });
    return url;
  }

  const pathname = (url) => (url.opaque !== null ? url.opaque : url.path.length ? `/${url.path.join('/')}` : '');
  function serialize(url, withFragment = true) {
    let out = url.protocol;
    if (url.host !== null) {
      out += '//';
      if (url.username || url.password) out += `${url.username}${url.password ? `:${url.password}` : ''}@`;
      out += url.host + (url.port ? `:${url.port}` : '');
    } else if (url.opaque === null && url.path.length > 1 && url.path[0] === '') out += '/.';
    out += pathname(url);
    if (url.query !== null) out += `?${url.query}`;
    if (withFragment && url.fragment !== null) out += `#${url.fragment}`;
    return out;
  }

  const FORM = /[^A-Za-z0-9*\-._ ]/;
  const formEncode = (text) => encode(text, FORM).replaceAll(' ', '+').replace(/[!'()~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  const formDecode = (text) => decodePercent(text.replaceAll('+', ' '));
  const parseForm = (text) => text.split('&').filter((part) => part !== '').map((part) => {
    const cut = part.indexOf('=');
    return cut < 0 ? [formDecode(part), ''] : [formDecode(part.slice(0, cut)), formDecode(part.slice(cut + 1))];
  });

  class URLSearchParams {
    #list = [];
    #owner = null;
    constructor(init) {
      if (init === undefined || init === null) return;
      if (typeof init === 'object' || typeof init === 'function') {
        const iterate = init[Symbol.iterator];
        if (iterate !== undefined && iterate !== null) {
          if (typeof iterate !== 'function') throw coded(TypeError, 'ERR_ARG_NOT_ITERABLE', 'Query pairs must be iterable');
          for (const pair of init) {
            if (pair === null || typeof pair !== 'object' || typeof pair[Symbol.iterator] !== 'function' || [...pair].length !== 2) {
              throw coded(TypeError, 'ERR_INVALID_TUPLE', 'Each query pair must be an iterable [name, value] tuple');
            }
            const [name, value] = pair;
            this.#list.push([`${name}`.toWellFormed(), `${value}`.toWellFormed()]);
          }
        } else for (const key of Reflect.ownKeys(init)) {
          if (typeof key === 'string' && Object.prototype.propertyIsEnumerable.call(init, key)) this.#list.push([key.toWellFormed(), `${init[key]}`.toWellFormed()]);
        }
      } else {
        const text = `${init}`;
        this.#list = parseForm(text.startsWith('?') ? text.slice(1) : text);
      }
    }
    static _of(text, owner) {
      const params = new URLSearchParams(text);
      params.#owner = owner;
      return params;
    }
    static _reset(params, text) { params.#list = parseForm(text); }
    #changed() { this.#owner?.(this.toString()); }
    #need(args, count, ...names) {
      if (args.length < count) {
        const words = names.map((name) => `"${name}"`);
        throw coded(TypeError, 'ERR_MISSING_ARGS', `The ${words.join(' and ')} argument${count > 1 ? 's' : ''} must be specified`);
      }
    }
    get size() { return this.#list.length; }
    append(name, value) {
      this.#need(arguments, 2, 'name', 'value');
      this.#list.push([`${name}`.toWellFormed(), `${value}`.toWellFormed()]);
      this.#changed();
    }
    delete(name, value) {
      this.#need(arguments, 1, 'name');
      this.#list = this.#list.filter(([key, one]) => key !== `${name}` || (value !== undefined && one !== `${value}`));
      this.#changed();
    }
    get(name) { this.#need(arguments, 1, 'name'); return this.#list.find(([key]) => key === `${name}`)?.[1] ?? null; }
    getAll(name) { this.#need(arguments, 1, 'name'); return this.#list.filter(([key]) => key === `${name}`).map((pair) => pair[1]); }
    has(name, value) { this.#need(arguments, 1, 'name'); return this.#list.some(([key, one]) => key === `${name}` && (value === undefined || one === `${value}`)); }
    set(name, value) {
      this.#need(arguments, 2, 'name', 'value');
      const index = this.#list.findIndex(([key]) => key === `${name}`);
      if (index < 0) this.#list.push([`${name}`, `${value}`]);
      else {
        this.#list[index][1] = `${value}`;
        this.#list = this.#list.filter(([key], at) => at <= index || key !== `${name}`);
      }
      this.#changed();
    }
    sort() {
      this.#list.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
      this.#changed();
    }
    forEach(callback, self) {
      if (typeof callback !== 'function') throw invalidArgType('callback', 'function', callback);
      for (const [name, value] of this.#list) callback.call(self, value, name, this);
    }
    * entries() { for (let at = 0; at < this.#list.length; at++) yield [...this.#list[at]]; }
    * keys() { for (let at = 0; at < this.#list.length; at++) yield this.#list[at][0]; }
    * values() { for (let at = 0; at < this.#list.length; at++) yield this.#list[at][1]; }
    toString() { return this.#list.map(([name, value]) => `${formEncode(name)}=${formEncode(value)}`).join('&'); }
    [custom](depth, options) {
      const { inspect } = require('_inspect');
      if (depth < 0) return '[Object]';
      if (this.#list.length === 0) return 'URLSearchParams {}';
      return `URLSearchParams { ${this.#list.map(([name, value]) => `${inspect(name, options)} => ${inspect(value, options)}`).join(', ')} }`;
    }
  }
  Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, { value: URLSearchParams.prototype.entries, writable: true, configurable: true });
  Object.defineProperty(URLSearchParams.prototype, Symbol.toStringTag, { value: 'URLSearchParams', configurable: true });
  for (const name of ['append', 'delete', 'get', 'getAll', 'has', 'set', 'sort', 'entries', 'forEach', 'keys', 'values', 'toString', 'size']) {
    Object.defineProperty(URLSearchParams.prototype, name, { enumerable: true });
  }

  class URL {
    #url;
    #params = null;
    constructor(input, base) {
      if (arguments.length === 0) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "url" argument must be specified');
      input = `${input}`;
      let from = null;
      if (base !== undefined) {
        from = parse(`${base}`.toWellFormed(), null);
        if (!from) throw URL.#invalid(input, `${base}`);
      }
      const url = parse(input.toWellFormed(), from);
      if (!url) throw URL.#invalid(input, base === undefined ? undefined : `${base}`);
      this.#url = url;
    }
    static #invalid(input, base) {
      const error = coded(TypeError, 'ERR_INVALID_URL', 'Invalid URL');
      error.input = input;
      if (base !== undefined) error.base = base;
      return error;
    }
    static canParse(input, base) {
      const from = base === undefined ? null : parse(`${base}`, null);
      return (base === undefined || from !== null) && parse(`${input}`, from) !== null;
    }
    static parse(input, base) { return URL.canParse(input, base) ? new URL(input, base) : null; }
    static createObjectURL() { throw require('_errors').unsupported('URL.createObjectURL'); }
    static revokeObjectURL() {}
    get href() { return serialize(this.#url); }
    set href(value) {
      const url = parse(`${value}`, null);
      if (!url) throw URL.#invalid(`${value}`);
      this.#url = url;
      this.#refresh();
    }
    #refresh() { if (this.#params) URLSearchParams._reset(this.#params, this.#url.query ?? ''); }
    get origin() {
      const { protocol, host, port, opaque } = this.#url;
      if (protocol === 'blob:') { try { const inner = new URL(opaque); return /^https?:$/.test(inner.protocol) ? inner.origin : 'null'; } catch { return 'null'; } }
      return isSpecial(protocol) && protocol !== 'file:' ? `${protocol}//${host}${port ? `:${port}` : ''}` : 'null';
    }
    get protocol() { return this.#url.protocol; }
    set protocol(value) {
      const match = /^([a-zA-Z][a-zA-Z0-9+.-]*)(?::|$)/.exec(`${value}`);
      if (!match) return;
      const protocol = `${match[1].toLowerCase()}:`;
      if (isSpecial(protocol) !== isSpecial(this.#url.protocol) || (protocol === 'file:' && (this.#url.port || this.#url.username))) return;
      this.#url.protocol = protocol;
      if (this.#url.port === SPECIAL[protocol]) this.#url.port = '';
    }
    #fixed() { return this.#url.host === null || this.#url.host === '' || this.#url.protocol === 'file:'; }
    get username() { return this.#url.username; }
    set username(value) { if (!this.#fixed()) this.#url.username = encode(`${value}`, USER); }
    get password() { return this.#url.password; }
    set password(value) { if (!this.#fixed()) this.#url.password = encode(`${value}`, USER); }
    get host() { return (this.#url.host ?? '') + (this.#url.port ? `:${this.#url.port}` : ''); }
    set host(value) {
      if (this.#url.opaque !== null) return;
      const match = /^(\[[^\]]*\]|[^:/?#\\]*)(?::(\d*))?/.exec(`${value}`);
      const host = parseHost(match[1], isSpecial(this.#url.protocol));
      if (host === null) return;
      this.#url.host = host;
      if (match[2]) this.port = match[2];
    }
    get hostname() { return this.#url.host ?? ''; }
    set hostname(value) {
      if (this.#url.opaque !== null) return;
      const host = parseHost(`${value}`.replace(/[:/?#\\].*$/s, (rest) => (`${value}`.startsWith('[') ? rest : '')), isSpecial(this.#url.protocol));
      if (host !== null) this.#url.host = host;
    }
    get port() { return this.#url.port; }
    set port(value) {
      if (this.#fixed()) return;
      const text = `${value}`;
      if (text === '') { this.#url.port = ''; return; }
      const match = /^\d+/.exec(text);
      if (!match || Number(match[0]) > 65535) return;
      this.#url.port = String(Number(match[0]));
      if (this.#url.port === SPECIAL[this.#url.protocol]) this.#url.port = '';
    }
    get pathname() { return pathname(this.#url); }
    set pathname(value) {
      if (this.#url.opaque !== null) return;
      const { query } = this.#url;
      this.#url.path = [];
      tail(this.#url, `${value}`.replaceAll('?', '%3F').replaceAll('#', '%23') || (isSpecial(this.#url.protocol) ? '/' : ''));
      this.#url.query = query;
    }
    get search() { return this.#url.query ? `?${this.#url.query}` : ''; }
    set search(value) {
      const text = `${value}`.replace(/^\?/, '');
      this.#url.query = text === '' ? null : encode(text, isSpecial(this.#url.protocol) ? SPECIAL_QUERY : QUERY);
      this.#refresh();
    }
    get searchParams() {
      this.#params ??= URLSearchParams._of(this.#url.query ?? '', (text) => { this.#url.query = text === '' ? null : text; });
      return this.#params;
    }
    get hash() { return this.#url.fragment ? `#${this.#url.fragment}` : ''; }
    set hash(value) {
      const text = `${value}`.replace(/^#/, '');
      this.#url.fragment = text === '' ? null : encode(text, FRAGMENT);
    }
    toString() { return this.href; }
    toJSON() { return this.href; }
    [custom](depth, options) {
      const { inspect } = require('_inspect');
      if (typeof depth === 'number' && depth < 0) return this.href;
      const shown = Object.create({ constructor: this.constructor === URL ? URL : this.constructor });
      for (const name of ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'searchParams', 'hash']) shown[name] = this[name];
      return `${this.constructor.name} ${inspect(Object.assign({}, shown), options)}`;
    }
  }
  Object.defineProperty(URL.prototype, Symbol.toStringTag, { value: 'URL', configurable: true });
  for (const name of ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'searchParams', 'hash', 'toString', 'toJSON']) {
    Object.defineProperty(URL.prototype, name, { enumerable: true });
  }
  for (const Type of [URLSearchParams]) { delete Type.of; }

  exports.URL = URL;
  exports.URLSearchParams = URLSearchParams;
  exports.parseHost = parseHost;
  exports.decodePercent = decodePercent;
})
