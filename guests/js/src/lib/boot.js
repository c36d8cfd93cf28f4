// The first file: it loads the others and defines the globals. Each file is a function of `exports`, `require`, `module`
// and `native`, the system's functions. Files that only others of the library may load have an underscore in front.
(function (native) {
  'use strict';

  const cache = new Map();

  function load(name) {
    const known = cache.get(name);
    if (known) return known.exports;
    const file = name.replaceAll('/', '-');
    const source = native.source(file);
    if (source === undefined || source === null) throw new Error(`no library file '${name}'`);
    const module = { exports: {}, id: name };
    cache.set(name, module);
    native.evaluate(source, `node:internal/${name}`).call(module.exports, module.exports, load, module, native);
    return module.exports;
  }

  native.loadLibrary = load;
  load('_errors').install();
  load('_json').install();
  load('_globals').install();
  native.main = () => load('_main').main();
  native.rejected = (promise, reason, handled) => load('_rejections').track(promise, reason, handled);
  native.resolve = (name, base) => load('_esm').resolveForEngine(name, base);
  native.load = (name, kind) => load('_esm').source(name, kind);
  native.describeModule = (meta, name) => load('_esm').describe(meta, name);
  // What nearly every script uses is loaded into the start image.
  for (const name of ['_inspect', 'console', 'process', '_loop', 'events', 'buffer', 'path', 'fs', 'util', 'url',
    'stream', 'timers', 'module', '_esm', '_main', '_rejections', 'string_decoder', 'assert']) load(name);
})
