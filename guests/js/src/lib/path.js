// Paths, of Linux and of Windows.
(function (exports, require, module, native) {
  'use strict';

  const { validate } = require('_errors');

  // The parts of a path with `.` and `..` worked out; `above` says whether `..` may stay at the beginning.
  function settle(path, above, isSeparator, separator) {
    const out = [];
    let start = 0;
    for (let at = 0; at <= path.length; at++) {
      if (at < path.length && !isSeparator(path.charCodeAt(at))) continue;
      const part = path.slice(start, at);
      start = at + 1;
      if (part === '' || part === '.') continue;
      if (part === '..') {
        if (out.length && out[out.length - 1] !== '..') out.pop();
        else if (above) out.push('..');
      } else out.push(part);
    }
    return out.join(separator);
  }

  function make(windows) {
    const separator = windows ? '\\' : '/';
    const isSeparator = windows ? (code) => code === 47 || code === 92 : (code) => code === 47;
    const starts = (path) => path.length > 0 && isSeparator(path.charCodeAt(0));

    // What comes before the first name: a drive or a share, and whether it is absolute.
    function root(path) {
      if (!windows) return starts(path) ? { device: '', absolute: true, length: 1 } : { device: '', absolute: false, length: 0 };
      const share = /^[\\/]{2}([^\\/]+)[\\/]+([^\\/]+)(?=[\\/]|$)/.exec(path);
      if (share) {
        const rest = path.slice(share[0].length);
        return { device: `\\\\${share[1]}\\${share[2]}`, absolute: true, length: share[0].length + (rest ? 1 : 0) };
      }
      if (/^[a-zA-Z]:/.test(path)) {
        const absolute = path.length > 2 && isSeparator(path.charCodeAt(2));
        return { device: path.slice(0, 2), absolute, length: absolute ? 3 : 2 };
      }
      return { device: '', absolute: starts(path), length: starts(path) ? 1 : 0 };
    }

    const self = {
      sep: separator,
      delimiter: windows ? ';' : ':',
      resolve(...paths) {
        let device = '', tail = '', absolute = false;
        for (let index = paths.length - 1; index >= -1 && !(absolute && (!windows || device)); index--) {
          let path;
          if (index >= 0) {
            path = paths[index];
            validate.string(path, `paths[${index}]`);
            if (path === '') continue;
          } else path = require('process').cwd();
          const found = root(path);
          if (found.device && device && found.device.toLowerCase() !== device.toLowerCase()) continue;
          device ||= found.device;
          if (!absolute) {
            tail = `${path.slice(found.length)}${separator}${tail}`;
            absolute = found.absolute;
          }
          if (!windows && absolute) break;
        }
        tail = settle(tail, !absolute, isSeparator, separator);
        return device + (absolute ? separator : '') + tail || '.';
      },
      normalize(path) {
        validate.string(path, 'path');
        if (path === '') return '.';
        const { device, absolute, length } = root(path);
        let tail = settle(path.slice(length), !absolute, isSeparator, separator);
        if (tail === '' && !absolute) tail = '.';
        if (tail !== '' && isSeparator(path.charCodeAt(path.length - 1)) && !(absolute && path.length === length)) tail += separator;
        return device + (absolute ? separator : '') + tail;
      },
      isAbsolute(path) {
        validate.string(path, 'path');
        return root(path).absolute;
      },
      join(...paths) {
        for (const path of paths) validate.string(path, 'path');
        const joined = paths.filter((path) => path !== '').join(separator);
        return joined === '' ? '.' : self.normalize(joined);
      },
      relative(from, to) {
        validate.string(from, 'from');
        validate.string(to, 'to');
        if (from === to) return '';
        from = self.resolve(from);
        to = self.resolve(to);
        const same = windows ? (one, other) => one.toLowerCase() === other.toLowerCase() : (one, other) => one === other;
        if (same(from, to)) return '';
        if (windows && !same(root(from).device, root(to).device)) return to;
        const a = from.split(separator).filter(Boolean), b = to.split(separator).filter(Boolean);
        let common = 0;
        while (common < a.length && common < b.length && same(a[common], b[common])) common++;
        return [...Array(a.length - common).fill('..'), ...b.slice(common)].join(separator);
      },
      toNamespacedPath: (path) => path,
      dirname(path) {
        validate.string(path, 'path');
        if (path === '') return '.';
        const { length } = root(path);
        let end = path.length;
        while (end > length && isSeparator(path.charCodeAt(end - 1))) end--;
        while (end > length && !isSeparator(path.charCodeAt(end - 1))) end--;
        if (end <= length) return length === 0 ? '.' : path.slice(0, length);
        while (end > length && isSeparator(path.charCodeAt(end - 1))) end--;
        return path.slice(0, Math.max(end, length)) || '.';
      },
      basename(path, suffix) {
        if (suffix !== undefined) validate.string(suffix, 'ext');
        validate.string(path, 'path');
        let start = windows && /^[a-zA-Z]:/.test(path) ? 2 : 0, end = path.length;
        while (end > start && isSeparator(path.charCodeAt(end - 1))) end--;
        for (let at = end - 1; at >= start; at--) if (isSeparator(path.charCodeAt(at))) { start = at + 1; break; }
        const name = path.slice(start, end);
        if (suffix && name !== suffix && name.endsWith(suffix)) return name.slice(0, -suffix.length);
        if (suffix && name === suffix && path !== suffix) return name;
        return name === suffix ? '' : name;
      },
      extname(path) {
        validate.string(path, 'path');
        const name = self.basename(path);
        const dot = name.lastIndexOf('.');
        return dot <= 0 || /^\.\.$/.test(name) ? '' : name.slice(dot);
      },
      parse(path) {
        validate.string(path, 'path');
        const { length } = root(path);
        const base = self.basename(path), ext = self.extname(path);
        let dir = self.dirname(path);
        if (dir === '.' && !/^\.[\\/]/.test(path)) dir = '';
        return { root: path.slice(0, length), dir: base === '' ? path.slice(0, length) : dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
      },
      format(parts) {
        validate.object(parts, 'pathObject');
        const dir = parts.dir || parts.root;
        const ext = parts.ext ? `${parts.ext[0] === '.' ? '' : '.'}${parts.ext}` : '';
        const base = parts.base || `${parts.name || ''}${ext}`;
        if (!dir) return base;
        return dir === parts.root ? `${dir}${base}` : `${dir}${separator}${base}`;
      },
    };
    return self;
  }

  const posix = make(false);
  const win32 = make(true);
  posix.posix = win32.posix = posix;
  posix.win32 = win32.win32 = win32;
  posix._makeLong = posix.toNamespacedPath;
  module.exports = posix;
})
