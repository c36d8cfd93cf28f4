// JSON as the engine has it, with V8's words for what is wrong.
(function (exports, require, module, native) {
  'use strict';

  const { parse, stringify } = JSON;

  // Finds the first character at which a text stops being JSON, and what V8 expected there.
  function fault(text) {
    let at = 0;
    const end = text.length;
    const fail = (why) => { throw { at, why }; };
    const space = () => { while (at < end && ' \t\n\r'.includes(text[at])) at++; };
    function string() {
      at++;
      for (; ; at++) {
        if (at >= end) fail('Unterminated string in JSON');
        const char = text[at];
        if (char === '"') { at++; return; }
        if (char < ' ') fail('Bad control character in string literal in JSON');
        if (char === '\\') {
          at++;
          if (at >= end) fail('Unterminated string in JSON');
          if (text[at] === 'u') {
            for (let digit = 0; digit < 4; digit++) {
              at++;
              if (at >= end || !/[0-9a-fA-F]/.test(text[at])) fail('Bad Unicode escape in JSON');
            }
          } else if (!'"\\/bfnrt'.includes(text[at])) fail('Bad escaped character in JSON');
        }
      }
    }
    function number() {
      if (text[at] === '-') {
        at++;
        if (!/\d/.test(text[at] ?? '')) fail('No number after minus sign in JSON');
      }
      if (text[at] === '0') {
        at++;
        if (/\d/.test(text[at] ?? '')) fail('Unexpected number in JSON');
      } else while (/\d/.test(text[at] ?? '')) at++;
      if (text[at] === '.') {
        at++;
        if (!/\d/.test(text[at] ?? '')) fail('Unterminated fractional number in JSON');
        while (/\d/.test(text[at] ?? '')) at++;
      }
      if (/[eE]/.test(text[at] ?? '')) {
        at++;
        if (/[+-]/.test(text[at] ?? '')) at++;
        if (!/\d/.test(text[at] ?? '')) fail('Exponent part is missing a number in JSON');
        while (/\d/.test(text[at] ?? '')) at++;
      }
    }
    function word(expected) {
      for (const char of expected) {
        if (text[at] !== char) fail('token');
        at++;
      }
    }
    // Without recursion: the text may be nested as deeply as it likes.
    const open = [];
    let wantsValue = true;
    function atom(char) {
      if (char === '"') string();
      else if (char === '-' || /\d/.test(char)) number();
      else if (char === 't') word('true');
      else if (char === 'f') word('false');
      else if (char === 'n') word('null');
      else fail('token');
    }
    function key(first) {
      space();
      if (first && text[at] === '}') { at++; open.pop(); return false; }
      if (text[at] !== '"') {
        if (at >= end && first) fail("Expected property name or '}' in JSON");
        fail(first ? "Expected property name or '}' in JSON" : 'Expected double-quoted property name in JSON');
      }
      string();
      space();
      if (text[at] !== ':') fail("Expected ':' after property name in JSON");
      at++;
      return true;
    }
    try {
      for (;;) {
        space();
        if (wantsValue) {
          if (at >= end) fail('end');
          const char = text[at];
          if (char === '{') {
            at++;
            open.push('}');
            wantsValue = key(true);
          } else if (char === '[') {
            at++;
            open.push(']');
            space();
            if (text[at] === ']') { at++; open.pop(); wantsValue = false; }
          } else {
            atom(char);
            wantsValue = false;
          }
          continue;
        }
        if (open.length === 0) {
          if (at < end) fail('Unexpected non-whitespace character after JSON');
          return null;
        }
        const close = open[open.length - 1];
        if (text[at] === close) { at++; open.pop(); continue; }
        if (text[at] === ',') {
          at++;
          wantsValue = close === '}' ? key(false) : true;
          continue;
        }
        fail(close === '}' ? "Expected ',' or '}' after property value in JSON" : "Expected ',' or ']' after array element in JSON");
      }
    } catch (found) {
      return found;
    }
  }

  function message(text) {
    const found = fault(text);
    if (!found || found.at === undefined) return null;
    const { at, why } = found;
    if (text === 'undefined') return '"undefined" is not valid JSON';
    if (why === 'end' || (why === 'token' && at >= text.length)) return 'Unexpected end of JSON input';
    if (why !== 'token') return `${why} at position ${at}`;
    const AROUND = 10;
    let shown = `"${text}" is not valid JSON`;
    if (text.length > 40) {
      const before = at - AROUND <= 0 ? '' : '...';
      const after = at + AROUND >= text.length ? '' : '...';
      shown = `${before}"${text.slice(Math.max(0, at - AROUND), at + AROUND)}"${after} is not valid JSON`;
      shown = before || after ? `${before}"${text.slice(Math.max(0, at - AROUND), at + AROUND)}"${after} is not valid JSON` : shown;
    }
    return `Unexpected token '${text[at]}', ${shown}`;
  }

  // The way along which a value contains itself, in V8's words.
  function circle(value) {
    const stack = [];
    const seen = new Set();
    function walk(one, key) {
      if (one === null || typeof one !== 'object' || typeof one.toJSON === 'function') return null;
      const index = stack.findIndex((entry) => entry.value === one);
      if (index >= 0) return { index, key };
      if (seen.has(one) || stack.length > 1000) return null;
      stack.push({ value: one, key });
      for (const name of Object.keys(one)) {
        const found = walk(one[name], Array.isArray(one) ? `index ${name}` : `property '${name}'`);
        if (found) return found;
      }
      stack.pop();
      seen.add(one);
      return null;
    }
    const found = walk(value, '');
    if (!found) return null;
    const loop = stack.slice(found.index);
    const maker = (one) => `object with constructor '${one.constructor?.name ?? 'Object'}'`;
    let text = `Converting circular structure to JSON\n    --> starting at ${maker(loop[0].value)}`;
    if (loop.length > 1) text += `\n    |     ${loop[1].key} -> ${maker(loop[1].value)}`;
    if (loop.length > 3) text += '\n    |     ...';
    if (loop.length > 2) text += `\n    |     ${loop[loop.length - 1].key} -> ${maker(loop[loop.length - 1].value)}`;
    return `${text}\n    --- ${found.key} closes the circle`;
  }

  const wrappers = {
    parse(text, reviver) {
      try {
        return reviver === undefined ? parse(text) : parse(text, reviver);
      } catch (error) {
        if (error instanceof SyntaxError || error instanceof RangeError) {
          const words = message(String(text));
          if (words) throw new SyntaxError(words);
        }
        throw error;
      }
    },
    stringify(value, replacer, space) {
      try {
        return stringify(value, replacer, space);
      } catch (error) {
        if (error instanceof TypeError && error.message === 'circular reference') {
          const words = circle(value);
          if (words) throw new TypeError(words);
        }
        throw error;
      }
    },
  };

  exports.install = () => {
    for (const name of ['parse', 'stringify']) {
      Object.defineProperty(JSON, name, { value: wrappers[name], writable: true, configurable: true, enumerable: false });
    }
  };
})
