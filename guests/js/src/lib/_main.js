// The command line.
(function (exports, require, module, native) {
  'use strict';

  const process = require('process');
  const errors = require('_errors');
  const loop = require('_loop');

  const USAGE = `Usage: node [options] [ script.js ] [arguments]

Options:
  -                           script read from stdin
  --                          end of options
  -c, --check                 check the syntax of a script, do not run it
  -e, --eval SCRIPT           run SCRIPT
  -h, --help                  print this help
  -i, --interactive           not available: there is no interactive mode
  --input-type TYPE           of SCRIPT or stdin: commonjs or module
  -p, --print SCRIPT          run SCRIPT and print its result
  -r, --require MODULE        load a CommonJS module first
  --import MODULE             import a module first
  --no-warnings               print no warnings
  --test [FILE...]            run tests
  --test-only, --test-name-pattern PATTERN
  --throw-deprecation, --trace-deprecation, --trace-warnings, --no-deprecation
  --unhandled-rejections MODE throw, strict, warn, warn-with-error-code or none
  --env-file FILE             set variables from FILE
  -v, --version               print the version

JavaScript runs on QuickJS, with Node 20's modules: see the documentation for what differs.
`;

  // Options that name what this engine cannot do; the rest that V8 and Node know change nothing a script can see.
  const HARMLESS = /^--(?:max[-_]old[-_]space[-_]size|max[-_]semi[-_]space[-_]size|stack[-_]size|enable-source-maps|experimental-[\w-]+|no-experimental-[\w-]+|harmony[\w-]*|es-module-specifier-resolution|preserve-symlinks|preserve-symlinks-main|expose[-_]gc|no-addons|abort-on-uncaught-exception|trace-uncaught|trace-exit|force-fips|icu-data-dir|jitless|use[-_]strict|no-global-search-paths|dns-result-order|tls-[\w.-]+|use-openssl-ca|use-bundled-ca|disable-warning|max-http-header-size|zero-fill-buffers|pending-deprecation|no-opt|interpreted-frames-native-stack|verify-base-objects)(?:=.*)?$/;
  const VALUED = ['--max-old-space-size', '--stack-size'];

  function refuse(option) {
    native.writeText(2, `node: bad option: ${option}\n`);
    return 9;
  }

  function parse(args, own) {
    let index = 0;
    for (; index < args.length; index++) {
      const arg = args[index];
      if (arg === '--') { index++; break; }
      if (arg === '-' || !arg.startsWith('-')) break;
      const [name, inline] = arg.startsWith('--') && arg.includes('=') ? [arg.slice(0, arg.indexOf('=')), arg.slice(arg.indexOf('=') + 1)] : [arg, undefined];
      const value = () => {
        if (inline !== undefined) return inline;
        if (index + 1 >= args.length) return undefined;
        return args[++index];
      };
      const need = () => {
        const got = value();
        if (got === undefined) {
          native.writeText(2, `node: ${name} requires an argument\n`);
          throw { exit: 9 };
        }
        return got;
      };
      process.execArgv.push(arg);
      switch (name) {
        case '-v': case '--version': own.version = true; break;
        case '-h': case '--help': own.help = true; break;
        case '-e': case '--eval': own.eval = need(); process.execArgv.push(...(inline === undefined ? [own.eval] : [])); break;
        case '-p': case '-pe': case '--print': {
          own.print = true;
          if (inline !== undefined) own.eval = inline;
          else if (index + 1 < args.length && (!args[index + 1].startsWith('-') || name === '-pe')) { own.eval = args[++index]; process.execArgv.push(own.eval); }
          break;
        }
        case '-c': case '--check': own.check = true; break;
        case '-i': case '--interactive':
          native.writeText(2, 'node: there is no interactive mode: give a script, -e or standard input\n');
          throw { exit: 9 };
        case '--input-type': own.type = need(); break;
        case '-r': case '--require': own.requires.push(need()); break;
        case '--import': own.imports.push(need()); break;
        case '--no-warnings': process._noWarnings = true; break;
        case '--trace-warnings': process.traceWarnings = true; break;
        case '--no-deprecation': process.noDeprecation = true; break;
        case '--throw-deprecation': process.throwDeprecation = true; break;
        case '--trace-deprecation': process.traceDeprecation = true; break;
        case '--unhandled-rejections': process._rejections = need(); break;
        case '--test': own.test = true; break;
        case '--test-only': own.testOnly = true; break;
        case '--test-name-pattern': (own.testPatterns ??= []).push(need()); break;
        case '--test-reporter': own.reporter = need(); break;
        case '--test-concurrency': case '--test-timeout': need(); break;
        case '--env-file': own.envFiles.push(need()); break;
        case '--title': process.title = need(); break;
        case '--conditions': case '-C': need(); break;
        case '--watch': case '--watch-path': case '--inspect': case '--inspect-brk': case '--prof': case '--cpu-prof': case '--heap-prof': case '--experimental-permission':
        case '--build-snapshot': case '--experimental-sea-config': case '--test-coverage': case '--loader': case '--experimental-loader':
          native.writeText(2, `node: ${name} is not available in this sandbox\n`);
          throw { exit: 9 };
        default:
          if (!HARMLESS.test(arg)) throw { exit: refuse(arg) };
          if (VALUED.includes(name) && inline === undefined) need();
      }
    }
    return args.slice(index);
  }

  function environmentFile(file) {
    const text = require('module')._internal.readText(file);
    const values = require('util').parseEnv(text);
    for (const name of Object.keys(values)) if (!Object.hasOwn(process.env, name)) process.env[name] = values[name];
  }

  function standardInput() {
    const bytes = native.readRest(0);
    if (typeof bytes === 'number') throw errors.system(bytes, 'read');
    return native.decodeUtf8(bytes);
  }

  const defineGlobals = (values) => {
    for (const name of Object.keys(values)) Object.defineProperty(globalThis, name, { value: values[name], writable: true, configurable: true, enumerable: true });
  };

  // Runs text as `-e` does: in the global scope, with Node's modules as variables.
  function evaluate(text, own, name) {
    const CommonJS = require('module');
    const { isModuleSyntax, requireOf, looksLikeModule } = CommonJS._internal;
    const asModule = () => require('_esm').import(`${name}1`, text).then(undefined, (error) => require('_rejections').uncaught(error, 'uncaughtException'));
    if (own.type === 'module' || own.type === 'module-typescript') {
      if (own.print) {
        native.writeText(2, 'node: --print cannot be used with ESM input\n');
        throw { exit: 9 };
      }
      return asModule();
    }
    const one = new CommonJS(name);
    one.filename = require('path').join(process.cwd(), name);
    one.paths = CommonJS._nodeModulePaths(process.cwd());
    one.path = '.';
    defineGlobals({ __filename: name, module: one, exports: one.exports, __dirname: '.', require: requireOf(one) });
    for (const library of CommonJS.builtinModules) {
      if (library.includes('/') || library in globalThis) continue;
      Object.defineProperty(globalThis, library, { configurable: true, enumerable: false, get: () => CommonJS._internal.publicModule(library), set(value) { defineGlobals({ [library]: value }); } });
    }
    errors.sources.set(name, text);
    let result;
    try {
      result = native.evaluate(text, name);
    } catch (error) {
      if (own.type === undefined && !own.print && looksLikeModule(error) && isModuleSyntax(text)) return asModule();
      throw error;
    }
    if (own.print) console.log(result);
    return undefined;
  }

  function check(file) {
    const { readText, isModule, isModuleSyntax } = require('module')._internal;
    let source = readText(file);
    if (/\.[cm]?ts$/.test(file)) source = require('_typescript').strip(source, file);
    if (source.startsWith('#!')) source = `//${source.slice(2)}`;
    errors.sources.set(file, source);
    const type = isModule(file);
    // A function that is not called: only its syntax counts.
    if (type ?? isModuleSyntax(source)) {
      const bare = source.replace(/^\s*import\s[^;]*?from\s*['"][^'"]*['"]\s*;?|^\s*import\s*['"][^'"]*['"]\s*;?/gm, (text) => text.replace(/[^\n]/g, ' '))
        .replace(/^(\s*)export\s+default\s+/gm, '$1void ').replace(/^(\s*)export\s+(?=const|let|var|function|class|async)/gm, '$1       ').replace(/^\s*export\s*(?:\*[^;\n]*|\{[^}]*\}[^;\n]*);?/gm, '');
      native.evaluate(`(async function () { 'use strict'; ${bare}\n})`, file);
    } else {
      errors.wrapped.add(file);
      native.evaluate(`${errors.WRAPPER}${source}\n})`, file);
    }
  }

  function start(own, rest) {
    const path = require('path');
    for (const file of own.envFiles) environmentFile(file);
    process.argv = [process.execPath, ...rest];
    if (own.test) return require('_test_runner').run(rest, own);
    if (own.check) {
      if (!rest.length) return undefined;
      const file = require('module')._resolveFilename(path.resolve(rest[0]), null);
      check(file);
      throw { exit: 0 };
    }
    preload(own);
    if (own.imports.length) {
      const esm = require('_esm');
      const base = esm.urlOf(path.join(process.cwd(), 'x'));
      return own.imports.reduce((before, name) => before.then(() => esm.import(esm.resolve(name, base))), Promise.resolve())
        .then(() => script(own, rest)).then(undefined, (error) => {
          if (error && typeof error === 'object' && 'exit' in error) { process.exitCode = error.exit; return; }
          require('_rejections').uncaught(error, 'uncaughtException');
        });
    }
    return script(own, rest);
  }

  function preload(own) {
    const CommonJS = require('module');
    const owner = new CommonJS('internal/preload');
    owner.filename = null;
    owner.path = process.cwd();
    for (const name of own.requires) CommonJS._load(name, owner);
  }

  function script(own, rest) {
    const path = require('path');
    if (own.eval !== undefined) return evaluate(own.eval, own, '[eval]');
    if (rest.length && rest[0] !== '-') {
      const CommonJS = require('module');
      const file = CommonJS._resolveFilename(path.resolve(rest[0]), null, true);
      process.argv[1] = file;
      const { isModule } = CommonJS._internal;
      if (isModule(file)) return runModule(file);
      return CommonJS._load(file, null, true);
    }
    if (rest[0] === '-') process.argv[1] = '-';
    if (native.isatty(0) && rest.length === 0) {
      native.writeText(2, 'node: there is no interactive mode: give a script, -e or standard input\n');
      throw { exit: 9 };
    }
    return evaluate(standardInput(), own, '[stdin]');
  }

  function runModule(file) {
    const esm = require('_esm');
    let settled = false;
    const promise = esm.import(esm.urlOf(file));
    promise.then(() => { settled = true; }, (error) => {
      settled = true;
      require('_rejections').uncaught(error, 'uncaughtException');
    });
    Object.defineProperty(process, '_unsettled', { value: () => !settled, configurable: true, enumerable: false });
    return promise;
  }
  function unsettled() {
    native.writeText(2, 'Warning: Detected unsettled top-level await\n');
    process.exitCode = 13;
  }

  exports.main = () => {
    const args = process._start();
    const own = { requires: [], imports: [], envFiles: [] };
    return guarded(() => {
      const options = process.env.NODE_OPTIONS?.match(/\S+/g) ?? [];
      parse(options, own);
      process.execArgv.length = 0;
      const rest = parse(args.slice(1), own);
      if (own.version) {
        native.writeText(1, `${process.version}\n`);
        throw { exit: 0 };
      }
      if (own.help) {
        native.writeText(1, USAGE);
        throw { exit: 0 };
      }
      if (own.type !== undefined && !['commonjs', 'module', 'commonjs-typescript', 'module-typescript'].includes(own.type)) {
        native.writeText(2, 'node: --input-type must be "module" or "commonjs"\n');
        throw { exit: 9 };
      }
      process._testOptions = own;
      return start(own, rest);
    });
  };

  function guarded(begin) {
    try {
      begin();
    } catch (error) {
      if (error !== null && typeof error === 'object' && Object.hasOwn(error, 'exit') && Object.keys(error).length === 1) return error.exit;
      require('_rejections').uncaught(error, 'uncaughtException');
    }
    loop.runAll();
    for (;;) {
      process.emit('beforeExit', process.exitCode ?? 0);
      loop.drain();
      if (!loop.alive()) break;
      loop.runAll();
    }
    // A module that waits for what never comes.
    if (process._unsettled?.() && process.exitCode === undefined) unsettled();
    try {
      process._emitExit(process.exitCode ?? 0);
    } catch (error) {
      require('_rejections').uncaught(error, 'uncaughtException');
    }
    return (process.exitCode ?? 0) & 255;
  }
})
