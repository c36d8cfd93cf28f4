// Modules of ECMAScript: how their names are resolved, and what the engine gets as their source.
(function (exports, require, module, native) {
  'use strict';

  const path = require('path');
  const errors = require('_errors');
  const { coded } = errors;
  const CommonJS = require('module');
  const { builtin, refuse, findBare, imported, packageOf, kindOf, readText, realPath, isModule, publicModule } = CommonJS._internal;

  const IMPORT = ['node', 'import', 'module-sync'];
  // Modules that have no file: their sources by name.
  const made = new Map();

  exports.urlOf = (file) => `file://${encodeURI(file).replace(/[?#]/g, encodeURIComponent)}`;
  exports.pathOf = (name) => {
    if (typeof name !== 'string') return null;
    if (name.startsWith('file://')) {
      try {
        return decodeURIComponent(name.slice(7).replace(/[?#].*$/s, ''));
      } catch {
        return name.slice(7);
      }
    }
    return name.startsWith('/') ? name : null;
  };

  exports.resolve = (name, base) => {
    const own = builtin(name);
    if (own !== null) return `node:${own}`;
    if (/^data:/.test(name)) return name;
    if (/^https?:/.test(name)) throw coded(Error, 'ERR_UNSUPPORTED_ESM_URL_SCHEME', `Only URLs with a scheme in: file, data, and node are supported by the default ESM loader. Received protocol '${name.slice(0, name.indexOf(':') + 1)}'`);
    const from = exports.pathOf(base) ?? path.join(require('process').cwd(), '[eval1]');
    let file, query = '';
    if (name.startsWith('file:')) {
      query = /[?#].*$/s.exec(name)?.[0] ?? '';
      file = exports.pathOf(name);
    } else if (/^\.{0,2}\//.test(name) || name === '.' || name === '..') {
      query = /[?#].*$/s.exec(name)?.[0] ?? '';
      file = path.resolve(path.dirname(from), decodeURIComponent(name.slice(0, name.length - query.length)));
    } else if (name.startsWith('#')) {
      const found = imported(name, from, IMPORT);
      if (found.bare) return exports.resolve(found.bare, exports.urlOf(from));
      file = found;
    } else {
      file = findBare(name, path.dirname(from), IMPORT, false);
      if (!file) {
        refuse(name);
        const parts = /^(@[^/]+\/[^/]+|[^/]+)/.exec(name)?.[1] ?? name;
        throw coded(Error, 'ERR_MODULE_NOT_FOUND', `Cannot find package '${parts}' imported from ${from}`);
      }
    }
    const kind = kindOf(file);
    if (kind === 'directory') {
      const error = coded(Error, 'ERR_UNSUPPORTED_DIR_IMPORT', `Directory import '${file}' is not supported resolving ES modules imported from ${from}`);
      error.url = exports.urlOf(file);
      throw error;
    }
    if (kind === null) {
      const error = coded(Error, 'ERR_MODULE_NOT_FOUND', `Cannot find module '${file}' imported from ${from}`);
      error.url = exports.urlOf(file);
      throw error;
    }
    return exports.urlOf(realPath(file)) + query;
  };
  exports.resolveForEngine = (name, base) => (made.has(name) ? name : exports.resolve(name, base));

  const NAME = /^[A-Za-z_$][\w$]*$/;
  const RESERVED = new Set(('break case catch class const continue debugger default delete do else enum export extends false finally for function if import in instanceof new null return super switch this throw true try typeof var void while with yield let static await implements interface package private protected public arguments eval').split(' '));
  const KEY = '__wardian_exports__';
  const shared = new Map();
  Object.defineProperty(globalThis, KEY, { value: (name) => shared.get(name)(), enumerable: false, configurable: false, writable: false });

  // A module that exports what a function returns, under these names too.
  function facade(name, names, get) {
    shared.set(name, get);
    const good = [...new Set(names)].filter((one) => NAME.test(one) && one !== 'default');
    const lines = [`const $ = globalThis.${KEY}(${JSON.stringify(name)});`, 'export default $;'];
    good.forEach((one, index) => lines.push(`const $${index} = $?.${one}; export { $${index} as ${one} };`));
    return lines.join(' ');
  }
  void RESERVED;

  // Names that a CommonJS module seems to export.
  function namesIn(source, file, seen = new Set()) {
    const names = new Set();
    for (const match of source.matchAll(/(?:^|[^.\w$])(?:module\.)?exports\.([A-Za-z_$][\w$]*)\s*=/g)) names.add(match[1]);
    for (const match of source.matchAll(/(?:module\.)?exports\[\s*['"]([^'"]+)['"]\s*\]\s*=/g)) names.add(match[1]);
    for (const match of source.matchAll(/Object\.defineProperty\(\s*(?:module\.)?exports\s*,\s*['"]([^'"]+)['"]/g)) names.add(match[1]);
    const whole = /module\.exports\s*=\s*\{([^}]*)/.exec(source);
    if (whole) {
      for (const part of whole[1].split(',')) {
        const match = /^\s*(?:['"]([^'"]+)['"]|([A-Za-z_$][\w$]*))\s*(?::|$|\()/.exec(part.replace(/\/\*.*?\*\/|\/\/.*/gs, ''));
        if (match) names.add(match[1] ?? match[2]);
      }
    }
    for (const match of source.matchAll(/(?:module\.exports\s*=\s*|__exportStar\(\s*|__export\(\s*)require\(\s*['"]([^'"]+)['"]\s*\)/g)) {
      try {
        const other = CommonJS._resolveFilename(match[1], { filename: file });
        if (builtin(other) !== null) Object.keys(publicModule(builtin(other))).forEach((name) => names.add(name));
        else if (!seen.has(other)) {
          seen.add(other);
          namesIn(readText(other), other, seen).forEach((name) => names.add(name));
        }
      } catch {
        // It will fail when it runs.
      }
    }
    return names;
  }

  exports.source = (name, kind) => {
    if (made.has(name)) return made.get(name);
    if (name.startsWith('node:')) {
      const library = publicModule(name.slice(5));
      const names = typeof library === 'object' || typeof library === 'function' ? Object.keys(library) : [];
      return facade(name, names.filter((one) => { try { return library[one] !== undefined; } catch { return false; } }), () => library);
    }
    if (name.startsWith('data:')) return dataSource(name);
    const file = exports.pathOf(name);
    const extension = path.extname(file);
    if (extension === '.json' || kind === 'json') {
      if (kind !== 'json') throw coded(TypeError, 'ERR_IMPORT_ASSERTION_TYPE_MISSING', `Module "${name}" needs an import attribute of type "json"`);
      const value = CommonJS._load(file, undefined);
      return facade(name, [], () => value);
    }
    if (extension === '.node') CommonJS._extensions['.node'](null, file);
    if (extension === '.wasm') throw errors.unsupported(`${file}:`, 'WebAssembly is not available in scripts: run the program itself as a command');
    let source, type = isModule(file);
    if (/\.[cm]?ts$/.test(file)) source = require('_typescript').strip(readText(file), file);
    else {
      source = readText(file);
      if (extension !== '' && !['.js', '.mjs', '.cjs'].includes(extension) && type) {
        throw coded(TypeError, 'ERR_UNKNOWN_FILE_EXTENSION', `Unknown file extension "${extension}" for ${file}`);
      }
    }
    if (type === undefined) type = CommonJS._internal.isModuleSyntax(source);
    if (!type) {
      const names = namesIn(source, file);
      return facade(name, names, () => CommonJS._load(file, undefined));
    }
    return source.startsWith('#!') ? `//${source.slice(2)}` : source;
  };

  function dataSource(name) {
    const match = /^data:([^,;]*)(;[^,]*)?,(.*)$/s.exec(name);
    if (!match) throw coded(TypeError, 'ERR_INVALID_URL', 'Invalid URL');
    const body = /;base64/.test(match[2] ?? '') ? Buffer.from(decodeURIComponent(match[3]), 'base64').toString() : decodeURIComponent(match[3]);
    if (match[1] === 'application/json') {
      const value = JSON.parse(body);
      return facade(name, [], () => value);
    }
    return body;
  }

  exports.describe = (meta, name) => {
    if (name.startsWith('node:')) return;
    const file = exports.pathOf(name);
    if (name.startsWith('file:')) {
      meta.dirname = path.dirname(file);
      meta.filename = file;
    }
    meta.resolve = (request) => {
      try {
        return exports.resolve(`${request}`, name);
      } catch (error) {
        // Files need not exist to be named.
        if (error.code === 'ERR_MODULE_NOT_FOUND' && error.url) return error.url;
        throw error;
      }
    };
    meta.url = made.has(name) ? exports.urlOf(path.join(require('process').cwd(), name)) : name;
  };

  // Imports a module by name; its sources may be given.
  let importer;
  exports.import = (name, source) => {
    if (source !== undefined) made.set(name, source);
    importer ??= native.evaluate('(name) => import(name)', 'node:internal/import');
    return importer(name);
  };

  exports.requireSync = (file) => {
    const promise = exports.import(exports.urlOf(file));
    // The engine's own jobs alone: what the script wanted later stays for later.
    let state = native.promise(promise);
    while (state[0] === 0 && native.job()) state = native.promise(promise);
    if (state[0] === 2) {
      promise.catch(() => {});
      throw state[1];
    }
    if (state[0] === 0) throw coded(Error, 'ERR_REQUIRE_ASYNC_MODULE', 'require() cannot be used on an ESM graph with top-level await. Use import() instead.');
    const namespace = state[1];
    return Object.hasOwn(namespace, 'module.exports') ? namespace['module.exports'] : namespace;
  };
  void packageOf;
})
