// fetch, Headers, Request, Response, FormData.
(function (exports, require, module, native) {
  'use strict';

  const custom = Symbol.for('nodejs.util.inspect.custom');
  const { DOMException } = require('_events');
  const nameOf = (name) => {
    name = `${name}`;
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)) throw new TypeError(`Headers.append: ${name} is an invalid header name.`);
    return name.toLowerCase();
  };
  const valueOf = (value) => {
    value = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, '');
    if (/[\0\n\r]|[^\0-\xff]/.test(value)) throw new TypeError(`Headers.append: ${value} is an invalid header value.`);
    return value;
  };

  class Headers {
    #list = [];
    constructor(init) {
      if (init === undefined || init === null) return;
      const pairs = typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init);
      for (const pair of pairs) {
        if ([...pair].length !== 2) throw new TypeError('Headers constructor: expected name/value pair to be length 2, found ' + [...pair].length + '.');
        this.append(pair[0], pair[1]);
      }
    }
    append(name, value) { this.#list.push([nameOf(name), valueOf(value)]); }
    delete(name) { name = nameOf(name); this.#list = this.#list.filter(([key]) => key !== name); }
    get(name) {
      name = nameOf(name);
      const found = this.#list.filter(([key]) => key === name).map((pair) => pair[1]);
      return found.length ? found.join(name === 'cookie' ? '; ' : ', ') : null;
    }
    getSetCookie() { return this.#list.filter(([key]) => key === 'set-cookie').map((pair) => pair[1]); }
    has(name) { name = nameOf(name); return this.#list.some(([key]) => key === name); }
    set(name, value) { this.delete(name); this.append(name, value); }
    #sorted() {
      const names = [...new Set(this.#list.map(([key]) => key))].sort();
      return names.flatMap((name) => (name === 'set-cookie' ? this.getSetCookie().map((value) => [name, value]) : [[name, this.get(name)]]));
    }
    forEach(fn, self) { for (const [name, value] of this.#sorted()) fn.call(self, value, name, this); }
    * entries() { yield* this.#sorted(); }
    * keys() { for (const [name] of this.#sorted()) yield name; }
    * values() { for (const [, value] of this.#sorted()) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    [custom](depth, options) { return `Headers ${require('_inspect').inspect(Object.fromEntries(this.#sorted()), options)}`; }
  }
  Object.defineProperty(Headers.prototype, Symbol.toStringTag, { value: 'Headers', configurable: true });
  exports.Headers = Headers;

  class FormData {
    #list = [];
    constructor(form) { if (form !== undefined) throw new TypeError("FormData constructor: Argument 1 could not be converted to: undefined."); }
    #value(value, file) {
      const { Blob, File } = require('_blob');
      if (value instanceof Blob) return value instanceof File && file === undefined ? value : new File([value], file ?? 'blob', { type: value.type });
      return `${value}`;
    }
    append(name, value, file) { this.#list.push([`${name}`, this.#value(value, file)]); }
    set(name, value, file) {
      const index = this.#list.findIndex(([key]) => key === `${name}`);
      const pair = [`${name}`, this.#value(value, file)];
      this.#list = this.#list.filter(([key], at) => key !== `${name}` || at === index);
      if (index < 0) this.#list.push(pair);
      else this.#list[index] = pair;
    }
    delete(name) { this.#list = this.#list.filter(([key]) => key !== `${name}`); }
    get(name) { return this.#list.find(([key]) => key === `${name}`)?.[1] ?? null; }
    getAll(name) { return this.#list.filter(([key]) => key === `${name}`).map((pair) => pair[1]); }
    has(name) { return this.#list.some(([key]) => key === `${name}`); }
    forEach(fn, self) { for (const [name, value] of this.#list) fn.call(self, value, name, this); }
    * entries() { yield* this.#list; }
    * keys() { for (const [name] of this.#list) yield name; }
    * values() { for (const [, value] of this.#list) yield value; }
    [Symbol.iterator]() { return this.entries(); }
  }
  Object.defineProperty(FormData.prototype, Symbol.toStringTag, { value: 'FormData', configurable: true });
  exports.FormData = FormData;

  async function multipart(form) {
    const boundary = `----formdata-${native.decodeHex(native.randomBytes(12))}`;
    const parts = [];
    const quote = (text) => text.replaceAll('\n', '%0A').replaceAll('\r', '%0D').replaceAll('"', '%22');
    for (const [name, value] of form) {
      let head = `--${boundary}\r\nContent-Disposition: form-data; name="${quote(name)}"`;
      if (typeof value === 'string') parts.push(Buffer.from(`${head}\r\n\r\n${value.replace(/\r?\n|\r/g, '\r\n')}\r\n`));
      else {
        head += `; filename="${quote(value.name)}"\r\nContent-Type: ${value.type || 'application/octet-stream'}`;
        parts.push(Buffer.from(`${head}\r\n\r\n`), Buffer.from(await value.arrayBuffer()), Buffer.from('\r\n'));
      }
    }
    parts.push(Buffer.from(`--${boundary}--\r\n`));
    return { bytes: Buffer.concat(parts), type: `multipart/form-data; boundary=${boundary}` };
  }
  function parseMultipart(bytes, boundary) {
    const form = new FormData();
    const text = bytes.toString('latin1');
    for (const part of text.split(`--${boundary}`).slice(1, -1)) {
      const cut = part.indexOf('\r\n\r\n');
      const head = Buffer.from(part.slice(0, cut), 'latin1').toString(), body = Buffer.from(part.slice(cut + 4, -2), 'latin1');
      const name = /[; ]name="([^"]*)"/.exec(head)?.[1] ?? '', file = /filename="([^"]*)"/.exec(head)?.[1];
      if (file === undefined) form.append(name, body.toString());
      else form.append(name, new Blob([body], { type: /content-type:\s*(\S+)/i.exec(head)?.[1] ?? '' }), file);
    }
    return form;
  }

  // What a request or a response has in it.
  class Body {
    #body = null; #stream = null; #used = false;
    _set(body, headers) {
      if (body === undefined || body === null) return;
      const { Blob } = require('_blob');
      const type = (kind) => { if (!headers.has('content-type') && kind) headers.set('content-type', kind); };
      if (typeof body === 'string') type('text/plain;charset=UTF-8');
      else if (body instanceof URLSearchParams) { type('application/x-www-form-urlencoded;charset=UTF-8'); body = body.toString(); }
      else if (body instanceof Blob) type(body.type);
      else if (body instanceof FormData) {
        const form = multipart(body);
        body = { async *[Symbol.asyncIterator]() { yield (await form).bytes; }, _form: form };
      } else if (!(ArrayBuffer.isView(body) || body instanceof ArrayBuffer || body[Symbol.asyncIterator])) { body = `${body}`; type('text/plain;charset=UTF-8'); }
      this.#body = body;
    }
    get _raw() { return this.#body; }
    get body() {
      if (this.#body === null) return null;
      this.#stream ??= require('stream/web').ReadableStream.from(this.#chunks());
      return this.#stream;
    }
    async* #chunks() {
      const body = this.#body;
      if (typeof body === 'string') yield native.encodeUtf8(body);
      else if (body instanceof ArrayBuffer) yield new Uint8Array(body);
      else if (ArrayBuffer.isView(body)) yield new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
      else if (body instanceof require('_blob').Blob) yield new Uint8Array(await body.arrayBuffer());
      else for await (const part of body) yield typeof part === 'string' ? native.encodeUtf8(part) : new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
    }
    get bodyUsed() { return this.#used; }
    async #bytes() {
      if (this.#used || this.#stream?.locked) throw new TypeError('Body is unusable: Body has already been read');
      if (this.#body !== null) this.#used = true;
      const parts = [];
      if (this.#body !== null) for await (const part of this.#stream ?? this.#chunks()) parts.push(Buffer.from(part));
      return Buffer.concat(parts);
    }
    async arrayBuffer() { return new Uint8Array(await this.#bytes()).buffer; }
    async bytes() { return new Uint8Array(await this.#bytes()); }
    async text() { return new TextDecoder().decode(await this.#bytes()); }
    async json() { return JSON.parse(await this.text()); }
    async blob() { return new Blob([await this.#bytes()], { type: this.headers.get('content-type') ?? '' }); }
    async formData() {
      const type = this.headers.get('content-type') ?? '';
      if (/^multipart\/form-data/i.test(type)) return parseMultipart(await this.#bytes(), /boundary="?([^";]+)/i.exec(type)?.[1]);
      const form = new FormData();
      for (const [name, value] of new URLSearchParams(await this.text())) form.append(name, value);
      return form;
    }
    _copy() {
      if (this.#used) throw new TypeError('Response.clone: Body has already been consumed.');
      if (this.#body === null || typeof this.#body === 'string' || ArrayBuffer.isView(this.#body)) return this.#body;
      const [one, other] = this.body.tee();
      this.#stream = one;
      return other;
    }
  }

  class Request extends Body {
    #url;
    constructor(input, init = {}) {
      super();
      const from = input instanceof Request ? input : null;
      try {
        this.#url = new URL(from ? from.url : input);
      } catch (error) {
        throw new TypeError(`Failed to parse URL from ${input}`, { cause: error });
      }
      if (this.#url.username || this.#url.password) throw new TypeError(`Request cannot be constructed from a URL that includes credentials: ${input}`);
      const method = `${init.method ?? from?.method ?? 'GET'}`;
      this.method = /^(?:delete|get|head|options|post|put)$/i.test(method) ? method.toUpperCase() : method;
      this.headers = new Headers(init.headers ?? from?.headers);
      this.redirect = init.redirect ?? from?.redirect ?? 'follow';
      this.signal = init.signal ?? from?.signal ?? new AbortController().signal;
      this.cache = init.cache ?? 'default';
      this.credentials = init.credentials ?? 'same-origin';
      this.mode = init.mode ?? 'cors';
      this.duplex = 'half';
      const body = init.body ?? from?._raw;
      if (body !== undefined && body !== null && (this.method === 'GET' || this.method === 'HEAD')) throw new TypeError('Request with GET/HEAD method cannot have body.');
      if (init.body && init.body[Symbol.asyncIterator] && !init.duplex) throw new TypeError('RequestInit: duplex option is required when sending a body.');
      this._set(body, this.headers);
    }
    get url() { return this.#url.href; }
    clone() { return new Request(this, { body: this._copy() ?? undefined }); }
  }

  class Response extends Body {
    #status; #text; #url = ''; #redirected = false; #type = 'default';
    constructor(body = null, init = {}) {
      super();
      this.#status = init.status ?? 200;
      if (!(this.#status >= 200 && this.#status <= 599) && !init._any) throw new RangeError(`init["status"] must be in the range of 200 to 599, inclusive.`);
      this.#text = init.statusText ?? '';
      this.headers = new Headers(init.headers);
      if (body !== null && [101, 204, 205, 304].includes(this.#status)) throw new TypeError(`Response constructor: Invalid response status code ${this.#status}`);
      this._set(body, this.headers);
    }
    static _from(body, init, url, redirected) {
      const response = new Response(body, init);
      response.#url = url;
      response.#redirected = redirected;
      response.#type = 'basic';
      return response;
    }
    get status() { return this.#status; }
    get statusText() { return this.#text; }
    get ok() { return this.#status >= 200 && this.#status < 300; }
    get url() { return this.#url; }
    get redirected() { return this.#redirected; }
    get type() { return this.#type; }
    clone() {
      const copy = new Response(this._copy(), { status: this.#status, statusText: this.#text, headers: this.headers });
      copy.#url = this.#url;
      return copy;
    }
    static json(value, init = {}) {
      const headers = new Headers(init.headers);
      if (!headers.has('content-type')) headers.set('content-type', 'application/json');
      return new Response(JSON.stringify(value), { ...init, headers });
    }
    static redirect(url, status = 302) { return new Response(null, { status, headers: { location: new URL(url).href } }); }
    static error() { const response = new Response(); response.#status = 0; response.#type = 'error'; return response; }
    [custom](depth, options) {
      const { inspect } = require('_inspect');
      return `Response ${inspect({ status: this.status, statusText: this.statusText, headers: this.headers, body: this.body, bodyUsed: this.bodyUsed, ok: this.ok, redirected: this.redirected, type: this.type, url: this.url }, options)}`;
    }
  }
  for (const Type of [Request, Response]) Object.defineProperty(Type.prototype, Symbol.toStringTag, { value: Type.name, configurable: true });
  exports.Request = Request;
  exports.Response = Response;

  const MOST_REDIRECTS = 20;
  exports.fetch = async function fetch(input, init) {
    if (arguments.length === 0) throw new TypeError("fetch: 1 argument required, but 0 present.");
    const request = new Request(input, init);
    const aborted = () => request.signal.reason ?? new DOMException('This operation was aborted', 'AbortError');
    if (request.signal.aborted) throw aborted();
    let url = new URL(request.url), { method } = request, body = null, redirected = false;
    const headers = new Headers(request.headers);
    if (url.protocol === 'data:') return dataResponse(url);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('fetch failed', { cause: new Error('unknown scheme') });
    if (request._raw !== null) {
      if (request._raw._form) headers.set('content-type', (await request._raw._form).type);
      body = Buffer.from(await request.arrayBuffer());
    }
    const usual = { accept: '*/*', 'accept-language': '*', 'sec-fetch-mode': 'cors', 'user-agent': 'node', 'accept-encoding': 'gzip, deflate' };
    for (const name of Object.keys(usual)) if (!headers.has(name)) headers.set(name, usual[name]);
    for (let count = 0; ; count++) {
      const response = await once(url, method, headers, body, request.signal, aborted);
      const location = response.headers.location;
      if ([301, 302, 303, 307, 308].includes(response.statusCode) && location && request.redirect !== 'manual') {
        response.resume();
        if (request.redirect === 'error') throw new TypeError('fetch failed', { cause: new Error('unexpected redirect') });
        if (count >= MOST_REDIRECTS) throw new TypeError('fetch failed', { cause: new Error('redirect count exceeded') });
        const next = new URL(location, url);
        if (response.statusCode === 303 || ((response.statusCode === 301 || response.statusCode === 302) && method === 'POST')) {
          if (method !== 'HEAD') method = 'GET';
          body = null;
          for (const name of ['content-type', 'content-length', 'content-encoding', 'content-language', 'content-location']) headers.delete(name);
        }
        if (next.origin !== url.origin) for (const name of ['authorization', 'cookie', 'host', 'proxy-authorization']) headers.delete(name);
        url = next;
        redirected = true;
        continue;
      }
      const received = new Headers();
      for (let index = 0; index < response.rawHeaders.length; index += 2) received.append(response.rawHeaders[index], response.rawHeaders[index + 1]);
      const coding = (response.headers['content-encoding'] ?? '').toLowerCase();
      let stream = response;
      if (method !== 'HEAD' && (coding === 'gzip' || coding === 'x-gzip' || coding === 'deflate')) {
        const zlib = require('zlib');
        stream = response.pipe(coding === 'deflate' ? zlib.createInflate() : zlib.createGunzip());
        response.on('error', (error) => stream.destroy(error));
      }
      const none = method === 'HEAD' || [204, 205, 304].includes(response.statusCode);
      if (none) response.resume();
      request.signal.addEventListener('abort', () => stream.destroy(aborted()), { once: true });
      return Response._from(none ? null : stream, { status: response.statusCode, statusText: response.statusMessage, headers: received, _any: true }, url.href, redirected);
    }
  };

  function once(url, method, headers, body, signal, aborted) {
    return new Promise((resolve, reject) => {
      const client = require(url.protocol === 'https:' ? 'https' : 'http');
      const list = [];
      for (const [name, value] of headers) list.push(name, value);
      if (body !== null) list.push('content-length', String(body.length));
      else if (method === 'POST' || method === 'PUT' || method === 'PATCH') list.push('content-length', '0');
      const request = client.request(url, { method, headers: list });
      const stop = () => { request.destroy(); reject(aborted()); };
      signal.addEventListener('abort', stop, { once: true });
      request.on('response', (response) => { signal.removeEventListener('abort', stop); resolve(response); });
      request.on('error', (error) => { signal.removeEventListener('abort', stop); reject(new TypeError('fetch failed', { cause: error })); });
      request.end(body ?? undefined);
    });
  }

  function dataResponse(url) {
    const match = /^data:([^,]*?)(;base64)?,(.*)$/s.exec(url.href.replace(/#.*$/s, ''));
    if (!match) throw new TypeError('fetch failed', { cause: new Error('invalid data: URL') });
    const text = require('_url').decodePercent(match[3]);
    return Response._from(match[2] ? Buffer.from(text, 'base64') : text, { headers: { 'content-type': match[1] || 'text/plain;charset=US-ASCII' } }, url.href, false);
  }
})
