// assert: what must be so, and what to say if it is not.
(function (exports, require, module, native) {
  'use strict';

  const { equal } = require('_equal');
  const { inspect } = require('_inspect');
  const { coded, invalidArgType, validate } = require('_errors');

  const WORDS = {
    deepStrictEqual: 'Expected values to be strictly deep-equal:',
    strictEqual: 'Expected values to be strictly equal:',
    strictEqualObject: 'Expected "actual" to be reference-equal to "expected":',
    deepEqual: 'Expected values to be loosely deep-equal:',
    notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:',
    notStrictEqual: 'Expected "actual" to be strictly unequal to:',
    notStrictEqualObject: 'Expected "actual" not to be reference-equal to "expected":',
    notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:',
    notIdentical: 'Values identical but not reference-equal:',
    notDeepEqualUnequal: 'Expected values not to be loosely deep-equal:',
  };
  const show = (value) => inspect(value, { compact: false, customInspect: false, depth: 1000, maxArrayLength: Infinity, showHidden: false, showProxy: false, sorted: true, getters: true, breakLength: Infinity });

  // The lines of both, where they differ: the longest common subsequence.
  function differences(actual, expected) {
    const a = actual.split('\n'), b = expected.split('\n');
    if (a.length * b.length > 1e6) return [...a.map((line) => ['+', line]), ...b.map((line) => ['-', line])];
    const table = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
      const same = a[i] === b[j] || `${a[i]},` === b[j] || a[i] === `${b[j]},`;
      table[i][j] = same ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
    const out = [];
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && (a[i] === b[j] || `${a[i]},` === b[j] || a[i] === `${b[j]},`)) { out.push([' ', a[i]]); i++; j++; }
      else if (i < a.length && (j >= b.length || table[i + 1][j] >= table[i][j + 1])) out.push(['+', a[i++]]);
      else out.push(['-', b[j++]]);
    }
    return out;
  }

  function difference(actual, expected, operator) {
    let one = show(actual), other = show(expected);
    const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';
    if (operator === 'strictEqual' && isObject(actual) && isObject(expected)) operator = one === other ? 'notIdentical' : 'strictEqualObject';
    if (one === other && operator !== 'notIdentical') operator = 'notIdentical';
    const single = !one.includes('\n') && !other.includes('\n') && one !== other;
    if (single && one.length + other.length <= 80 - 12 && (!isObject(actual) || !isObject(expected)) && (actual !== 0 || expected !== 0)) {
      return `${WORDS[operator]}\n\n${one} !== ${other}\n`;
    }
    if (operator === 'notIdentical') return `${WORDS.notIdentical}\n\n${one}\n`;
    const lines = differences(one, other);
    const shown = [];
    let skipped = false;
    lines.forEach(([mark, line], index) => {
      const near = mark !== ' ' || lines.slice(Math.max(0, index - 2), index + 3).some(([other]) => other !== ' ');
      const isEdge = !near;
      if (isEdge && lines.length > 12) {
        if (!skipped || shown[shown.length - 1] !== '...') shown.push('...');
        skipped = true;
      } else shown.push(`${mark} ${line}`);
    });
    return `${WORDS[operator]}\n+ actual - expected${skipped ? ' ... Lines skipped' : ''}\n\n${shown.join('\n')}`;
  }

  class AssertionError extends Error {
    constructor(options) {
      validate.object(options, 'options');
      const { message, operator, stackStartFn, actual, expected } = options;
      if (message !== undefined) super(String(message));
      else if (operator === 'deepStrictEqual' || operator === 'strictEqual') super(difference(actual, expected, operator));
      else if (operator === 'notDeepStrictEqual' || operator === 'notStrictEqual') {
        const text = show(actual);
        const isObject = typeof actual === 'object' && actual !== null || typeof actual === 'function';
        const words = WORDS[operator === 'notStrictEqual' && isObject ? 'notStrictEqualObject' : operator];
        super(text.includes('\n') || text.length > 5 ? `${words}\n\n${text}\n` : `${words} ${text}`);
      } else if (operator === 'deepEqual' || operator === 'notDeepEqual') {
        const one = show(actual), other = show(expected);
        super(operator === 'notDeepEqual' ? `${WORDS.notDeepEqual}\n\n${other}${one === other ? '' : `\n\nshould loosely deep-equal\n\n${one}`}` : `${WORDS.deepEqual}\n\n${one}\n\nshould loosely deep-equal\n\n${other}`);
      } else if (operator === 'notEqual' || operator === '==' || operator === '!=') {
        super(`${inspect(actual)} ${operator === 'notEqual' ? '!=' : operator} ${inspect(expected)}`);
      } else super('Failed');
      this.generatedMessage = message === undefined;
      Object.defineProperty(this, 'name', { value: 'AssertionError [ERR_ASSERTION]', enumerable: false, writable: true, configurable: true });
      this.code = 'ERR_ASSERTION';
      this.actual = actual;
      this.expected = expected;
      this.operator = operator;
      Error.captureStackTrace?.(this, stackStartFn);
      void this.stack;
      this.name = 'AssertionError';
    }
    toString() { return `${this.name} [${this.code}]: ${this.message}`; }
    [Symbol.for('nodejs.util.inspect.custom')](depth, options) {
      return inspect(this, { ...options, customInspect: false, depth: 0 });
    }
  }

  function fail(self, actual, expected, message, operator) {
    if (message instanceof Error) throw message;
    throw new AssertionError({ actual, expected, message, operator, stackStartFn: self });
  }

  function source(fn, args) {
    // What stands between the brackets of the call that failed, if it can be found.
    const { placeOf, lineOf } = require('_errors');
    const place = placeOf(new Error());
    const line = place && lineOf(place);
    const match = line && /\b(assert(?:\.ok|\.strict)?|ok)\((.*)\)\s*;?\s*(?:\}.*|\/\/.*)?$/.exec(line.slice(Math.max(0, line.slice(0, place.column).search(/\b(?:assert|ok)\b[^(]*\(?[^(]*$/))));
    if (!match) return 'The expression evaluated to a falsy value';
    let depth = 0, end = match[2].length;
    for (let at = 0; at < match[2].length; at++) {
      if ('([{'.includes(match[2][at])) depth++;
      else if (')]}'.includes(match[2][at]) && --depth < 0) { end = at; break; }
    }
    return `The expression evaluated to a falsy value:\n\n  ${match[1]}(${match[2].slice(0, end)})\n`;
  }
  function ok(...args) { check(ok, args); }
  function check(fn, args) {
    const [value, message] = args;
    if (value) return;
    if (message instanceof Error) throw message;
    const generated = message === undefined;
    const text = args.length === 0 ? 'No value argument passed to `assert.ok()`' : generated ? source(fn, args) : message;
    const error = new AssertionError({ actual: value, expected: true, message: text, operator: '==', stackStartFn: fn });
    error.generatedMessage = generated;
    throw error;
  }
  function assert(...args) { check(assert, args); }
  assert.ok = ok;
  assert.AssertionError = AssertionError;
  assert.fail = function (message = 'Failed') {
    if (message instanceof Error) throw message;
    const error = new AssertionError({ message, operator: 'fail', stackStartFn: assert.fail });
    error.generatedMessage = arguments.length === 0;
    throw error;
  };
  const need = (args) => { if (args.length < 2) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "actual" and "expected" arguments must be specified'); };
  // eslint-disable-next-line eqeqeq
  const loose = (one, other) => one == other || (Number.isNaN(one) && Number.isNaN(other));
  assert.equal = function equal(actual, expected, message) { need(arguments); if (!loose(actual, expected)) fail(equal, actual, expected, message, '=='); };
  assert.notEqual = function notEqual(actual, expected, message) { need(arguments); if (loose(actual, expected)) fail(notEqual, actual, expected, message, '!='); };
  assert.strictEqual = function strictEqual(actual, expected, message) { need(arguments); if (!Object.is(actual, expected)) fail(strictEqual, actual, expected, message, 'strictEqual'); };
  assert.notStrictEqual = function notStrictEqual(actual, expected, message) { need(arguments); if (Object.is(actual, expected)) fail(notStrictEqual, actual, expected, message, 'notStrictEqual'); };
  assert.deepEqual = function deepEqual(actual, expected, message) { need(arguments); if (!equal(actual, expected, false)) fail(deepEqual, actual, expected, message, 'deepEqual'); };
  assert.notDeepEqual = function notDeepEqual(actual, expected, message) { need(arguments); if (equal(actual, expected, false)) fail(notDeepEqual, actual, expected, message, 'notDeepEqual'); };
  assert.deepStrictEqual = function deepStrictEqual(actual, expected, message) { need(arguments); if (!equal(actual, expected, true)) fail(deepStrictEqual, actual, expected, message, 'deepStrictEqual'); };
  assert.notDeepStrictEqual = function notDeepStrictEqual(actual, expected, message) { need(arguments); if (equal(actual, expected, true)) fail(notDeepStrictEqual, actual, expected, message, 'notDeepStrictEqual'); };
  assert.ifError = function ifError(value) {
    if (value === null || value === undefined) return;
    let text = 'ifError got unwanted exception: ';
    text += typeof value === 'object' && typeof value.message === 'string' ? value.message || value.constructor.name : inspect(value);
    const error = new AssertionError({ actual: value, expected: null, operator: 'ifError', message: text, stackStartFn: ifError });
    error.generatedMessage = true;
    throw error;
  };

  function matches(fn, error, expected, message) {
    if (typeof expected === 'function') {
      if (expected.prototype !== undefined && error instanceof expected) return;
      if (Error.isPrototypeOf(expected) || expected === Error) {
        if (message === undefined) message = `The error is expected to be an instance of "${expected.name}". Received "${error?.constructor?.name ?? inspect(error)}"${error?.message ? `\n\nError message:\n\n${error.message}` : ''}`;
        fail(fn, error, expected, message, fn.name);
      }
      if (expected.call({}, error) === true) return;
      const name = expected.name ? `"${expected.name}" ` : '';
      fail(fn, error, expected, message ?? `The ${name}validation function is expected to return "true". Received ${inspect(false)}\n\nCaught error:\n\n${error}`, fn.name);
    }
    if (expected instanceof RegExp) {
      const text = String(error);
      if (!expected.test(text)) fail(fn, error, expected, message ?? `The input did not match the regular expression ${inspect(expected)}. Input:\n\n${inspect(text)}\n`, fn.name);
      return;
    }
    if (expected !== null && typeof expected === 'object') {
      const keys = Object.keys(expected);
      if (expected instanceof Error) keys.push('name', 'message');
      else if (keys.length === 0) throw coded(TypeError, 'ERR_INVALID_ARG_VALUE', "The argument 'error' may not be an empty object. Received {}");
      for (const key of keys) {
        if (typeof error?.[key] === 'string' && expected[key] instanceof RegExp && expected[key].test(error[key])) continue;
        if (error === null || error === undefined || !(key in Object(error)) || !equal(error[key], expected[key], true)) {
          const pick = (value) => Object.fromEntries(keys.filter((one) => one in Object(value)).map((one) => [one, value[one]]));
          fail(fn, error, expected, message ?? difference(pick(error), pick(expected), 'deepStrictEqual'), fn.name);
        }
      }
    }
  }
  const NONE = Symbol('none');
  function run(act) {
    validate.function(act, 'fn');
    try {
      act();
    } catch (error) {
      return error;
    }
    return NONE;
  }
  async function runLater(act) {
    let promise = act;
    if (typeof act === 'function') {
      promise = act();
      if (typeof promise?.then !== 'function') throw coded(TypeError, 'ERR_INVALID_RETURN_VALUE', `Expected instance of Promise to be returned from the "promiseFn" function but got ${promise === undefined ? 'undefined' : typeof promise}.`);
    } else if (typeof promise?.then !== 'function') throw invalidArgType('promiseFn', ['Function', 'Promise'], act);
    try {
      await promise;
    } catch (error) {
      return error;
    }
    return NONE;
  }
  function expects(fn, error, expected, message) {
    if (typeof expected === 'string') {
      if (message !== undefined) throw invalidArgType('error', ['Object', 'Error', 'Function', 'RegExp'], expected);
      if (typeof error === 'object' && error !== null ? error.message === expected : error === expected) throw coded(TypeError, 'ERR_AMBIGUOUS_ARGUMENT', `The "error/message" argument is ambiguous. The error message "${expected}" is identical to the message.`);
      message = expected;
      expected = undefined;
    }
    if (error === NONE) {
      const name = expected?.name ? ` (${expected.name})` : '';
      const kind = fn.name === 'rejects' ? 'rejection' : 'exception';
      fail(fn, undefined, expected, `Missing expected ${kind}${name}${message ? `: ${message}` : '.'}`, fn.name);
    }
    if (expected !== undefined) matches(fn, error, expected, message);
  }
  function expectsNone(fn, error, expected, message) {
    if (error === NONE) return;
    if (typeof expected === 'string') { message = expected; expected = undefined; }
    if (expected && !(typeof expected === 'function' ? error instanceof expected : expected.test(String(error)))) throw error;
    const kind = fn.name === 'doesNotReject' ? 'rejection' : 'exception';
    fail(fn, error, expected, `Got unwanted ${kind}${message ? `: ${message}` : '.'}\nActual message: "${error?.message}"`, fn.name);
  }
  assert.throws = function throws(act, expected, message) { expects(throws, run(act), expected, message); };
  assert.rejects = async function rejects(act, expected, message) { expects(rejects, await runLater(act), expected, message); };
  assert.doesNotThrow = function doesNotThrow(act, expected, message) { expectsNone(doesNotThrow, run(act), expected, message); };
  assert.doesNotReject = async function doesNotReject(act, expected, message) { expectsNone(doesNotReject, await runLater(act), expected, message); };
  const matching = (fn, wanted) => function (text, pattern, message) {
    if (!(pattern instanceof RegExp)) throw invalidArgType('regexp', 'RegExp', pattern);
    if (typeof text === 'string' && pattern.test(text) === wanted) return;
    const said = typeof text !== 'string' ? `The "string" argument must be of type string. Received type ${typeof text} (${inspect(text)})`
      : `${wanted ? 'The input did not match the regular expression ' : 'The input was expected to not match the regular expression '}${inspect(pattern)}. Input:\n\n${inspect(text)}\n`;
    const error = new AssertionError({ actual: text, expected: pattern, message: message ?? said, operator: fn, stackStartFn: assert[fn] });
    if (message instanceof Error) throw message;
    error.generatedMessage = message === undefined;
    throw error;
  };
  assert.match = matching('match', true);
  assert.doesNotMatch = matching('doesNotMatch', false);
  function strict(...args) { check(strict, args); }
  assert.strict = Object.assign(strict, assert, { equal: assert.strictEqual, deepEqual: assert.deepStrictEqual, notEqual: assert.notStrictEqual, notDeepEqual: assert.notDeepStrictEqual });
  assert.strict.strict = assert.strict;
  module.exports = assert;
})
