// Names with other letters as ASCII (RFC 3492).
(function (exports, require, module, native) {
  'use strict';

  function adapt(delta, count, first) {
    delta = first ? Math.floor(delta / 700) : delta >> 1;
    delta += Math.floor(delta / count);
    let k = 0;
    for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
    return k + Math.floor((36 * delta) / (delta + 38));
  }
  const digit = (value) => String.fromCharCode(value < 26 ? value + 97 : value + 22);

  exports.encode = (text) => {
    const points = [...text].map((char) => char.codePointAt(0));
    let out = points.filter((point) => point < 128).map((point) => String.fromCharCode(point)).join('');
    const basic = out.length;
    let handled = basic, n = 128, delta = 0, bias = 72;
    if (basic) out += '-';
    while (handled < points.length) {
      const next = Math.min(...points.filter((point) => point >= n));
      delta += (next - n) * (handled + 1);
      n = next;
      for (const point of points) {
        if (point < n) delta++;
        if (point !== n) continue;
        let q = delta;
        for (let k = 36; ; k += 36) {
          const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
          if (q < t) break;
          out += digit(t + ((q - t) % (36 - t)));
          q = Math.floor((q - t) / (36 - t));
        }
        out += digit(q);
        bias = adapt(delta, handled + 1, handled === basic);
        delta = 0;
        handled++;
      }
      delta++;
      n++;
    }
    return out;
  };
  exports.decode = (text) => {
    const cut = text.lastIndexOf('-');
    const out = cut > 0 ? [...text.slice(0, cut)].map((char) => char.charCodeAt(0)) : [];
    let n = 128, i = 0, bias = 72;
    for (let at = cut > 0 ? cut + 1 : 0; at < text.length;) {
      const before = i;
      for (let w = 1, k = 36; ; k += 36) {
        if (at >= text.length) throw new RangeError('Invalid input');
        const code = text.toLowerCase().charCodeAt(at++);
        const value = code >= 97 ? code - 97 : code - 22;
        if (!(value >= 0 && value < 36)) throw new RangeError('Invalid input');
        i += value * w;
        const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
        if (value < t) break;
        w *= 36 - t;
      }
      bias = adapt(i - before, out.length + 1, before === 0);
      n += Math.floor(i / (out.length + 1));
      i %= out.length + 1;
      out.splice(i++, 0, n);
    }
    return String.fromCodePoint(...out);
  };
  const labels = (domain, fn) => domain.split('.').map(fn).join('.');
  exports.toASCII = (domain) => labels(domain, (label) => (/[^\x00-\x7f]/.test(label) ? `xn--${exports.encode(label)}` : label));
  exports.toUnicode = (domain) => labels(domain, (label) => (label.startsWith('xn--') ? exports.decode(label.slice(4)) : label));
  exports.ucs2 = { decode: (text) => [...text].map((char) => char.codePointAt(0)), encode: (points) => String.fromCodePoint(...points) };
  exports.version = '2.1.0';
})
