// CommonJS modules, and where modules of both kinds are found.
(function (exports, require, module, native) {
  'use strict';

  const path = require('path');
  const errors = require('_errors');
  const { coded, validate, invalidArgValue } = errors;

  const PUBLIC = ['assert', 'assert/strict', 'async_hooks', 'buffer', 'child_process', 'console', 'constants', 'crypto',
    'dgram', 'diagnostics_channel', 'dns', 'dns/promises', 'events', 'fs', 'fs/promises', 'http', 'https', 'module', 'net',
    'os', 'path', 'path/posix', 'path/win32', 'perf_hooks', 'process', 'punycode', 'querystring', 'readline',
    'readline/promises', 'stream', 'stream/consumers', 'stream/promises', 'stream/web', 'string_decoder', 'sys', 'timers',
    'timers/promises', 'tls', 'tty', 'url', 'util', 'util/types', 'v8', 'vm', 'worker_threads', 'zlib'];
  // Only with `node:` in front.
  const SCHEMED = ['test', 'test/reporters'];
  // Node has these; the sandbox does not, and says so.
  const REFUSED = {
    cluster: 'cluster starts processes that share ports: use child_process', http2: 'http2 is not available: use http or https',
    inspector: 'there is no debugger', 'inspector/promises': 'there is no debugger', domain: 'domain is deprecated and not available',
    repl: 'there is no interactive mode', trace_events: 'there is no tracing', wasi: 'WebAssembly is not available in scripts: run the program itself as a command',
    'node:sea': 'single executables cannot be made', 'node:sqlite': 'node:sqlite is not part of Node 20: use the command sqlite3',
  };
  const isPublic = (name) => PUBLIC.includes(name);

  // The library's name for what a script asks for, if it is one of Node's modules.
  function builtin(request) {
    if (request.startsWith('node:')) {
      const name = request.slice(5);
      if (isPublic(name) || SCHEMED.includes(name)) return name;
      if (REFUSED[name] || REFUSED[request]) throw errors.unsupported(`${request}:`, REFUSED[name] ?? REFUSED[request]);
      throw coded(Error, 'ERR_UNKNOWN_BUILTIN_MODULE', `No such built-in module: ${request}`);
    }
    return isPublic(request) ? request : null;
  }
  function refuse(request) {
    if (Object.hasOwn(REFUSED, request)) throw errors.unsupported(`${request}:`, REFUSED[request]);
  }

  const KIND = { 0o100000: 'file', 0o040000: 'directory' };
  function kindOf(file) {
    const stat = native.stat(file, true);
    return typeof stat === 'number' ? null : KIND[stat[1] & 0o170000] ?? 'file';
  }

  function readText(file) {
    const fd = native.open(file, 0, 0);
    if (fd < 0) throw errors.system(fd, 'open', file);
    const bytes = native.readRest(fd);
    native.close(fd);
    if (typeof bytes === 'number') throw errors.system(bytes, 'read');
    const text = native.decodeUtf8(bytes);
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }

  const packages = new Map();
  function packageAt(directory) {
    const file = `${directory === '/' ? '' : directory}/package.json`;
    if (packages.has(file)) return packages.get(file);
    let found = null;
    if (kindOf(file) === 'file') {
      try {
        found = { file, directory, data: JSON.parse(readText(file)) };
      } catch (error) {
        error.message = `Error parsing ${file}: ${error.message}`;
        error.path = file;
        throw error;
      }
    }
    packages.set(file, found);
    return found;
  }
  function packageOf(file) {
    for (let directory = path.dirname(file); ; directory = path.dirname(directory)) {
      if (path.basename(directory) === 'node_modules') return null;
      const found = packageAt(directory);
      if (found) return found;
      if (directory === '/') return null;
    }
  }

  // What `exports` or `imports` of a package give for a name.
  function target(value, conditions, star, owner) {
    if (typeof value === 'string') {
      const file = star === undefined ? value : value.replaceAll('*', star);
      if (file.startsWith('./')) {
        const full = path.join(owner.directory, file);
        if (!full.startsWith(`${owner.directory}/`) || /(^|\/)node_modules(\/|$)/.test(file)) {
          throw coded(Error, 'ERR_INVALID_PACKAGE_TARGET', `Invalid "exports" target ${JSON.stringify(value)} defined in the package config ${owner.file}`);
        }
        return full;
      }
      return { bare: file };
    }
    if (Array.isArray(value)) {
      for (const one of value) {
        const found = target(one, conditions, star, owner);
        if (found) return found;
      }
      return null;
    }
    if (value !== null && typeof value === 'object') {
      for (const key of Object.keys(value)) {
        if (key !== 'default' && !conditions.includes(key)) continue;
        const found = target(value[key], conditions, star, owner);
        if (found !== undefined) return found;
      }
      return undefined;
    }
    return value === null ? null : undefined;
  }

  function mapped(map, name, conditions, owner) {
    if (Object.hasOwn(map, name) && !name.includes('*')) return target(map[name], conditions, undefined, owner);
    let best = null, star;
    for (const key of Object.keys(map)) {
      const cut = key.indexOf('*');
      if (cut < 0) continue;
      const before = key.slice(0, cut), after = key.slice(cut + 1);
      if (name.startsWith(before) && name.endsWith(after) && name.length >= key.length && (!best || before.length > best.indexOf('*'))) {
        best = key;
        star = name.slice(before.length, name.length - after.length);
      }
    }
    return best ? target(map[best], conditions, star, owner) : undefined;
  }

  function exported(owner, subpath, conditions) {
    let map = owner.data.exports;
    const isMap = map !== null && typeof map === 'object' && !Array.isArray(map) && Object.keys(map).some((key) => key.startsWith('.'));
    if (!isMap) map = { '.': map };
    const found = mapped(map, subpath, conditions, owner);
    if (typeof found === 'string') return found;
    if (subpath === '.') throw coded(Error, 'ERR_PACKAGE_PATH_NOT_EXPORTED', `No "exports" main defined in ${owner.file}`);
    throw coded(Error, 'ERR_PACKAGE_PATH_NOT_EXPORTED', `Package subpath '${subpath}' is not defined by "exports" in ${owner.file}`);
  }

  function imported(request, from, conditions) {
    const owner = packageOf(from);
    const map = owner?.data.imports;
    const found = map ? mapped(map, request, conditions, owner) : undefined;
    if (typeof found === 'string') return found;
    if (found?.bare) return { bare: found.bare, from: owner.file };
    throw coded(TypeError, 'ERR_PACKAGE_IMPORT_NOT_DEFINED', `Package import specifier "${request}" is not defined${owner ? ` in package ${owner.file}` : ''} imported from ${from}`);
  }

  function splitBare(request) {
    const match = /^(@[^/]+\/[^/]+|[^@./][^/]*|\.[^/]+)(\/.*)?$/.exec(request);
    return match ? { name: match[1], subpath: `.${match[2] ?? ''}` } : null;
  }

  const REQUIRED = ['.js', '.json', '.node'];

  function asFile(file) {
    if (kindOf(file) === 'file') return file;
    for (const extension of REQUIRED) if (kindOf(file + extension) === 'file') return file + extension;
    if (kindOf(`${file}.ts`) === 'file') return `${file}.ts`;
    return null;
  }
  function asDirectory(directory) {
    if (kindOf(directory) !== 'directory') return null;
    const main = packageAt(directory)?.data.main;
    if (typeof main === 'string' && main) {
      const full = path.resolve(directory, main);
      const found = asFile(full) ?? asFile(path.join(full, 'index'));
      if (found) return found;
    }
    return asFile(path.join(directory, 'index'));
  }

  function realPath(file) {
    const { realpathSync } = require('fs');
    try {
      return realpathSync(file);
    } catch {
      return file;
    }
  }

  function lookUpPaths(from) {
    const out = [];
    for (let directory = from; ; directory = path.dirname(directory)) {
      if (path.basename(directory) !== 'node_modules') out.push(path.join(directory, 'node_modules'));
      if (directory === '/') return out;
    }
  }
  function globalPaths() {
    const { env } = require('process');
    const out = env.NODE_PATH ? env.NODE_PATH.split(':').filter(Boolean) : [];
    if (env.HOME) out.push(path.join(env.HOME, '.node_modules'), path.join(env.HOME, '.node_libraries'));
    out.push('/usr/local/lib/node_modules', '/usr/lib/node_modules');
    return out;
  }

  // Finds a package's file for `import` or `require`.
  function findBare(request, from, conditions, loosely) {
    const parts = splitBare(request);
    if (!parts) return null;
    const self = packageOf(path.join(from, 'x'));
    if (self?.data.exports !== undefined && self.data.name === parts.name) return exported(self, parts.subpath, conditions);
    for (const root of loosely ? [...lookUpPaths(from), ...globalPaths()] : lookUpPaths(from)) {
      const directory = path.join(root, parts.name);
      if (kindOf(directory) !== 'directory') {
        if (loosely) {
          const file = asFile(path.join(root, request));
          if (file) return file;
        }
        continue;
      }
      const owner = packageAt(directory);
      if (owner?.data.exports !== undefined && owner.data.exports !== null) return exported(owner, parts.subpath, conditions);
      if (parts.subpath !== '.') {
        const file = path.join(directory, parts.subpath);
        if (loosely) {
          const found = asFile(file) ?? asDirectory(file);
          if (found) return found;
          continue;
        }
        return file;
      }
      const found = asDirectory(directory);
      if (found) return found;
    }
    return null;
  }

  const REQUIRE = ['node', 'require', 'module-sync'];

  function Module(id = '', parent) {
    this.id = id;
    this.path = path.dirname(id);
    this.exports = {};
    Object.defineProperty(this, 'parent', { value: parent, writable: true, configurable: true, enumerable: false });
    this.filename = null;
    this.loaded = false;
    this.children = [];
    parent?.children?.push(this);
  }
  Module._cache = Object.create(null);
  Module._extensions = Object.create(null);
  Module._pathCache = Object.create(null);
  Module.globalPaths = [];
  Module.builtinModules = [...PUBLIC];
  Module.isBuiltin = (name) => { try { return builtin(String(name)) !== null; } catch { return false; } };
  Module.Module = Module;
  Module.wrap = (source) => `${errors.WRAPPER}${source}\n});`;
  Module.wrapper = [errors.WRAPPER, '\n});'];
  Module._nodeModulePaths = lookUpPaths;
  Module.syncBuiltinESMExports = () => {};
  Module.findPackageJSON = undefined;
  delete Module.findPackageJSON;

  Module._resolveFilename = function (request, parent, isMain, options) {
    validate.string(request, 'id');
    if (builtin(request) !== null) return request;
    const from = parent?.filename ? path.dirname(parent.filename) : parent?.path ?? require('process').cwd();
    for (const base of options?.paths ?? [from]) {
      let found = null;
      if (/^\.{0,2}\//.test(request) || request === '.' || request === '..') {
        const full = path.resolve(base, request);
        found = /\/$|(^|\/)\.\.?$/.test(request) ? asDirectory(full) ?? null : asFile(full) ?? asDirectory(full);
      } else if (request.startsWith('#')) {
        found = imported(request, parent?.filename ?? path.join(base, 'x'), REQUIRE);
        if (found?.bare) return builtin(found.bare) !== null ? found.bare : Module._resolveFilename(found.bare, parent);
      } else found = findBare(request, base, REQUIRE, true);
      if (found) return realPath(found);
    }
    refuse(request);
    const stack = [];
    for (let one = parent; one?.filename || one?.id; one = one.parent) stack.push(one.filename ?? one.id);
    const error = new Error(`Cannot find module '${request}'${stack.length ? `\nRequire stack:\n- ${stack.join('\n- ')}` : ''}`);
    error.code = 'MODULE_NOT_FOUND';
    error.requireStack = stack;
    throw error;
  };

  Module._load = function (request, parent, isMain) {
    const name = builtin(request);
    if (name !== null) return publicModule(name);
    const file = Module._resolveFilename(request, parent, isMain);
    const named = builtin(file);
    if (named !== null) return publicModule(named);
    const cached = Module._cache[file];
    if (cached) {
      if (parent && !parent.children.includes(cached)) parent.children.push(cached);
      return cached.exports;
    }
    const one = new Module(file, parent);
    if (isMain) {
      require('process').mainModule = one;
      one.id = '.';
    }
    Module._cache[file] = one;
    let failed = true;
    try {
      one.load(file);
      failed = false;
    } finally {
      if (failed) {
        delete Module._cache[file];
        const index = parent?.children?.indexOf(one) ?? -1;
        if (index >= 0) parent.children.splice(index, 1);
      }
    }
    return one.exports;
  };

  function publicModule(name) {
    return require(name === 'sys' ? 'util' : name);
  }

  Module.prototype.load = function (file) {
    this.filename = file;
    this.paths = lookUpPaths(path.dirname(file));
    const extension = path.extname(file);
    const load = Module._extensions[extension] ?? Module._extensions['.js'];
    load(this, file);
    this.loaded = true;
  };
  Module.prototype.require = function (id) {
    validate.string(id, 'id');
    if (id === '') throw invalidArgValue('id', id, 'must be a non-empty string');
    return Module._load(id, this, false);
  };

  function requireOf(owner) {
    const own = function require(id) { return owner.require(id); };
    own.resolve = (request, options) => Module._resolveFilename(request, owner, false, options);
    own.resolve.paths = (request) => (builtin(request) !== null ? null : lookUpPaths(owner.path));
    own.main = require('process').mainModule;
    own.extensions = Module._extensions;
    own.cache = Module._cache;
    return own;
  }

  Module.prototype._compile = function (source, file) {
    if (source.startsWith('#!')) source = `//${source.slice(2)}`;
    errors.sources.set(file, source);
    errors.wrapped.add(file);
    const fn = native.evaluate(`${errors.WRAPPER}${source}\n})`, file);
    errors.topLevels.add(fn);
    // What is large is read again when an error needs a line of it.
    errors.sources.delete(file);
    return fn.call(this.exports, this.exports, requireOf(this), this, file, path.dirname(file));
  };

  // Whether a .js file is a module of ECMAScript: what its package says, else what its syntax says.
  function isModule(file) {
    if (file.endsWith('.mjs') || file.endsWith('.mts')) return true;
    if (file.endsWith('.cjs') || file.endsWith('.cts')) return false;
    const type = packageOf(file)?.data.type;
    return type === 'module' ? true : type === 'commonjs' ? false : undefined;
  }
  // Syntax that only modules have.
  const looksLikeModule = (error) => error instanceof SyntaxError
    && /import statement|import declaration|export|import\.meta|'import'|unexpected token: 'import'|Unexpected token 'export'|Cannot use import|'await'|await is only|module code|expecting ';'|Unexpected identifier|top-level scope|outside a module|unsupported keyword/.test(error.message);
  const isModuleSyntax = (source) => /^\s*(?:import\s*(?:[\w$*{]|["'])|export\s+(?:default\b|\*|\{|const\b|let\b|var\b|function\b|class\b|async\b))/m.test(source)
    || /\bimport\.meta\b/.test(source) || /^(?:(?:const|let|var)\s+[^\n;]*=\s*)?await\s/m.test(source);

  Module._extensions['.js'] = function (one, file) {
    if (/\.[cm]?ts$/.test(file)) return loadTypeScript(one, file);
    if (isModule(file)) return requireModule(one, file);
    const source = readText(file);
    try {
      one._compile(source, file);
    } catch (error) {
      if (isModule(file) === undefined && looksLikeModule(error) && isModuleSyntax(source) && errors.placeOf(error)?.file === file) {
        return requireModule(one, file);
      }
      throw error;
    }
  };
  Module._extensions['.json'] = function (one, file) {
    try {
      one.exports = JSON.parse(readText(file));
    } catch (error) {
      error.message = `${file}: ${error.message}`;
      throw error;
    }
  };
  Module._extensions['.node'] = function (one, file) {
    throw errors.unsupported(`${file}:`, 'is native code, which this sandbox has not: use a package without native code');
  };
  function loadTypeScript(one, file) {
    if (isModule(file)) return requireModule(one, file);
    const source = require('_typescript').strip(readText(file), file);
    if (isModule(file) === undefined && isModuleSyntax(source)) return requireModule(one, file);
    one._compile(source, file);
  }

  // `require` of a module of ECMAScript works unless it waits at its top level.
  function requireModule(one, file) {
    one.exports = require('_esm').requireSync(file);
  }

  Module.createRequire = function createRequire(from) {
    const text = from instanceof URL || String(from).startsWith('file:') ? require('url').fileURLToPath(from) : from;
    if (typeof text !== 'string' || !path.isAbsolute(text)) {
      throw invalidArgValue('filename', from, 'must be a file URL object, file URL string, or absolute path string');
    }
    const owner = new Module(text);
    owner.filename = text;
    owner.path = text.endsWith('/') ? text.slice(0, -1) : path.dirname(text);
    owner.paths = lookUpPaths(owner.path);
    return requireOf(owner);
  };
  Module.runMain = () => {};
  Module.register = () => { throw errors.unsupported('module.register'); };
  Module.enableCompileCache = () => ({ status: 3 });

  module.exports = Module;
  Object.defineProperty(Module, '_internal', {
    enumerable: false,
    value: {
      builtin, refuse, findBare, imported, packageOf, kindOf, readText, realPath, isModule, publicModule, requireOf, looksLikeModule,
      isModuleSyntax,
    },
  });
})
