// util.parseArgs: options by a description of them.
(function (exports, require, module, native) {
  'use strict';

  const { coded, validate, invalidArgType } = require('_errors');

  exports.parseArgs = (config = {}) => {
    const args = config.args ?? require('process').argv.slice(2);
    const strict = config.strict ?? true;
    const allowPositionals = config.allowPositionals ?? !strict;
    const options = config.options ?? {};
    for (const [name, one] of Object.entries(options)) {
      validate.object(one, `options.${name}`);
      if (one.type !== 'string' && one.type !== 'boolean') throw invalidArgType(`options.${name}.type`, ['string', 'boolean'], one.type);
    }
    const values = Object.create(null), positionals = [], tokens = [];
    const byShort = (letter) => Object.keys(options).find((name) => options[name].short === letter);

    function store(name, raw, value, inline, index) {
      tokens.push({ kind: 'option', name, rawName: raw, index, value, inlineValue: inline });
      const one = Object.hasOwn(options, name) ? options[name] : undefined;
      if (strict) {
        if (!one) {
          const hint = allowPositionals ? `. To specify a positional argument starting with a '-', place it at the end of the command after '--', as in '-- ${JSON.stringify(raw).slice(1, -1)}` : '';
          throw coded(TypeError, 'ERR_PARSE_ARGS_UNKNOWN_OPTION', `Unknown option '${raw}'${hint}`);
        }
        const shown = `${one.short ? `-${one.short}, ` : ''}--${name}`;
        if (one.type === 'string' && typeof value !== 'string') throw coded(TypeError, 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE', `Option '${shown} <value>' argument missing`);
        if (one.type === 'boolean' && value !== undefined) throw coded(TypeError, 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE', `Option '${shown}' does not take an argument`);
        if (one.type === 'string' && !inline && /^-./.test(value)) {
          throw coded(TypeError, 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE', `Option '${raw}' argument is ambiguous.\nDid you forget to specify the option argument for '${raw}'?\nTo specify an option argument starting with a dash use '${raw.startsWith('--') ? `${raw}=-XYZ` : `--${name}=-XYZ' or '${raw}-XYZ`}'.`);
        }
      }
      if (name === '__proto__') return;
      const set = value ?? true;
      if (one?.multiple) (values[name] ??= []).push(set);
      else values[name] = set;
    }

    for (let index = 0; index < args.length; index++) {
      const arg = args[index];
      if (arg === '--') {
        tokens.push({ kind: 'option-terminator', index });
        for (const rest of args.slice(index + 1)) {
          tokens.push({ kind: 'positional', index: ++index, value: rest });
          positional(rest);
        }
        break;
      }
      if (/^--[^=]+=/.test(arg)) {
        const cut = arg.indexOf('=');
        store(arg.slice(2, cut), arg.slice(0, cut), arg.slice(cut + 1), true, index);
      } else if (/^--./.test(arg)) {
        const name = arg.slice(2);
        if (config.allowNegative && name.startsWith('no-') && options[name.slice(3)]?.type === 'boolean') values[name.slice(3)] = false;
        else if (options[name]?.type === 'string' && index + 1 < args.length && (strict || !args[index + 1].startsWith('-'))) store(name, arg, args[++index], false, index - 1);
        else store(name, arg, undefined, undefined, index);
      } else if (/^-./.test(arg)) {
        for (let at = 1; at < arg.length; at++) {
          const letter = arg[at], name = byShort(letter) ?? letter;
          if (options[name]?.type === 'string') {
            if (at + 1 < arg.length) store(name, `-${letter}`, arg.slice(at + 1), true, index);
            else if (index + 1 < args.length) store(name, `-${letter}`, args[++index], false, index - 1);
            else store(name, `-${letter}`, undefined, undefined, index);
            break;
          }
          store(name, `-${letter}`, undefined, undefined, index);
        }
      } else {
        tokens.push({ kind: 'positional', index, value: arg });
        positional(arg);
      }
    }
    function positional(value) {
      if (!allowPositionals) throw coded(TypeError, 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL', `Unexpected argument '${value}'. This command does not take positional arguments`);
      positionals.push(value);
    }
    for (const [name, one] of Object.entries(options)) if (one.default !== undefined && values[name] === undefined) values[name] = one.default;
    const result = { values, positionals };
    if (config.tokens) result.tokens = tokens;
    return result;
  };
})
