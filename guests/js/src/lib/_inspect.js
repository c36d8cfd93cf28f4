// util.inspect and util.format: values as text, as Node 20 prints them.
(function (exports, require, module, native) {
  'use strict';

  const custom = Symbol.for('nodejs.util.inspect.custom');
  const OBJECT = 0, ARRAY = 1, ARRAY_EXTRA = 2;
  const classOf = native.classOf;
  const C = {
    Array: classOf([]), Error: classOf(new Error('')), Map: classOf(new Map()), Set: classOf(new Set()),
    Date: classOf(new Date(0)), RegExp: classOf(/a/), Promise: classOf(Promise.resolve()),
    WeakMap: classOf(new WeakMap()), WeakSet: classOf(new WeakSet()), WeakRef: classOf(new WeakRef({})),
    ArrayBuffer: classOf(new ArrayBuffer(0)), SharedArrayBuffer: classOf(new SharedArrayBuffer(0)),
    DataView: classOf(new DataView(new ArrayBuffer(0))), Number: classOf(Object(1)), String: classOf(Object('')),
    Boolean: classOf(Object(true)), Symbol: classOf(Object(Symbol())), BigInt: classOf(Object(1n)),
    MapIterator: classOf(new Map().keys()), SetIterator: classOf(new Set().keys()),
    Arguments: classOf((function () { return arguments; })()),
    MappedArguments: classOf(Function('return arguments')()), Generator: classOf((function* () {})()),
    AsyncGenerator: classOf((async function* () {})()),
  };
  exports.C = C;
  const typedArrays = new Map();
  for (const Type of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array,
    Float32Array, Float64Array, BigInt64Array, BigUint64Array]) typedArrays.set(classOf(new Type(0)), Type.name);
  const isTyped = (value) => typedArrays.has(classOf(value));
  exports.typedName = (value) => typedArrays.get(classOf(value));

  const defaults = {
    showHidden: false, depth: 2, colors: false, customInspect: true, showProxy: false, maxArrayLength: 100,
    maxStringLength: 10000, breakLength: 80, compact: 3, sorted: false, getters: false, numericSeparator: false,
  };

  const colors = Object.assign(Object.create(null), {
    reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], blink: [5, 25], inverse: [7, 27],
    hidden: [8, 28], strikethrough: [9, 29], doubleunderline: [21, 24], black: [30, 39], red: [31, 39], green: [32, 39],
    yellow: [33, 39], blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], bgBlack: [40, 49],
    bgRed: [41, 49], bgGreen: [42, 49], bgYellow: [43, 49], bgBlue: [44, 49], bgMagenta: [45, 49], bgCyan: [46, 49],
    bgWhite: [47, 49], framed: [51, 54], overlined: [53, 55], gray: [90, 39], grey: [90, 39], redBright: [91, 39],
    greenBright: [92, 39], yellowBright: [93, 39], blueBright: [94, 39], magentaBright: [95, 39],
    cyanBright: [96, 39], whiteBright: [97, 39], bgGray: [100, 49],
  });
  const styles = Object.assign(Object.create(null), {
    special: 'cyan', number: 'yellow', bigint: 'yellow', boolean: 'yellow', undefined: 'grey', null: 'bold',
    string: 'green', symbol: 'green', date: 'magenta', regexp: 'red', module: 'underline',
  });

  const ESCAPES = { '\b': '\\b', '\t': '\\t', '\n': '\\n', '\f': '\\f', '\r': '\\r', '\\': '\\\\', '\v': '\\x0B' };

  function quote(text) {
    let mark = "'";
    if (text.includes("'")) {
      if (!text.includes('"')) mark = '"';
      else if (!text.includes('`') && !text.includes('${')) mark = '`';
    }
    // eslint-disable-next-line no-control-regex
    const body = text.replace(/[\x00-\x1f\x7f-\x9f\\'"`]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, (char) => {
      if (char === "'" || char === '"' || char === '`') return char === mark ? `\\${char}` : char;
      if (ESCAPES[char]) return ESCAPES[char];
      const code = char.charCodeAt(0);
      return code > 255 ? `\\u${code.toString(16)}` : `\\x${code.toString(16).toUpperCase().padStart(2, '0')}`;
    });
    return mark + body + mark;
  }

  // Columns a text takes at a terminal.
  function width(text) {
    // eslint-disable-next-line no-control-regex
    if (/^[\x20-\x7e]*$/.test(text)) return text.length;
    let columns = 0;
    for (const char of exports.stripColors(text).normalize('NFC')) {
      const code = char.codePointAt(0);
      if (code < 32 || (code >= 127 && code < 160) || (code >= 0x300 && code <= 0x36f) || code === 0x200b || code === 0x200d || (code >= 0xfe00 && code <= 0xfe0f)) continue;
      const wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf && code !== 0x303f) || (code >= 0xac00 && code <= 0xd7a3)
        || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60)
        || (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x1f300 && code <= 0x1f64f) || (code >= 0x1f900 && code <= 0x1f9ff)
        || (code >= 0x20000 && code <= 0x3fffd);
      columns += wide ? 2 : 1;
    }
    return columns;
  }
  exports.width = width;
  // eslint-disable-next-line no-control-regex
  exports.stripColors = (text) => text.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007]*\u0007/g, '');

  function inspect(value, options, ...old) {
    const ctx = { ...defaults, seen: [], circular: undefined, budget: {}, indentationLvl: 0, currentDepth: 0, stylize: (text) => text };
    if (typeof options === 'boolean') {
      ctx.showHidden = options;
      if (old[0] !== undefined) ctx.depth = old[0];
      if (old[1] !== undefined) ctx.colors = old[1];
    } else if (options) {
      for (const key of Object.keys(options)) {
        if (key in defaults || key === 'stylize') ctx[key] = options[key];
        else if (ctx.userOptions === undefined) ctx.userOptions = options;
      }
    }
    if (options && typeof options === 'object') ctx.userOptions = options;
    if (ctx.colors) ctx.stylize = colored;
    if (ctx.maxArrayLength === null) ctx.maxArrayLength = Infinity;
    if (ctx.maxStringLength === null) ctx.maxStringLength = Infinity;
    return formatValue(ctx, value, 0);
  }

  function colored(text, style) {
    const color = colors[styles[style]];
    return color ? `\u001b[${color[0]}m${text}\u001b[${color[1]}m` : text;
  }

  function formatPrimitive(ctx, value) {
    switch (typeof value) {
      case 'string': {
        let tail = '';
        if (value.length > ctx.maxStringLength) {
          const left = value.length - ctx.maxStringLength;
          value = value.slice(0, ctx.maxStringLength);
          tail = `... ${left} more character${left > 1 ? 's' : ''}`;
        }
        if (ctx.compact !== true && value.length > 16 && value.length > ctx.breakLength - ctx.indentationLvl - 4) {
          const lines = value.split(/(?<=\n)/).map((line) => ctx.stylize(quote(line), 'string'));
          return lines.join(` +\n${' '.repeat(ctx.indentationLvl + 2)}`) + tail;
        }
        return ctx.stylize(quote(value), 'string') + tail;
      }
      case 'number': return ctx.stylize(Object.is(value, -0) ? '-0' : separated(ctx, `${value}`), 'number');
      case 'bigint': return ctx.stylize(`${separated(ctx, `${value}`)}n`, 'bigint');
      case 'boolean': return ctx.stylize(`${value}`, 'boolean');
      case 'undefined': return ctx.stylize('undefined', 'undefined');
      default: return ctx.stylize(Symbol.prototype.toString.call(value), 'symbol');
    }
  }

  function separated(ctx, text) {
    if (!ctx.numericSeparator) return text;
    const [whole, fraction] = text.split('.');
    const groups = whole.replace(/\B(?=(\d{3})+(?!\d))/g, '_');
    return fraction === undefined ? groups : `${groups}.${fraction.replace(/(\d{3})(?=\d)/g, '$1_')}`;
  }

  function formatValue(ctx, value, depth, typed) {
    if (value === null) return ctx.stylize('null', 'null');
    if (typeof value !== 'object' && typeof value !== 'function') return formatPrimitive(ctx, value);
    const context = value;
    const proxy = native.proxy(value);
    if (proxy !== undefined) {
      if (ctx.showProxy) return formatProxy(ctx, proxy, depth);
      let target = proxy;
      while (target !== undefined) {
        value = target[0];
        target = native.proxy(value);
        if (value === null) return '<Revoked Proxy>';
      }
    }
    if (ctx.customInspect) {
      const own = value[custom];
      if (typeof own === 'function' && own !== inspect && !(value.constructor && value.constructor.prototype === value)) {
        const left = ctx.depth === null ? null : ctx.depth - depth;
        const said = own.call(context, left, userOptions(ctx), inspect);
        if (said !== context) {
          if (typeof said !== 'object') return `${said}`.replaceAll('\n', `\n${' '.repeat(ctx.indentationLvl)}`);
          return formatValue(ctx, said, depth);
        }
      }
    }
    if (ctx.seen.includes(value)) {
      ctx.circular ??= new Map();
      if (!ctx.circular.has(value)) ctx.circular.set(value, ctx.circular.size + 1);
      return ctx.stylize(`[Circular *${ctx.circular.get(value)}]`, 'special');
    }
    return formatRaw(ctx, value, depth, typed);
  }

  function userOptions(ctx) {
    const options = { ...ctx.userOptions };
    for (const key of Object.keys(defaults)) options[key] = ctx[key];
    options.stylize = ctx.stylize;
    return options;
  }

  function formatProxy(ctx, [target, handler], depth) {
    if (depth > ctx.depth && ctx.depth !== null) return ctx.stylize('Proxy [Array]', 'special');
    ctx.indentationLvl += 2;
    const parts = [formatValue(ctx, target, depth + 1), formatValue(ctx, handler, depth + 1)];
    ctx.indentationLvl -= 2;
    return single(ctx, parts, '', ['Proxy [', ']'], ARRAY_EXTRA, depth);
  }

  // The name of what made a value; null if nothing did.
  function constructorName(value, ctx, depth, proto) {
    let object = value, first;
    while (object) {
      const descriptor = Object.getOwnPropertyDescriptor(object, 'constructor');
      if (descriptor !== undefined && typeof descriptor.value === 'function' && descriptor.value.name !== ''
        && isInstance(value, descriptor.value)) return String(descriptor.value.name);
      object = Object.getPrototypeOf(object);
      if (first === undefined) first = object;
    }
    if (first === null) return null;
    return `${fallback(value)} <${inspect(first, { depth: -1, customInspect: false })}>`;
  }

  function isInstance(value, Type) {
    try {
      return value instanceof Type;
    } catch {
      return false;
    }
  }

  const fallback = (value) => (typeof value === 'function' ? 'Function' : Object.prototype.toString.call(value).slice(8, -1));

  function prefix(constructor, tag, kind, size = '') {
    if (constructor === null) {
      return tag !== '' && kind !== tag ? `[${kind}${size}: null prototype] [${tag}] ` : `[${kind}${size}: null prototype] `;
    }
    return tag !== '' && constructor !== tag ? `${constructor}${size} [${tag}] ` : `${constructor}${size} `;
  }

  function keysOf(value, showHidden) {
    const symbols = Object.getOwnPropertySymbols(value);
    if (showHidden) return [...Object.getOwnPropertyNames(value), ...symbols];
    let keys;
    try {
      keys = Object.keys(value);
    } catch {
      // A module whose variables are not initialised yet.
      keys = Object.getOwnPropertyNames(value);
    }
    return [...keys, ...symbols.filter((symbol) => Object.prototype.propertyIsEnumerable.call(value, symbol))];
  }

  const isIndex = (key) => typeof key === 'string' && /^(0|[1-9]\d*)$/.test(key) && Number(key) < 2 ** 32 - 1;

  function formatRaw(ctx, value, depth, typed) {
    const type = classOf(value);
    const constructor = constructorName(value, ctx, depth);
    let tag = value[Symbol.toStringTag];
    if (typeof tag !== 'string' || (tag !== '' && (ctx.showHidden ? Object.hasOwn : Object.prototype.propertyIsEnumerable.call.bind(Object.prototype.propertyIsEnumerable))(value, Symbol.toStringTag))) tag = '';
    let base = '', braces, format = () => [], keys, extra = OBJECT, noEntries = true;
    const isFunction = typeof value === 'function';

    if (type === C.Array) {
      keys = keysOf(value, ctx.showHidden).filter((key) => !isIndex(key) && !(key === 'length' && !ctx.showHidden));
      const before = constructor !== 'Array' || tag !== '' ? prefix(constructor, tag, 'Array', `(${value.length})`) : '';
      braces = [`${before}[`, ']'];
      if (value.length === 0 && keys.length === 0) return `${braces[0]}]`;
      extra = ARRAY_EXTRA;
      format = formatArray;
      noEntries = false;
    } else if (type === C.Set || type === C.Map) {
      const name = type === C.Set ? 'Set' : 'Map';
      keys = keysOf(value, ctx.showHidden);
      braces = [`${prefix(constructor, tag, name, `(${value.size})`)}{`, '}'];
      format = type === C.Set ? formatSet : formatMap;
      if (value.size === 0 && keys.length === 0) return `${braces[0]}}`;
      noEntries = false;
    } else if (isTyped(value)) {
      keys = keysOf(value, ctx.showHidden).filter((key) => !isIndex(key));
      const name = exports.typedName(value);
      braces = [`${prefix(constructor, tag, name, `(${value.length})`)}[`, ']'];
      if (value.length === 0 && keys.length === 0 && !ctx.showHidden) return `${braces[0]}]`;
      extra = ARRAY_EXTRA;
      format = formatTyped;
      noEntries = false;
    } else if (type === C.MapIterator || type === C.SetIterator) {
      keys = keysOf(value, ctx.showHidden);
      braces = [`[${tag}] {`, '}'];
      format = formatIterator;
      noEntries = false;
    }

    if (noEntries) {
      keys = keysOf(value, ctx.showHidden);
      braces = ['{', '}'];
      if (type === C.Arguments || type === C.MappedArguments) {
        braces[0] = '[Arguments] {';
        if (keys.length === 0) return '[Arguments] {}';
      } else if (isFunction) {
        base = functionBase(value, constructor, tag);
        if (keys.length === 0) return ctx.stylize(base, 'special');
      } else if (type === C.RegExp) {
        base = RegExp.prototype.toString.call(constructor !== null ? value : new RegExp(value));
        const before = prefix(constructor, tag, 'RegExp');
        if (before !== 'RegExp ') base = `${before}${base}`;
        if (keys.length === 0 || (depth > ctx.depth && ctx.depth !== null)) return ctx.stylize(base, 'regexp');
      } else if (type === C.Date) {
        base = Number.isNaN(Date.prototype.getTime.call(value)) ? Date.prototype.toString.call(value) : Date.prototype.toISOString.call(value);
        const before = prefix(constructor, tag, 'Date');
        if (before !== 'Date ') base = `${before}${base}`;
        if (keys.length === 0) return ctx.stylize(base, 'date');
      } else if (type === C.Error) {
        base = formatError(ctx, value, constructor, tag, keys);
        if (keys.length === 0) return base;
      } else if (type === C.ArrayBuffer || type === C.SharedArrayBuffer) {
        const name = type === C.ArrayBuffer ? 'ArrayBuffer' : 'SharedArrayBuffer';
        const before = prefix(constructor, tag, name);
        if (typed === undefined) format = formatBuffer;
        else if (keys.length === 0) return `${before}{ byteLength: ${value.byteLength} }`;
        braces[0] = `${before}{`;
        keys.unshift('byteLength');
      } else if (type === C.DataView) {
        braces[0] = `${prefix(constructor, tag, 'DataView')}{`;
        keys.unshift('byteLength', 'byteOffset', 'buffer');
      } else if (type === C.Promise) {
        braces[0] = `${prefix(constructor, tag, 'Promise')}{`;
        format = formatPromise;
      } else if (type === C.WeakSet || type === C.WeakMap) {
        braces[0] = `${prefix(constructor, tag, type === C.WeakSet ? 'WeakSet' : 'WeakMap')}{`;
        format = () => [ctx.stylize('<items unknown>', 'special')];
      } else if (type === C.WeakRef) {
        braces[0] = `${prefix(constructor, tag, 'WeakRef')}{`;
        format = (inner, one, level) => [formatValue(inner, one.deref(), level)];
      } else if ([C.Number, C.String, C.Boolean, C.BigInt, C.Symbol].includes(type)) {
        base = boxed(ctx, value, type, keys, constructor, tag);
        if (type === C.String) keys = keys.filter((key) => !isIndex(key) && key !== 'length');
        if (keys.length === 0) return base;
      } else if (tag === 'Module' && Object.getPrototypeOf(value) === null) {
        braces[0] = `${prefix(constructor, tag, 'Module').replace('[Module] ', '')}{`;
        braces[0] = '[Module: null prototype] {';
        format = formatNamespace.bind(null, keys);
        keys = [];
        extra = OBJECT;
      } else {
        if (type === C.Generator || type === C.AsyncGenerator) {
          if (keys.length === 0) return `${prefix(constructor, tag, 'Object')}{}`;
          braces[0] = `${prefix(constructor, tag, 'Object')}{`;
        } else if (constructor === 'Object' && tag === '') {
          if (keys.length === 0) return '{}';
        } else {
          if (keys.length === 0) return `${prefix(constructor, tag, fallbackKind(value))}{}`;
          braces[0] = `${prefix(constructor, tag, fallbackKind(value))}{`;
        }
      }
    }

    if (depth > ctx.depth && ctx.depth !== null) {
      const name = prefix(constructor, tag, type === C.Array ? 'Array' : fallback(value)).slice(0, -1);
      return ctx.stylize(constructor !== null ? `[${name}]` : name, 'special');
    }
    depth += 1;
    ctx.seen.push(value);
    ctx.currentDepth = depth;
    let output;
    try {
      output = format(ctx, value, depth);
      for (const key of keys) output.push(formatProperty(ctx, value, depth, key, extra));
    } catch (error) {
      if (error instanceof RangeError && /call stack/.test(error.message)) {
        ctx.seen.pop();
        return ctx.stylize(`[${constructor}: Inspection interrupted prematurely. Maximum call stack size exceeded.]`, 'special');
      }
      throw error;
    }
    if (ctx.circular !== undefined) {
      const index = ctx.circular.get(value);
      if (index !== undefined) {
        const mark = ctx.stylize(`<ref *${index}>`, 'special');
        if (ctx.compact !== true) base = base === '' ? mark : `${mark} ${base}`;
        else braces[0] = `${mark} ${braces[0]}`;
      }
    }
    ctx.seen.pop();
    if (ctx.sorted) {
      const by = ctx.sorted === true ? undefined : ctx.sorted;
      if (extra === OBJECT) output.sort(by);
      else if (keys.length > 1) {
        const sorted = output.slice(output.length - keys.length).sort(by);
        output.splice(output.length - keys.length, keys.length, ...sorted);
      }
    }
    return single(ctx, output, base, braces, extra, depth, value);
  }

  const fallbackKind = (value) => {
    const name = fallback(value);
    return name === 'Object' || Object.getPrototypeOf(value) === null ? 'Object' : name;
  };

  function functionBase(value, constructor, tag) {
    const source = Function.prototype.toString.call(value);
    if (source.startsWith('class') && source.endsWith('}')) {
      const named = Object.hasOwn(value, 'name') && value.name;
      let base = `[class ${named || '(anonymous)'}`;
      if (constructor !== 'Function' && constructor !== null) base += ` [${constructor}]`;
      if (tag !== '' && constructor !== tag) base += ` [${tag}]`;
      const parent = Object.getPrototypeOf(value);
      if (constructor !== null) {
        if (parent?.name) base += ` extends ${parent.name}`;
      } else base += ' extends [null prototype]';
      return `${base}]`;
    }
    let type = 'Function';
    const kind = Object.prototype.toString.call(value).slice(8, -1);
    if (kind === 'AsyncFunction' || kind === 'GeneratorFunction' || kind === 'AsyncGeneratorFunction') type = kind;
    let base = `[${type}`;
    if (constructor === null) base += ' (null prototype)';
    base += value.name === '' ? ' (anonymous)' : `: ${typeof value.name === 'string' ? value.name : formatValue({ ...defaults, seen: [], stylize: (text) => text, indentationLvl: 0 }, value.name, 0)}`;
    base += ']';
    if (constructor !== type && constructor !== null) base += ` ${constructor}`;
    if (tag !== '' && constructor !== tag) base += ` [${tag}]`;
    return base;
  }

  function formatError(ctx, error, constructor, tag, keys) {
    const name = error.name != null ? String(error.name) : 'Error';
    let stack = error.stack ? String(error.stack) : Error.prototype.toString.call(error);
    for (const key of ['name', 'message', 'stack']) {
      const index = keys.indexOf(key);
      if (index !== -1 && (ctx.showHidden || stack.includes(error[key]))) keys.splice(index, 1);
    }
    if ('cause' in error && Object.hasOwn(error, 'cause') && !keys.includes('cause')) keys.push('cause');
    if (Array.isArray(error.errors) && Object.hasOwn(error, 'errors') && !keys.includes('errors')) keys.push('errors');
    // The class's name is more telling than the name it inherits.
    if (constructor === null || (name.endsWith('Error') && stack.startsWith(name) && (stack.length === name.length || stack[name.length] === ':' || stack[name.length] === '\n'))) {
      let full = 'Error';
      if (constructor === null) {
        const start = /^([A-Z][a-z_ A-Z0-9[\]()-]+)(?::|\n\s+at)/.exec(stack) ?? /^([a-z_A-Z0-9-]*Error)$/.exec(stack);
        full = start?.[1] ?? '';
        stack = `[${full || 'Error'}: null prototype]${stack.slice(full.length)}`;
      } else if (!name.includes(constructor) && isNaN(constructor)) {
        if (constructor.includes(name)) {
          stack = stack.startsWith(name) ? `${constructor}${stack.slice(name.length)}` : stack;
        } else stack = `${constructor} [${name}]${stack.slice(name.length)}`;
      }
    }
    if (name !== 'Error' && !stack.includes(name)) {
      const start = /^([A-Z][a-z_ A-Z0-9[\]()-]+)(?::|\n\s+at)/.exec(stack) ?? /^([a-z_A-Z0-9-]*Error)$/.exec(stack);
      if (start) stack = `${name}${stack.slice(start[1].length)}`;
    }
    for (const key of ['name', 'message', 'stack']) {
      const index = keys.indexOf(key);
      if (index !== -1 && stack.includes(error[key])) keys.splice(index, 1);
    }
    let at = error.message ? stack.indexOf(String(error.message)) : -1;
    if (at !== -1) at += String(error.message).length;
    const frames = stack.indexOf('\n    at', Math.max(at, 0));
    if (frames === -1) stack = `[${stack}]`;
    if (ctx.indentationLvl !== 0) stack = stack.replaceAll('\n', `\n${' '.repeat(ctx.indentationLvl)}`);
    return stack;
  }

  function boxed(ctx, value, type, keys, constructor, tag) {
    const [name, of] = type === C.Number ? ['Number', Number.prototype.valueOf]
      : type === C.String ? ['String', String.prototype.valueOf]
        : type === C.Boolean ? ['Boolean', Boolean.prototype.valueOf]
          : type === C.BigInt ? ['BigInt', BigInt.prototype.valueOf] : ['Symbol', Symbol.prototype.valueOf];
    let base = `[${name}`;
    if (name !== constructor) base += constructor === null ? ' (null prototype)' : ` (${constructor})`;
    base += `: ${formatPrimitive({ ...ctx, stylize: (text) => text }, of.call(value))}]`;
    if (tag !== '' && tag !== constructor) base += ` [${tag}]`;
    return keys.length !== 0 && type !== C.String ? base : ctx.stylize(base, name.toLowerCase());
  }

  const more = (count) => `... ${count} more item${count > 1 ? 's' : ''}`;

  function formatArray(ctx, value, depth) {
    const output = [];
    const most = Math.min(Math.max(0, ctx.maxArrayLength), value.length);
    let index = 0;
    while (index < value.length && output.length < most) {
      if (!Object.hasOwn(value, index)) {
        let next = index + 1;
        if (value.length - index > 1000) {
          const keys = Object.keys(value);
          const found = keys.find((key) => isIndex(key) && Number(key) > index);
          next = found === undefined ? value.length : Number(found);
        } else while (next < value.length && !Object.hasOwn(value, next)) next++;
        const count = next - index;
        output.push(ctx.stylize(`<${count} empty item${count > 1 ? 's' : ''}>`, 'undefined'));
        index = next;
      } else {
        output.push(formatProperty(ctx, value, depth, index, ARRAY));
        index++;
      }
    }
    if (index < value.length) output.push(more(value.length - index));
    return output;
  }

  function formatTyped(ctx, value, depth) {
    const most = Math.min(Math.max(0, ctx.maxArrayLength), value.length);
    const output = [];
    for (let index = 0; index < most; index++) output.push(formatPrimitive(ctx, value[index]));
    if (value.length > most) output.push(more(value.length - most));
    if (ctx.showHidden) {
      ctx.indentationLvl += 2;
      for (const key of ['BYTES_PER_ELEMENT', 'length', 'byteLength', 'byteOffset', 'buffer']) {
        output.push(`[${key}]: ${formatValue(ctx, value[key], depth, true)}`);
      }
      ctx.indentationLvl -= 2;
    }
    return output;
  }

  function formatSet(ctx, value, depth) {
    ctx.indentationLvl += 2;
    const output = [];
    const most = Math.min(Math.max(0, ctx.maxArrayLength), value.size);
    for (const one of Set.prototype.values.call(value)) {
      if (output.length >= most) break;
      output.push(formatValue(ctx, one, depth));
    }
    if (value.size > most) output.push(more(value.size - most));
    ctx.indentationLvl -= 2;
    return output;
  }

  function formatMap(ctx, value, depth) {
    ctx.indentationLvl += 2;
    const output = [];
    const most = Math.min(Math.max(0, ctx.maxArrayLength), value.size);
    for (const [key, one] of Map.prototype.entries.call(value)) {
      if (output.length >= most) break;
      output.push(`${formatValue(ctx, key, depth)} => ${formatValue(ctx, one, depth)}`);
    }
    if (value.size > most) output.push(more(value.size - most));
    ctx.indentationLvl -= 2;
    return output;
  }

  // What is left of an iterator cannot be seen without taking it.
  function formatIterator(ctx) {
    return [ctx.stylize('<items unknown>', 'special')];
  }

  function formatBuffer(ctx, value) {
    let bytes;
    try {
      bytes = new Uint8Array(value);
    } catch {
      return [ctx.stylize('(detached)', 'special')];
    }
    const most = Math.min(Math.max(0, ctx.maxArrayLength), bytes.length);
    let text = [...bytes.subarray(0, most)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const left = bytes.length - most;
    if (left > 0) text += ` ... ${left} more byte${left > 1 ? 's' : ''}`;
    return [`${ctx.stylize('[Uint8Contents]', 'special')}: <${text}>`];
  }

  function formatPromise(ctx, value, depth) {
    const [state, result] = native.promise(value);
    if (state === 0) return [ctx.stylize('<pending>', 'special')];
    ctx.indentationLvl += 2;
    const text = formatValue(ctx, result, depth);
    ctx.indentationLvl -= 2;
    return [state === 2 ? `${ctx.stylize('<rejected>', 'special')} ${text}` : text];
  }

  function formatNamespace(keys, ctx, value, depth) {
    return keys.map((key) => {
      try {
        return formatProperty(ctx, value, depth, key, OBJECT);
      } catch (error) {
        if (!(error instanceof ReferenceError)) throw error;
        return `${nameOf(ctx, key, true)}: ${ctx.stylize('<uninitialized>', 'special')}`;
      }
    });
  }

  function nameOf(ctx, key, enumerable) {
    if (typeof key === 'symbol') return `[${ctx.stylize(Symbol.prototype.toString.call(key), 'symbol')}]`;
    if (key === '__proto__') return "['__proto__']";
    if (!enumerable) return `[${key}]`;
    if (/^[a-zA-Z_][a-zA-Z_0-9]*$/.test(key)) return ctx.stylize(key, 'name');
    return ctx.stylize(quote(key), 'string');
  }

  function formatProperty(ctx, value, depth, key, type) {
    const descriptor = Object.getOwnPropertyDescriptor(value, key) ?? { value: value[key], configurable: true, enumerable: true };
    let text;
    if (descriptor.value !== undefined) {
      const by = ctx.compact !== true || type !== OBJECT ? 2 : 3;
      ctx.indentationLvl += by;
      text = formatValue(ctx, descriptor.value, depth);
      if (by === 3 && ctx.breakLength < width(text)) text = `\n${' '.repeat(ctx.indentationLvl)}${text}`;
      ctx.indentationLvl -= by;
    } else if (descriptor.get !== undefined) {
      const label = descriptor.set !== undefined ? 'Getter/Setter' : 'Getter';
      if (ctx.getters && (ctx.getters === true || (ctx.getters === 'get') === (descriptor.set === undefined))) {
        try {
          const got = descriptor.get.call(value);
          ctx.indentationLvl += 2;
          text = got === null || typeof got !== 'object' ? `${ctx.stylize(`[${label}:`, 'special')} ${formatValue(ctx, got, depth)}${ctx.stylize(']', 'special')}`
            : `${ctx.stylize(`[${label}]`, 'special')} ${formatValue(ctx, got, depth)}`;
          ctx.indentationLvl -= 2;
        } catch (error) {
          text = `${ctx.stylize(`[${label}: <Inspection threw (${error.message})>`, 'special')}${ctx.stylize(']', 'special')}`;
        }
      } else text = ctx.stylize(`[${label}]`, 'special');
    } else if (descriptor.set !== undefined) text = ctx.stylize('[Setter]', 'special');
    else text = ctx.stylize('undefined', 'undefined');
    if (type === ARRAY) return text;
    const own = descriptor.enumerable !== false || (native.classOf(value) === C.ArrayBuffer);
    return `${nameOf(ctx, key, own)}:${text[0] === '\n' ? '' : ' '}${text}`;
  }

  // Several short elements of an array in each line.
  function grouped(ctx, output, value) {
    let total = 0, longest = 0;
    const extra = ctx.maxArrayLength < output.length ? 1 : 0;
    const count = output.length - extra;
    const lengths = [];
    for (let index = 0; index < count; index++) {
      const length = ctx.colors ? width(exports.stripColors(output[index])) : width(output[index]);
      lengths.push(length);
      total += length + 2;
      longest = Math.max(longest, length);
    }
    const most = longest + 2;
    if (most * 3 + ctx.indentationLvl >= ctx.breakLength || !(total / most > 5 || longest <= 6)) return output;
    const bias = Math.max(most - 3 - Math.sqrt(most - total / output.length), 1);
    const columns = Math.min(
      Math.round(Math.sqrt(2.5 * bias * count) / bias),
      Math.floor((ctx.breakLength - ctx.indentationLvl) / most),
      ctx.compact * 4,
      15,
    );
    if (columns <= 1) return output;
    const widths = [];
    for (let column = 0; column < columns; column++) {
      let widest = 0;
      for (let index = column; index < count; index += columns) widest = Math.max(widest, lengths[index]);
      widths.push(widest + 2);
    }
    const toTheLeft = value !== undefined && !output.every((_, index) => index >= value.length || typeof value[index] === 'number' || typeof value[index] === 'bigint');
    const lines = [];
    for (let start = 0; start < count; start += columns) {
      const end = Math.min(start + columns, count);
      let line = '';
      for (let index = start; index < end; index++) {
        const last = index === end - 1;
        const hidden = output[index].length - lengths[index];
        if (last) line += toTheLeft ? output[index] : output[index].padStart(widths[index - start] - 2 + hidden);
        else if (toTheLeft) line += `${output[index]}, `.padEnd(widths[index - start] + hidden);
        else line += `${output[index]}, `.padStart(widths[index - start] + hidden);
      }
      lines.push(line);
    }
    if (extra) lines.push(output[count]);
    return lines;
  }

  // All parts in one line if they fit, else one in each.
  function single(ctx, output, base, braces, extra, depth, value) {
    if (ctx.compact !== true) {
      if (typeof ctx.compact === 'number' && ctx.compact >= 1) {
        const entries = output.length;
        if (extra === ARRAY_EXTRA && entries > 6) output = grouped(ctx, output, value);
        if (ctx.currentDepth - depth < ctx.compact && entries === output.length) {
          const start = output.length + ctx.indentationLvl + braces[0].length + base.length + 10;
          const total = output.reduce((sum, part) => sum + (ctx.colors ? exports.stripColors(part).length : part.length), output.length + start);
          if (total <= ctx.breakLength && (base === '' || !base.includes('\n'))) {
            const joined = output.join(', ');
            if (!joined.includes('\n')) return `${base ? `${base} ` : ''}${braces[0]} ${joined} ${braces[1]}`;
          }
        }
      }
      const indent = `\n${' '.repeat(ctx.indentationLvl)}`;
      return `${base ? `${base} ` : ''}${braces[0]}${indent}  ${output.join(`,${indent}  `)}${indent}${braces[1]}`;
    }
    const total = output.reduce((sum, part) => sum + part.length, output.length);
    if (total + output.length <= ctx.breakLength && (base === '' || !base.includes('\n'))) {
      const joined = `${braces[0]}${base ? ` ${base}` : ''} ${output.join(', ')} ${braces[1]}`;
      if (!joined.includes('\n')) return joined;
    }
    const indent = `\n${' '.repeat(ctx.indentationLvl)}`;
    return `${base ? `${base} ` : ''}${braces[0]} ${output.join(`,${indent}  `)} ${braces[1]}`;
  }

  function hasOwnText(value) {
    if (typeof value.toString !== 'function') return false;
    if (Object.hasOwn(value, 'toString')) return true;
    let object = value;
    do { object = Object.getPrototypeOf(object); } while (object && !Object.hasOwn(object, 'toString'));
    const maker = object && Object.getOwnPropertyDescriptor(object, 'constructor')?.value;
    return typeof maker === 'function' && !BUILT_IN.has(maker);
  }
  const BUILT_IN = new Set(Object.getOwnPropertyNames(globalThis).map((name) => Object.getOwnPropertyDescriptor(globalThis, name).value).filter((value) => typeof value === 'function'));

  function formatWithOptions(options, ...args) {
    const first = args[0];
    let at = 0, text = '', join = '';
    if (typeof first === 'string') {
      if (args.length === 1) return first;
      let last = 0;
      for (let index = 0; index < first.length - 1; index++) {
        if (first[index] !== '%') continue;
        const kind = first[index + 1];
        if (kind === '%') {
          text += `${first.slice(last, index)}%`;
          last = index + 2;
          index++;
          continue;
        }
        if (at + 1 === args.length || !'sjdOoifc'.includes(kind)) continue;
        const said = formatOne(kind, args[++at], options);
        text += first.slice(last, index) + said;
        last = index + 2;
        index++;
      }
      if (last !== 0 || at > 0) {
        at++;
        join = ' ';
        text += first.slice(last);
      }
    }
    for (; at < args.length; at++) {
      text += join + (typeof args[at] === 'string' ? args[at] : inspect(args[at], { ...options, compact: 3, colors: options?.colors ?? false, depth: options?.depth ?? defaults.depth }));
      join = ' ';
    }
    return text;
  }

  const numeric = (value) => (Object.is(value, -0) ? '-0' : `${value}`);

  function formatOne(kind, value, options) {
    switch (kind) {
      case 's':
        if (typeof value === 'number') return numeric(value);
        if (typeof value === 'bigint') return `${value}n`;
        if (typeof value !== 'object' || value === null || hasOwnText(value)) return String(value);
        return inspect(value, { ...options, depth: 0, colors: false, compact: 3 });
      case 'j':
        try {
          return JSON.stringify(value);
        } catch (error) {
          if (/circular/.test(error.message)) return '[Circular]';
          throw error;
        }
      case 'd':
        if (typeof value === 'bigint') return `${value}n`;
        if (typeof value === 'symbol') return 'NaN';
        return numeric(Number(value));
      case 'i':
        if (typeof value === 'bigint') return `${value}n`;
        if (typeof value === 'symbol') return 'NaN';
        return numeric(parseInt(value));
      case 'f':
        return typeof value === 'symbol' ? 'NaN' : numeric(parseFloat(value));
      case 'O': return inspect(value, options);
      case 'o': return inspect(value, { ...options, showHidden: true, showProxy: true, depth: 4 });
      default: return '';
    }
  }

  inspect.custom = custom;
  inspect.colors = colors;
  inspect.styles = styles;
  Object.defineProperty(inspect, 'defaultOptions', {
    get: () => defaults,
    set(options) { Object.assign(defaults, options); },
    enumerable: true, configurable: true,
  });
  exports.inspect = inspect;
  exports.quote = quote;
  exports.formatWithOptions = formatWithOptions;
  exports.format = (...args) => formatWithOptions(undefined, ...args);
})
