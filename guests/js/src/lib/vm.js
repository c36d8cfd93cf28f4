// vm: scripts in the global scope. There are no other contexts.
(function (exports, require, module, native) {
  'use strict';
  const { validate, unsupported } = require('_errors');
  const nameOf = (options) => (typeof options === 'string' ? options : options?.filename) ?? 'evalmachine.<anonymous>';
  const run = (code, options) => {
    require('_errors').sources.set(nameOf(options), code);
    return native.evaluate(code, nameOf(options));
  };
  const contexts = new WeakSet();
  // The object's properties are variables; what a script declares stays in the script.
  function inObject(code, object, options) {
    const names = new Proxy(object, { has: (target, key) => typeof key === 'string' && key !== '$code', get: (target, key) => (key === Symbol.unscopables ? undefined : key in target ? target[key] : key in globalThis ? globalThis[key] : missing(key)) });
    const missing = (key) => { throw new ReferenceError(`${String(key)} is not defined`); };
    const runner = native.evaluate('(function ($scope, $code) { with ($scope) { return eval($code); } })', nameOf(options));
    return runner.call(object, names, code);
  }
  class Script {
    #code; #options;
    constructor(code, options) {
      this.#code = `${code}`;
      this.#options = options;
      native.evaluate(`(function () { ${this.#code.replace(/^#!.*/, '')}\n})`, nameOf(options));
    }
    runInThisContext() { return run(this.#code, this.#options); }
    runInContext(object) { return exports.runInContext(this.#code, object, this.#options); }
    runInNewContext(object = {}) { return inObject(this.#code, object, this.#options); }
    createCachedData() { return Buffer.alloc(0); }
  }
  exports.Script = Script;
  exports.runInThisContext = (code, options) => run(`${code}`, options);
  exports.createContext = (object = {}) => { contexts.add(object); return object; };
  exports.isContext = (object) => { validate.object(object, 'object'); return contexts.has(object); };
  exports.runInContext = (code, object, options) => inObject(`${code}`, object, options);
  exports.runInNewContext = (code, object = {}, options) => inObject(`${code}`, object, options);
  exports.compileFunction = (code, params = [], options) => native.evaluate(`(function (${params.join(', ')}) {${code}\n})`, options?.filename ?? '');
  for (const name of ['SourceTextModule', 'SyntheticModule', 'measureMemory']) exports[name] = function () { throw unsupported(`vm.${name}`); };
})
