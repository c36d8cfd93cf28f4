// What there is of Intl: English numbers and dates in UTC, and plain comparison. Other languages are refused by name.
(function (exports, require, module, native) {
  'use strict';

  const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
  const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

  // English, or what is taken for it when nothing is said.
  function locale(locales) {
    const first = Array.isArray(locales) ? locales[0] : locales;
    if (first === undefined || first === null) return 'en-US';
    const name = String(first);
    if (!/^[a-zA-Z]{2,8}(?:-[a-zA-Z0-9]{1,8})*$/.test(name)) throw new RangeError(`Incorrect locale information provided`);
    if (/^en(?:-|$)/i.test(name) || /^(?:und|c)$/i.test(name)) return 'en-US';
    throw new RangeError(`the locale '${name}' is not available in this sandbox: only en-US is`);
  }

  function group(digits) { return digits.replace(/\B(?=(\d{3})+(?!\d))/g, ','); }
  // Half away from zero, on the decimal digits as they are printed.
  function rounded(value, most) {
    if (value >= 1e21) return BigInt(value).toString();
    if (most > 20) return value.toFixed(Math.min(most, 100));
    const fixed = value.toFixed(most);
    const [whole, part = ''] = String(value).split('.');
    if (!/e/.test(String(value)) && part.length === most + 1 && part.endsWith('5')) {
      const up = BigInt(whole + part.slice(0, most)) + 1n;
      const text = up.toString().padStart(most + 1, '0');
      return most ? `${text.slice(0, -most)}.${text.slice(-most)}` : text;
    }
    return fixed;
  }

  const CURRENCIES = { USD: '$', EUR: '€', GBP: '£', JPY: '¥', INR: '₹', CNY: 'CN¥', KRW: '₩', BRL: 'R$', CAD: 'CA$', AUD: 'A$', MXN: 'MX$', NZD: 'NZ$', ILS: '₪', VND: '₫' };

  class NumberFormat {
    #options;
    constructor(locales, options = {}) {
      locale(locales);
      const style = options.style ?? 'decimal';
      if (!['decimal', 'percent', 'currency', 'unit'].includes(style)) throw new RangeError(`Value ${style} out of range for Intl.NumberFormat options property style`);
      if (style === 'currency' && options.currency === undefined) throw new TypeError('Currency code is required with currency style.');
      if (style === 'unit') throw new RangeError("Intl.NumberFormat with style 'unit' is not available in this sandbox");
      if (options.notation !== undefined && !['standard', 'compact'].includes(options.notation)) throw new RangeError(`Intl.NumberFormat with notation '${options.notation}' is not available in this sandbox`);
      const usual = style === 'currency' ? (['JPY', 'KRW', 'VND'].includes(options.currency) ? [0, 0] : [2, 2]) : style === 'percent' ? [0, 0] : options.notation === 'compact' ? [0, 0] : [0, 3];
      const least = options.minimumFractionDigits ?? (options.maximumFractionDigits !== undefined ? Math.min(usual[0], options.maximumFractionDigits) : usual[0]);
      const most = options.maximumFractionDigits ?? Math.max(least, usual[1]);
      if (!(least >= 0 && least <= 100)) throw new RangeError('minimumFractionDigits value is out of range.');
      if (!(most >= least && most <= 100)) throw new RangeError('maximumFractionDigits value is out of range.');
      this.#options = { ...options, style, least, most };
      this.format = this.format.bind(this);
      Object.defineProperty(this, 'format', { enumerable: false });
    }
    format(value) {
      const { style, least, most, useGrouping, minimumIntegerDigits = 1, maximumSignificantDigits, minimumSignificantDigits, notation } = this.#options;
      let text, negative, suffix = '';
      if (typeof value === 'bigint') {
        negative = value < 0n;
        text = String(negative ? -value : value);
        if (least) text += `.${'0'.repeat(least)}`;
      } else {
        value = Number(value);
        if (Number.isNaN(value)) return 'NaN';
        negative = value < 0 || Object.is(value, -0);
        value = Math.abs(value);
        if (style === 'percent') value = Number((value * 100).toPrecision(15));
        if (value === Infinity) text = '∞';
        else if (notation === 'compact') {
          const step = value >= 999.5e9 ? [1e12, 'T'] : value >= 999.5e6 ? [1e9, 'B'] : value >= 999500 ? [1e6, 'M'] : value >= 999.5 ? [1e3, 'K'] : [1, ''];
          value /= step[0];
          [, suffix] = step;
          text = value < 99.5 && value !== Math.trunc(value) ? String(Number(value.toPrecision(2))) : String(Math.round(value));
        } else if (maximumSignificantDigits !== undefined || minimumSignificantDigits !== undefined) {
          text = Number(value.toPrecision(maximumSignificantDigits ?? 21)).toString();
          const have = text.replace(/^0\.0*|\./g, '').length;
          if (minimumSignificantDigits > have) text += `${text.includes('.') ? '' : '.'}${'0'.repeat(minimumSignificantDigits - have)}`;
        } else {
          text = rounded(value, most);
          if (most > least && text.includes('.')) {
            const keep = text.indexOf('.') + 1 + least;
            while (text.length > keep && text.endsWith('0')) text = text.slice(0, -1);
            if (text.endsWith('.')) text = text.slice(0, -1);
          }
        }
      }
      const [whole, part] = text.split('.');
      let shown = whole.padStart(minimumIntegerDigits, '0');
      if (useGrouping !== false && useGrouping !== 'false') shown = group(shown);
      if (part !== undefined) shown += `.${part}`;
      shown += suffix;
      if (style === 'percent') shown += '%';
      if (style === 'currency') {
        const code = String(this.#options.currency).toUpperCase();
        const sign = this.#options.currencyDisplay === 'code' ? `${code}\u00a0` : CURRENCIES[code] ?? `${code}\u00a0`;
        shown = sign + shown;
      }
      const sign = negative && /[1-9∞]/.test(shown) || (negative && this.#options.signDisplay !== 'negative' && Object.is(value, 0)) ? '-' : this.#options.signDisplay === 'always' || (this.#options.signDisplay === 'exceptZero' && /[1-9∞]/.test(shown)) ? '+' : negative ? '-' : '';
      return sign + shown;
    }
    formatToParts(value) { return [{ type: 'literal', value: this.format(value) }]; }
    resolvedOptions() {
      const { style, least, most, currency } = this.#options;
      return { locale: 'en-US', numberingSystem: 'latn', style, ...(currency && { currency }), minimumIntegerDigits: 1, minimumFractionDigits: least, maximumFractionDigits: most };
    }
  }

  const UTC = /^(?:UTC|GMT|Etc\/UTC|Etc\/GMT|Zulu|Universal)$/i;
  const two = (number) => String(number).padStart(2, '0');
  class DateTimeFormat {
    #options;
    constructor(locales, options = {}) {
      locale(locales);
      options ??= {};
      if (options.timeZone !== undefined && !UTC.test(options.timeZone)) {
        throw new RangeError(`the time zone '${options.timeZone}' is not available in this sandbox: scripts run in UTC`);
      }
      for (const name of ['calendar', 'numberingSystem', 'dayPeriod', 'era']) {
        if (options[name] !== undefined && !['gregory', 'latn', 'short'].includes(options[name])) throw new RangeError(`Intl.DateTimeFormat with ${name} '${options[name]}' is not available in this sandbox`);
      }
      const any = ['weekday', 'year', 'month', 'day', 'hour', 'minute', 'second', 'fractionalSecondDigits', 'dateStyle', 'timeStyle', 'timeZoneName'].some((name) => options[name] !== undefined);
      this.#options = any ? { ...options } : { ...options, year: 'numeric', month: 'numeric', day: 'numeric' };
      this.format = this.format.bind(this);
      Object.defineProperty(this, 'format', { enumerable: false });
    }
    format(value) {
      const date = value === undefined ? new Date() : new Date(value);
      if (Number.isNaN(date.getTime())) throw new RangeError('Invalid time value');
      let options = this.#options;
      if (options.dateStyle || options.timeStyle) {
        options = {
          ...options,
          ...({ full: { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' }, long: { year: 'numeric', month: 'long', day: 'numeric' }, medium: { year: 'numeric', month: 'short', day: 'numeric' }, short: { year: '2-digit', month: 'numeric', day: 'numeric' } }[options.dateStyle]),
          ...({ full: { hour: 'numeric', minute: '2-digit', second: '2-digit', timeZoneName: 'long' }, long: { hour: 'numeric', minute: '2-digit', second: '2-digit', timeZoneName: 'short' }, medium: { hour: 'numeric', minute: '2-digit', second: '2-digit' }, short: { hour: 'numeric', minute: '2-digit' } }[options.timeStyle]),
        };
      }
      const day = this.#day(date, options), time = this.#time(date, options);
      const worded = options.month === 'long' || (this.#options.dateStyle === 'full' || this.#options.dateStyle === 'long');
      return [day, time].filter(Boolean).join(worded && this.#options.dateStyle ? ' at ' : ', ');
    }
    #day(date, { weekday, year, month, day }) {
      const shownYear = year === '2-digit' ? two(date.getUTCFullYear() % 100) : year ? String(date.getUTCFullYear()) : '';
      const shownDay = day === '2-digit' ? two(date.getUTCDate()) : day ? String(date.getUTCDate()) : '';
      const shownWeek = weekday ? (weekday === 'long' ? DAYS[date.getUTCDay()] : weekday === 'narrow' ? DAYS[date.getUTCDay()][0] : DAYS[date.getUTCDay()].slice(0, 3)) : '';
      const name = MONTHS[date.getUTCMonth()];
      if (month === 'long' || month === 'short' || month === 'narrow') {
        const shown = month === 'long' ? name : month === 'short' ? name.slice(0, 3) : name[0];
        const first = [shown, shownDay].filter(Boolean).join(' ');
        const dated = shownYear ? (shownDay ? `${first}, ${shownYear}` : `${first} ${shownYear}`) : first;
        return [shownWeek, dated].filter(Boolean).join(', ');
      }
      const number = month === '2-digit' ? two(date.getUTCMonth() + 1) : month ? String(date.getUTCMonth() + 1) : '';
      return [shownWeek, [number, shownDay, shownYear].filter(Boolean).join('/')].filter(Boolean).join(', ');
    }
    #time(date, { hour, minute, second, hour12, hourCycle, timeZoneName, fractionalSecondDigits }) {
      if (!hour && !minute && !second && !timeZoneName && !fractionalSecondDigits) return '';
      const twelve = hour12 ?? (hourCycle === undefined || hourCycle === 'h12');
      const h = date.getUTCHours();
      const parts = [];
      if (hour) parts.push(twelve ? (hour === '2-digit' ? two(h % 12 || 12) : String(h % 12 || 12)) : two(h === 0 && hour12 === false && hourCycle === undefined ? 24 : h));
      if (minute) parts.push(hour || second || minute === '2-digit' ? two(date.getUTCMinutes()) : String(date.getUTCMinutes()));
      if (second) parts.push(hour || minute ? two(date.getUTCSeconds()) : String(date.getUTCSeconds()));
      let text = parts.join(':');
      if (fractionalSecondDigits) text += `.${String(date.getUTCMilliseconds()).padStart(3, '0').slice(0, fractionalSecondDigits)}`;
      if (hour && twelve) text += h < 12 ? ' AM' : ' PM';
      if (timeZoneName) text += `${text ? ' ' : ''}${timeZoneName === 'long' ? 'Coordinated Universal Time' : 'UTC'}`;
      return text;
    }
    formatToParts(value) {
      return this.format(value).split(/(\d+|[A-Za-z]+)/).filter(Boolean).map((part) => ({ type: /\w/.test(part) ? 'unknown' : 'literal', value: part }));
    }
    resolvedOptions() { return { locale: 'en-US', calendar: 'gregory', numberingSystem: 'latn', timeZone: 'UTC', ...this.#options }; }
  }

  // Letters without their accents and case first, then accents, then lower case before upper.
  const bare = (text) => text.normalize('NFD').replace(/[\u0300-\u036f]/g, '').toLowerCase();
  const ignorable = (text) => [...bare(text)].map((char) => (/[\p{L}]/u.test(char) ? `3${char}` : /[\p{N}]/u.test(char) ? `2${char}` : `1${char}`)).join('');
  class Collator {
    #options;
    constructor(locales, options = {}) {
      locale(locales);
      this.#options = options ?? {};
      this.compare = this.compare.bind(this);
      Object.defineProperty(this, 'compare', { enumerable: false });
    }
    compare(one, other) {
      one = String(one);
      other = String(other);
      const { numeric, sensitivity = 'variant' } = this.#options;
      if (numeric) {
        const a = one.match(/\d+|\D+/g) ?? [], b = other.match(/\d+|\D+/g) ?? [];
        for (let index = 0; index < Math.min(a.length, b.length); index++) {
          const order = /^\d/.test(a[index]) && /^\d/.test(b[index]) ? Math.sign(Number(a[index]) - Number(b[index])) : plain(a[index], b[index], sensitivity);
          if (order) return order;
        }
        return Math.sign(a.length - b.length);
      }
      return plain(one, other, sensitivity);
    }
    resolvedOptions() { return { locale: 'en-US', usage: 'sort', sensitivity: 'variant', ignorePunctuation: false, collation: 'default', numeric: !!this.#options.numeric, caseFirst: 'false' }; }
  }
  function plain(one, other, sensitivity) {
    if (one === other) return 0;
    const a = ignorable(one), b = ignorable(other);
    if (a !== b) return a < b ? -1 : 1;
    if (sensitivity === 'base') return 0;
    const marks = (text) => text.normalize('NFD').toLowerCase();
    if (sensitivity !== 'case' && marks(one) !== marks(other)) return marks(one) < marks(other) ? -1 : 1;
    if (sensitivity === 'accent') return 0;
    for (let index = 0; index < Math.min(one.length, other.length); index++) {
      if (one[index] !== other[index]) return one[index] === one[index].toLowerCase() ? -1 : 1;
    }
    return Math.sign(one.length - other.length);
  }

  class PluralRules {
    #ordinal;
    constructor(locales, options = {}) { locale(locales); this.#ordinal = options.type === 'ordinal'; }
    select(number) {
      if (!this.#ordinal) return number === 1 ? 'one' : 'other';
      const ten = number % 10, hundred = number % 100;
      if (ten === 1 && hundred !== 11) return 'one';
      if (ten === 2 && hundred !== 12) return 'two';
      if (ten === 3 && hundred !== 13) return 'few';
      return 'other';
    }
    resolvedOptions() { return { locale: 'en-US', type: this.#ordinal ? 'ordinal' : 'cardinal' }; }
  }
  class ListFormat {
    #options;
    constructor(locales, options = {}) { locale(locales); this.#options = options; }
    format(list) {
      const all = [...list];
      const word = this.#options.type === 'disjunction' ? 'or' : this.#options.type === 'unit' ? '' : 'and';
      if (all.length < 2) return all.join('');
      if (all.length === 2) return all.join(word ? ` ${word} ` : ', ');
      return `${all.slice(0, -1).join(', ')},${word ? ` ${word}` : ''} ${all[all.length - 1]}`;
    }
  }
  class RelativeTimeFormat {
    #options;
    constructor(locales, options = {}) { locale(locales); this.#options = options; }
    format(value, unit) {
      unit = String(unit).replace(/s$/, '');
      const special = { day: { '-1': 'yesterday', 0: 'today', 1: 'tomorrow' } }[unit]?.[value];
      if (this.#options.numeric === 'auto' && special) return special;
      const count = new NumberFormat().format(Math.abs(value));
      const words = `${count} ${unit}${Math.abs(value) === 1 ? '' : 's'}`;
      return value < 0 || Object.is(value, -0) ? `${words} ago` : `in ${words}`;
    }
  }
  // Characters with the marks that follow them, words, and sentences.
  class Segmenter {
    #granularity;
    constructor(locales, options = {}) { locale(locales); this.#granularity = options.granularity ?? 'grapheme'; }
    segment(input) {
      const patterns = {
        grapheme: /\r\n|\p{RI}\p{RI}|\P{M}[\p{M}\u200d\ufe0f\u{1f3fb}-\u{1f3ff}]*(?:(?<=\u200d)\P{M}[\p{M}\u200d\ufe0f\u{1f3fb}-\u{1f3ff}]*)*|\p{M}/gu,
        word: /[\p{L}\p{N}_]+(?:['’.][\p{L}\p{N}_]+)*|\s+|[^\p{L}\p{N}_\s]/gu,
        sentence: /[^.!?]+(?:[.!?]+\s*|$)|[.!?]+\s*/gu,
      };
      const list = [...String(input).matchAll(patterns[this.#granularity])].map((match) => ({
        segment: match[0], index: match.index, input, ...(this.#granularity === 'word' && { isWordLike: /[\p{L}\p{N}]/u.test(match[0]) }),
      }));
      return { [Symbol.iterator]: () => list[Symbol.iterator](), containing: (at = 0) => list.find((one) => at >= one.index && at < one.index + one.segment.length) };
    }
  }

  const Intl = Object.create(Object.prototype, { [Symbol.toStringTag]: { value: 'Intl', configurable: true } });
  const callable = (Type) => {
    Type.supportedLocalesOf = (locales) => [].concat(locales ?? []).filter((name) => /^en(?:-|$)/i.test(name));
    Object.defineProperty(Type.prototype, Symbol.toStringTag, { value: `Intl.${Type.name}`, configurable: true });
    return new Proxy(Type, { apply: (target, self, args) => new Type(...args) });
  };
  for (const Type of [NumberFormat, DateTimeFormat, Collator, PluralRules, ListFormat, RelativeTimeFormat, Segmenter]) {
    Object.defineProperty(Intl, Type.name, { value: callable(Type), writable: true, configurable: true, enumerable: false });
  }
  for (const name of ['DisplayNames', 'Locale', 'DurationFormat']) {
    Object.defineProperty(Intl, name, {
      value: { [name]: class { constructor() { throw new RangeError(`Intl.${name} is not available in this sandbox`); } } }[name],
      writable: true, configurable: true, enumerable: false,
    });
  }
  const define = (target, name, value) => Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
  define(Intl, 'getCanonicalLocales', (locales) => [].concat(locales ?? []).map(String));
  define(Intl, 'supportedValuesOf', (key) => (key === 'timeZone' ? ['UTC'] : []));
  exports.Intl = Intl;

  exports.install = () => {
    define(Number.prototype, 'toLocaleString', function toLocaleString(locales, options) { return new NumberFormat(locales, options).format(this.valueOf()); });
    define(BigInt.prototype, 'toLocaleString', function toLocaleString(locales, options) { return new NumberFormat(locales, options).format(this.valueOf()); });
    define(String.prototype, 'localeCompare', function localeCompare(other, locales, options) { return new Collator(locales, options).compare(String(this), String(other)); });
    const dates = (name, usual) => define(Date.prototype, name, { [name](locales, options = {}) {
      if (Number.isNaN(this.getTime())) return 'Invalid Date';
      const said = ['weekday', 'year', 'month', 'day', 'dateStyle', 'timeStyle', 'hour', 'minute', 'second', 'fractionalSecondDigits'].filter((key) => options?.[key] !== undefined);
      const own = name === 'toLocaleString' ? said : said.filter((key) => (name === 'toLocaleDateString') === ['weekday', 'year', 'month', 'day', 'dateStyle'].includes(key));
      return new DateTimeFormat(locales, own.length ? options : { ...options, ...usual }).format(this);
    } }[name]);
    for (const name of ['toString', 'toTimeString']) {
      const original = Date.prototype[name];
      define(Date.prototype, name, { [name]() { return original.call(this).replace(/(GMT[+-]\d{4})$/, '$1 (Coordinated Universal Time)'); } }[name]);
    }
    const day = { year: 'numeric', month: 'numeric', day: 'numeric' }, time = { hour: 'numeric', minute: '2-digit', second: '2-digit' };
    dates('toLocaleString', { ...day, ...time });
    dates('toLocaleDateString', day);
    dates('toLocaleTimeString', time);
  };
})
