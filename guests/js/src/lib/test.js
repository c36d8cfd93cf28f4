// node:test: tests, suites and mocks, reported as TAP or in words.
(function (exports, require, module, native) {
  'use strict';

  const process = require('process');
  const { inspect } = require('_inspect');
  const loop = require('_loop');
  const { coded } = require('_errors');

  const totals = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
  let root = null, suite = null, started = 0;

  class Node {
    constructor(name, fn, options, parent, isSuite) {
      Object.assign(this, { name, fn, options, parent, isSuite, children: [], hooks: { before: [], after: [], beforeEach: [], afterEach: [] }, failed: null, childFailed: false, notes: [], count: 0 });
    }
    get depth() { return this.parent ? this.parent.depth + 1 : -1; }
  }

  const tap = () => !process.stdout.isTTY;
  const say = (depth, line) => native.writeText(1, `${'    '.repeat(depth)}${line}\n`);
  const escape = (text) => text.replaceAll('\\', '\\\\').replaceAll('#', '\\#').replaceAll('\n', '\\n').replaceAll('\t', '\\t').replaceAll('\r', '\\r');
  const words = () => process._testOptions?.reporter === 'spec' || !tap();

  function ensureRoot() {
    if (root) return;
    root = new Node('<root>', null, {}, null, true);
    suite = root;
    started = native.hrtime();
    loop.hold();
    if (!words()) native.writeText(1, 'TAP version 13\n');
    require('timers').setImmediate(async () => {
      await runChildren(root);
      report();
      loop.release();
    });
  }

  function report() {
    const duration = (native.hrtime() - started) / 1e6;
    if (words()) {
      for (const key of Object.keys(totals)) native.writeText(1, `ℹ ${key} ${totals[key]}\n`);
      native.writeText(1, `ℹ duration_ms ${duration}\n`);
    } else {
      say(0, `1..${root.count}`);
      for (const key of Object.keys(totals)) say(0, `# ${key} ${totals[key]}`);
      say(0, `# duration_ms ${duration}`);
    }
    if (totals.fail || totals.cancelled) process.exitCode = 1;
  }

  function args(name, options, fn) {
    if (typeof name === 'function') { fn = name; name = fn.name; options = {}; }
    else if (name !== null && typeof name === 'object') { fn = options; options = name; name = fn?.name; }
    else if (typeof options === 'function') { fn = options; options = {}; }
    return { name: name || '<anonymous>', options: options ?? {}, fn: fn ?? (() => {}) };
  }

  const wanted = (name) => {
    const patterns = process._testOptions?.testPatterns;
    if (!patterns) return true;
    return patterns.some((pattern) => (/^\/.*\/[a-z]*$/.test(pattern) ? new RegExp(pattern.slice(1, pattern.lastIndexOf('/')), pattern.slice(pattern.lastIndexOf('/') + 1)) : new RegExp(pattern)).test(name));
  };

  // Adds a test to what is being described; tests of a test begin at once.
  function add(parent, isSuite, ...given) {
    const { name, options, fn } = args(...given);
    const node = new Node(String(name), fn, options, parent, isSuite);
    parent.children.push(node);
    node.promise = new Promise((resolve) => { node.settle = resolve; });
    if (isSuite) {
      const before = suite;
      suite = node;
      try {
        const result = options.skip ? undefined : fn(context(node));
        if (result && typeof result.then === 'function') node.ready = result;
      } catch (error) {
        node.failed = error;
      }
      suite = before;
    }
    return node;
  }

  async function runChildren(parent) {
    for (const hook of parent.hooks.before) await hook();
    for (let index = 0; index < parent.children.length; index++) await run(parent.children[index]);
    for (const hook of parent.hooks.after) await hook();
  }

  function timed(promise, delay) {
    if (!(delay > 0) || delay === Infinity) return promise;
    let timer;
    return Promise.race([promise, new Promise((resolve, reject) => {
      timer = require('timers').setTimeout(() => reject(Object.assign(new Error(`test timed out after ${delay}ms`), { code: 'ERR_TEST_FAILURE', failureType: 'testTimeoutFailure' })), delay);
    })]).finally(() => require('timers').clearTimeout(timer));
  }

  async function run(node) {
    if (node.done) return;
    node.done = true;
    const begun = native.hrtime();
    let directive = '';
    const only = process._testOptions?.testOnly && !node.options.only && !node.isSuite;
    if (node.options.skip || only || (!node.isSuite && !wanted(node.name))) directive = ` # SKIP${typeof node.options.skip === 'string' ? ` ${escape(node.options.skip)}` : only ? " 'only' option not set" : node.options.skip ? '' : ' test name does not match pattern'}`;
    else if (node.options.todo) directive = ` # TODO${typeof node.options.todo === 'string' ? ` ${escape(node.options.todo)}` : ''}`;
    if (!words()) say(node.depth, `# Subtest: ${escape(node.name)}`);
    if (!directive.startsWith(' # SKIP')) {
      const each = (which) => { const list = []; for (let at = node.parent; at; at = at.parent) list.unshift(...at.hooks[which]); return list; };
      try {
        if (node.isSuite) {
          await node.ready;
          if (!node.failed) await runChildren(node);
        } else {
          for (const hook of each('beforeEach')) await hook();
          const t = context(node);
          const call = () => (node.fn.length >= 2 ? new Promise((resolve, reject) => { node.fn.call(t, t, (error) => (error ? reject(error) : resolve())); }) : node.fn.call(t, t));
          await timed(Promise.resolve().then(call), node.options.timeout);
          for (const child of node.children) await child.promise;
          if (node.plan !== undefined && node.plan !== node.asserted) throw Object.assign(new Error(`plan expected ${node.plan} assertions but received ${node.asserted ?? 0}`), { code: 'ERR_TEST_FAILURE' });
        }
      } catch (error) {
        node.failed ??= error ?? new Error(String(error));
      }
      try {
        for (const hook of node.hooks.after.splice(node.isSuite ? Infinity : 0)) await hook();
        if (!node.isSuite) for (const hook of each('afterEach')) await hook();
      } catch (error) {
        node.failed ??= error;
      }
      node.mock?.reset();
      if (node.directive) directive = node.directive;
    }
    finish(node, directive, (native.hrtime() - begun) / 1e6);
  }

  function finish(node, directive, duration) {
    const number = ++node.parent.count;
    const broken = node.children.filter((child) => child.bad).length;
    if (!node.failed && broken) {
      node.failed = Object.assign(new Error(`${broken} subtest${broken > 1 ? 's' : ''} failed`), { code: 'ERR_TEST_FAILURE', failureType: 'subtestsFailed' });
      node.childFailed = true;
    }
    node.bad = node.failed !== null && !directive.startsWith(' # TODO');
    if (node.isSuite) totals.suites++;
    else {
      totals.tests++;
      if (directive.startsWith(' # SKIP')) totals.skipped++;
      else if (directive.startsWith(' # TODO')) totals.todo++;
      else if (node.failed) totals.fail++;
      else totals.pass++;
    }
    if (words()) {
      const mark = directive.startsWith(' # SKIP') ? '﹣' : node.failed ? '✖' : '✔';
      native.writeText(1, `${'  '.repeat(node.depth)}${mark} ${node.name} (${duration.toFixed(3)}ms)${directive}\n`);
      if (node.failed && !node.childFailed) native.writeText(1, `${inspect(node.failed).replace(/^/gm, '  '.repeat(node.depth + 1))}\n\n`);
    } else {
      const { depth } = node;
      if (node.count) say(depth + 1, `1..${node.count}`);
      say(depth, `${node.failed ? 'not ok' : 'ok'} ${number} - ${escape(node.name)}${directive}`);
      const lines = ['---', `duration_ms: ${duration}`];
      if (node.isSuite) lines.push("type: 'suite'");
      if (node.failed) lines.push(...details(node.failed));
      lines.push('...');
      for (const line of lines) say(depth, `  ${line}`);
    }
    for (const note of node.notes) if (!words()) say(node.depth, `# ${escape(note)}`);
    node.settle();
  }

  function details(error) {
    const lines = [`failureType: '${error?.failureType ?? 'testCodeFailure'}'`];
    const message = error instanceof Error ? error.message : inspect(error);
    const put = (name, text) => { if (String(text).includes('\n')) lines.push(`${name}: |-`, ...String(text).split('\n').map((line) => `  ${line}`)); else lines.push(`${name}: ${inspect(String(text))}`); };
    put('error', message);
    lines.push(`code: '${error?.code ?? 'ERR_TEST_FAILURE'}'`);
    if (error?.code === 'ERR_ASSERTION') {
      lines.push("name: 'AssertionError'");
      put('expected', typeof error.expected === 'string' ? error.expected : inspect(error.expected));
      put('actual', typeof error.actual === 'string' ? error.actual : inspect(error.actual));
      lines.push(`operator: '${error.operator}'`);
    }
    if (error?.stack && error.failureType === undefined) put('stack', String(error.stack).split('\n').filter((line) => /^\s+at /.test(line)).map((line) => line.trim().replace(/^at /, '')).join('\n'));
    return lines;
  }

  function context(node) {
    const assert = {};
    const real = require('assert');
    for (const name of Object.keys(real)) if (typeof real[name] === 'function') assert[name] = (...given) => { node.asserted = (node.asserted ?? 0) + 1; return real[name](...given); };
    return {
      name: node.name, signal: new AbortController().signal, assert, fullName: node.name,
      get mock() { return (node.mock ??= new MockTracker()); },
      diagnostic: (text) => node.notes.push(String(text)),
      skip: (text) => { node.directive = ` # SKIP${text ? ` ${escape(text)}` : ''}`; },
      todo: (text) => { node.directive = ` # TODO${text ? ` ${escape(text)}` : ''}`; },
      plan: (count) => { node.plan = count; node.asserted ??= 0; },
      runOnly() {},
      test: (...given) => {
        const child = add(node, false, ...given);
        node.asserted = (node.asserted ?? 0) + 1;
        const before = node.last ?? Promise.resolve();
        node.last = before.then(() => run(child));
        return child.promise;
      },
      before: (fn) => fn(), after: (fn) => node.hooks.after.push(fn), beforeEach: (fn) => node.hooks.beforeEach.push(fn), afterEach: (fn) => node.hooks.afterEach.push(fn),
    };
  }

  function test(...given) {
    ensureRoot();
    const node = add(suite, false, ...given);
    return node.promise;
  }
  function describe(...given) {
    ensureRoot();
    return add(suite, true, ...given).promise;
  }
  for (const fn of [test, describe]) {
    const variant = (option) => (...given) => {
      const { name, options, fn: body } = args(...given);
      return fn(name, { ...options, [option]: true }, body);
    };
    for (const option of ['skip', 'todo', 'only']) fn[option] = variant(option);
  }
  const hook = (name) => (fn) => {
    ensureRoot();
    suite.hooks[name].push(() => (fn.length ? new Promise((resolve, reject) => { fn((error) => (error ? reject(error) : resolve())); }) : fn()));
  };

  class MockTracker {
    #undo = [];
    fn(original = () => {}, implementation = original) {
      if (implementation === undefined || typeof implementation !== 'function') implementation = original;
      let current = implementation;
      const next = new Map();
      const calls = [];
      const state = {
        calls, get callCount() { return () => calls.length; },
        mockImplementation: (fn) => { current = fn; },
        mockImplementationOnce: (fn, at = calls.length) => { next.set(at, fn); },
        resetCalls: () => { calls.length = 0; },
        restore: () => { current = original; },
      };
      const mocked = function (...given) {
        const call = { arguments: given, error: undefined, result: undefined, stack: new Error(), target: new.target, this: this };
        const fn = next.get(calls.length) ?? current;
        next.delete(calls.length);
        try {
          call.result = new.target ? Reflect.construct(fn, given, new.target) : Reflect.apply(fn, this, given);
          return call.result;
        } catch (error) {
          call.error = error;
          throw error;
        } finally {
          calls.push(call);
        }
      };
      Object.defineProperty(mocked, 'mock', { value: state });
      Object.defineProperty(mocked, 'name', { value: original.name });
      this.#undo.push(() => state.restore());
      return mocked;
    }
    method(object, name, implementation, options = {}) {
      if (implementation !== undefined && typeof implementation !== 'function') { options = implementation; implementation = undefined; }
      const kind = options.getter ? 'get' : options.setter ? 'set' : 'value';
      let owner = object;
      while (owner && !Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner);
      const descriptor = owner && Object.getOwnPropertyDescriptor(owner, name);
      const original = descriptor?.[kind];
      if (typeof original !== 'function') throw coded(TypeError, 'ERR_INVALID_ARG_VALUE', `The argument 'methodName' must be a method. Received ${inspect(original)}`);
      const mocked = this.fn(original, implementation ?? original);
      const own = Object.getOwnPropertyDescriptor(object, name);
      Object.defineProperty(object, name, { ...descriptor, [kind]: mocked, configurable: true });
      const restore = () => { if (own) Object.defineProperty(object, name, own); else delete object[name]; };
      mocked.mock.restore = restore;
      this.#undo.push(restore);
      return mocked;
    }
    getter(object, name, implementation, options) { return this.method(object, name, implementation, { ...options, getter: true }); }
    setter(object, name, implementation, options) { return this.method(object, name, implementation, { ...options, setter: true }); }
    get timers() { return { enable() { throw require('_errors').unsupported('mock.timers'); }, reset() {} }; }
    reset() { this.restoreAll(); }
    restoreAll() { for (const undo of this.#undo.splice(0).reverse()) undo(); }
  }

  Object.assign(test, { test, it: test, describe, suite: describe, before: hook('before'), after: hook('after'), beforeEach: hook('beforeEach'), afterEach: hook('afterEach'), mock: new MockTracker() });
  test.run = () => { throw require('_errors').unsupported('test.run', 'is not available in this sandbox: use node --test'); };
  module.exports = test;
})
