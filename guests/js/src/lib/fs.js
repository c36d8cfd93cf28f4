// fs: files, at once and with callbacks. What has a callback is done at once too, and told of later, in order.
(function (exports, require, module, native) {
  'use strict';

  const { Buffer, adopt } = require('buffer');
  const path = require('path');
  const { system, validate, invalidArgType, invalidArgValue, coded, outOfRange, unsupported } = require('_errors');
  const loop = require('_loop');

  const constants = Object.assign(Object.create(null), {
    UV_FS_SYMLINK_DIR: 1, UV_FS_SYMLINK_JUNCTION: 2, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, UV_DIRENT_UNKNOWN: 0, UV_DIRENT_FILE: 1,
    UV_DIRENT_DIR: 2, UV_DIRENT_LINK: 3, S_IFMT: 61440, S_IFREG: 32768, S_IFDIR: 16384, S_IFCHR: 8192, S_IFBLK: 24576, S_IFIFO: 4096,
    S_IFLNK: 40960, S_IFSOCK: 49152, O_CREAT: 64, O_EXCL: 128, UV_FS_O_FILEMAP: 0, O_NOCTTY: 256, O_TRUNC: 512, O_APPEND: 1024,
    O_DIRECTORY: 65536, O_NOATIME: 262144, O_NOFOLLOW: 131072, O_SYNC: 1052672, O_DSYNC: 4096, O_DIRECT: 16384, O_NONBLOCK: 2048,
    S_IRWXU: 448, S_IRUSR: 256, S_IWUSR: 128, S_IXUSR: 64, S_IRWXG: 56, S_IRGRP: 32, S_IWGRP: 16, S_IXGRP: 8, S_IRWXO: 7, S_IROTH: 4,
    S_IWOTH: 2, S_IXOTH: 1, F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, UV_FS_COPYFILE_EXCL: 1, COPYFILE_EXCL: 1, UV_FS_COPYFILE_FICLONE: 2,
    COPYFILE_FICLONE: 2, UV_FS_COPYFILE_FICLONE_FORCE: 4, COPYFILE_FICLONE_FORCE: 4,
  });

  const FLAGS = { r: 0, rs: 0, 'r+': 2, 'rs+': 2, w: 577, wx: 705, xw: 705, 'w+': 578, 'wx+': 706, 'xw+': 706, a: 1089, ax: 1217, xa: 1217, as: 1089, 'a+': 1090, 'ax+': 1218, 'as+': 1090 };
  function flagsOf(flags, otherwise = 0) {
    if (flags === undefined || flags === null) return otherwise;
    if (typeof flags === 'number') return flags;
    if (!Object.hasOwn(FLAGS, flags)) throw invalidArgValue('flags', flags);
    return FLAGS[flags];
  }
  function pathOf(value, name = 'path') {
    if (value instanceof Uint8Array) value = Buffer.from(value).toString();
    else if (value !== null && typeof value === 'object' && typeof value.href === 'string') value = require('url').fileURLToPath(value);
    if (typeof value !== 'string') throw invalidArgType(name, ['string', 'Buffer', 'URL'], value);
    if (value.includes('\0')) throw invalidArgValue(name, value, 'must be a string, Uint8Array, or URL without null bytes');
    return value;
  }
  function fdOf(fd) {
    validate.integer(fd, 'fd', 0, 2147483647);
    return fd;
  }
  function modeOf(mode, otherwise) {
    if (mode === undefined || mode === null) return otherwise;
    if (typeof mode === 'string') {
      if (!/^[0-7]+$/.test(mode)) throw invalidArgValue('mode', mode, 'must be a 32-bit unsigned integer or an octal string');
      return parseInt(mode, 8);
    }
    validate.integer(mode, 'mode', 0, 2 ** 32 - 1);
    return mode;
  }
  const optionsOf = (options, defaults) => {
    if (typeof options === 'string') {
      if (options !== 'buffer' && !Buffer.isEncoding(options)) throw invalidArgValue('encoding', options, 'is invalid encoding');
      return { ...defaults, encoding: options };
    }
    if (options === undefined || options === null || typeof options === 'function') return defaults;
    if (typeof options !== 'object') throw invalidArgType('options', ['string', 'Object'], options);
    if (options.encoding && options.encoding !== 'buffer' && !Buffer.isEncoding(options.encoding)) throw invalidArgValue('encoding', options.encoding, 'is invalid encoding');
    return { ...defaults, ...options };
  };
  const check = (result, call, one, other) => {
    if (typeof result === 'number' && result < 0) throw system(result, call, one, other);
    return result;
  };
  const named = (text, encoding) => (encoding === 'buffer' ? Buffer.from(text) : encoding && encoding !== 'utf8' ? Buffer.from(text).toString(encoding) : text);

  class StatsBase {
    isFile() { return (Number(this.mode) & 61440) === 32768; }
    isDirectory() { return (Number(this.mode) & 61440) === 16384; }
    isSymbolicLink() { return (Number(this.mode) & 61440) === 40960; }
    isFIFO() { return (Number(this.mode) & 61440) === 4096; }
    isSocket() { return (Number(this.mode) & 61440) === 49152; }
    isCharacterDevice() { return (Number(this.mode) & 61440) === 8192; }
    isBlockDevice() { return (Number(this.mode) & 61440) === 24576; }
  }
  class Stats extends StatsBase {}
  class BigIntStats extends StatsBase {}
  const FIELDS = ['dev', 'mode', 'nlink', 'uid', 'gid', 'rdev', 'blksize', 'ino', 'size', 'blocks'];
  function statsFrom(numbers, big) {
    const stats = big ? new BigIntStats() : new Stats();
    FIELDS.forEach((name, index) => { stats[name] = big ? BigInt(numbers[index]) : numbers[index]; });
    const [atime, mtime, ctime] = [10, 12, 14].map((at) => ({ ms: numbers[at] * 1000 + numbers[at + 1] / 1e6, ns: BigInt(numbers[at]) * 1000000000n + BigInt(numbers[at + 1]) }));
    const times = { atime, mtime, ctime, birthtime: ctime };
    for (const name of Object.keys(times)) stats[`${name}Ms`] = big ? times[name].ns / 1000000n : times[name].ms;
    if (big) for (const name of Object.keys(times)) stats[`${name}Ns`] = times[name].ns;
    for (const name of Object.keys(times)) stats[name] = new Date(Math.round(times[name].ms + 0.0001));
    return stats;
  }

  class Dirent {
    #kind;
    constructor(name, kind, parent) {
      this.name = name;
      this.parentPath = parent;
      this.path = parent;
      Object.defineProperty(this, Symbol.for('type'), { value: kind, enumerable: false });
      this.#kind = kind;
    }
    isFile() { return this.#kind === 1; }
    isDirectory() { return this.#kind === 2; }
    isSymbolicLink() { return this.#kind === 3; }
    isFIFO() { return this.#kind === 4; }
    isSocket() { return this.#kind === 5; }
    isCharacterDevice() { return this.#kind === 6; }
    isBlockDevice() { return this.#kind === 7; }
  }

  function entries(directory) {
    const list = check(native.readDirectory(directory), 'scandir', directory);
    const out = [];
    for (let index = 0; index < list.length; index += 2) out.push({ name: list[index], kind: list[index + 1] });
    return out.sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
  }

  const timeOf = (time) => {
    if (typeof time === 'string' && `${+time}` === time) return +time;
    if (typeof time === 'number') return Number.isFinite(time) ? time : Date.now() / 1000;
    if (time instanceof Date) return time.getTime() / 1000;
    throw invalidArgType('time', ['Date', 'Time in seconds'], time);
  };

  function bytesFrom(data, encoding, name = 'data') {
    if (typeof data === 'string') return Buffer.from(data, encoding ?? 'utf8');
    if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    throw invalidArgType(name, ['string', 'Buffer', 'TypedArray', 'DataView'], data);
  }

  // Every call, as it is done at once. The names are those of Node without `Sync`.
  const calls = {
    open(file, flags, mode) {
      file = pathOf(file);
      return check(native.open(file, flagsOf(flags), modeOf(mode, 0o666)), 'open', file);
    },
    close(fd) { check(native.close(fdOf(fd)), 'close'); },
    read(fd, buffer, offset, length, position) {
      fdOf(fd);
      if (offset !== null && typeof offset === 'object') ({ offset, length, position } = offset);
      if (!ArrayBuffer.isView(buffer)) throw invalidArgType('buffer', ['Buffer', 'TypedArray', 'DataView'], buffer);
      offset ??= 0;
      length ??= buffer.byteLength - offset;
      if (length === 0) return 0;
      if (buffer.byteLength === 0) throw invalidArgValue('buffer', buffer, 'is empty and cannot be written');
      if (offset < 0 || offset > buffer.byteLength) throw outOfRange('offset', `>= 0 && <= ${buffer.byteLength}`, offset);
      if (length < 0 || length > buffer.byteLength - offset) throw outOfRange('length', `>= 0 && <= ${buffer.byteLength - offset}`, length);
      const at = typeof position === 'number' || typeof position === 'bigint' ? Number(position) : -1;
      return check(native.read(fd, new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length), at), 'read');
    },
    write(fd, data, offset, length, position) {
      fdOf(fd);
      if (typeof data === 'string') {
        const bytes = Buffer.from(data, typeof length === 'string' ? length : 'utf8');
        const at = typeof offset === 'number' ? offset : -1;
        return check(native.write(fd, bytes, at), 'write');
      }
      if (offset !== null && typeof offset === 'object') ({ offset, length, position } = offset);
      const bytes = bytesFrom(data, undefined, 'buffer');
      offset ??= 0;
      length ??= bytes.length - offset;
      if (offset < 0 || offset > bytes.length) throw outOfRange('offset', `>= 0 && <= ${bytes.length}`, offset);
      if (length < 0 || length > bytes.length - offset) throw outOfRange('length', `>= 0 && <= ${bytes.length - offset}`, length);
      return check(native.write(fd, bytes.subarray(offset, offset + length), typeof position === 'number' ? position : -1), 'write');
    },
    readv(fd, buffers, position) {
      let total = 0;
      for (const buffer of buffers) {
        const count = calls.read(fd, buffer, 0, buffer.byteLength, typeof position === 'number' ? position + total : null);
        total += count;
        if (count < buffer.byteLength) break;
      }
      return total;
    },
    writev(fd, buffers, position) {
      return buffers.reduce((total, buffer) => total + calls.write(fd, buffer, 0, buffer.byteLength, typeof position === 'number' ? position + total : null), 0);
    },
    readFile(file, options) {
      options = optionsOf(options, { encoding: null, flag: 'r' });
      const own = typeof file !== 'number';
      const fd = own ? calls.open(file, options.flag ?? 'r', 0o666) : fdOf(file);
      let bytes;
      try {
        bytes = check(native.readRest(fd), 'read');
      } finally {
        if (own) native.close(fd);
      }
      const { encoding } = options;
      if (encoding === 'utf8' || encoding === 'utf-8') return native.decodeUtf8(bytes);
      const buffer = adopt(bytes);
      return encoding && encoding !== 'buffer' ? buffer.toString(encoding) : buffer;
    },
    writeFile(file, data, options) {
      options = optionsOf(options, { encoding: 'utf8', mode: 0o666, flag: 'w' });
      const bytes = bytesFrom(data, options.encoding);
      const own = typeof file !== 'number';
      const fd = own ? calls.open(file, options.flag ?? 'w', options.mode) : fdOf(file);
      try {
        check(native.writeAll(fd, bytes), 'write');
        if (options.flush) native.sync(fd);
      } finally {
        if (own) native.close(fd);
      }
    },
    appendFile(file, data, options) {
      calls.writeFile(file, data, { ...optionsOf(options, { encoding: 'utf8', mode: 0o666 }), flag: (typeof options === 'object' && options?.flag) || 'a' });
    },
    stat(file, options) { return statAt(file, options, true, 'stat'); },
    lstat(file, options) { return statAt(file, options, false, 'lstat'); },
    fstat(fd, options) { return statsFrom(check(native.fstat(fdOf(fd)), 'fstat'), options?.bigint); },
    statfs(file, options) {
      file = pathOf(file);
      const [bsize, blocks, bfree, files, ffree] = check(native.fileSystem(file), 'statfs', file);
      const stats = { type: 0, bsize, blocks, bfree, bavail: bfree, files, ffree };
      if (options?.bigint) for (const key of Object.keys(stats)) stats[key] = BigInt(stats[key]);
      return stats;
    },
    readdir(directory, options) {
      directory = pathOf(directory);
      options = optionsOf(options, { encoding: 'utf8', withFileTypes: false });
      const out = [];
      const walk = (at, prefix) => {
        for (const { name, kind } of entries(at)) {
          const shown = prefix ? `${prefix}/${name}` : name;
          out.push(options.withFileTypes ? new Dirent(named(name, options.encoding), kind, at) : named(shown, options.encoding));
          if (options.recursive && kind === 2) walk(path.join(at, name), shown);
        }
      };
      walk(directory, '');
      return out;
    },
    mkdir(directory, options) {
      directory = pathOf(directory);
      let mode = 0o777, recursive = false;
      if (typeof options === 'number' || typeof options === 'string') mode = modeOf(options);
      else if (options) {
        recursive = options.recursive ?? false;
        validate.boolean(recursive, 'options.recursive');
        mode = modeOf(options.mode, 0o777);
      }
      if (!recursive) {
        check(native.mkdir(directory, mode), 'mkdir', directory);
        return undefined;
      }
      const full = path.resolve(directory);
      const missing = [];
      let at = full;
      for (; ; at = path.dirname(at)) {
        const stat = native.stat(at, true);
        if (typeof stat !== 'number') {
          if ((stat[1] & 61440) !== 16384) throw system(at === full ? -17 : -20, 'mkdir', directory);
          break;
        }
        if (stat !== -2) throw system(stat, 'mkdir', directory);
        missing.unshift(at);
        if (at === '/') break;
      }
      for (const one of missing) {
        const made = native.mkdir(one, mode);
        if (made < 0 && made !== -17) throw system(made, 'mkdir', directory);
      }
      return missing[0] && !path.isAbsolute(directory) ? path.relative('.', missing[0]) : missing[0];
    },
    mkdtemp(prefix, options) {
      validate.string(prefix, 'prefix');
      const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
      for (let attempt = 0; ; attempt++) {
        const name = prefix + [...native.randomBytes(6)].map((byte) => LETTERS[byte % 62]).join('');
        const made = native.mkdir(name, 0o700);
        if (made === undefined || made === null || made >= 0) return named(name, optionsOf(options, {}).encoding);
        if (made !== -17 || attempt > 20) throw system(made, 'mkdtemp', `${prefix}XXXXXX`);
      }
    },
    rmdir(directory, options) {
      directory = pathOf(directory);
      if (options?.recursive) return calls.rm(directory, { recursive: true });
      return void check(native.rmdir(directory), 'rmdir', directory);
    },
    rm(file, options) {
      file = pathOf(file);
      const stat = native.stat(file, false);
      if (typeof stat === 'number') {
        if (options?.force && (stat === -2 || stat === -20)) return;
        throw system(stat, 'lstat', file);
      }
      if ((stat[1] & 61440) === 16384) {
        if (!options?.recursive) {
          const error = coded(Error, 'ERR_FS_EISDIR', `Path is a directory: rm returned EISDIR (is a directory) ${file}`);
          error.name = 'SystemError';
          Object.assign(error, { errno: 21, syscall: 'rm', path: file });
          throw error;
        }
        removeAll(file);
      } else check(native.unlink(file), 'rm', file);
    },
    unlink(file) { file = pathOf(file); check(native.unlink(file), 'unlink', file); },
    rename(from, to) {
      from = pathOf(from, 'oldPath');
      to = pathOf(to, 'newPath');
      check(native.rename(from, to), 'rename', from, to);
    },
    link(from, to) {
      from = pathOf(from, 'existingPath');
      to = pathOf(to, 'newPath');
      check(native.link(from, to), 'link', from, to);
    },
    symlink(target, file) {
      target = pathOf(target, 'target');
      file = pathOf(file);
      check(native.symlink(target, file), 'symlink', target, file);
    },
    readlink(file, options) {
      file = pathOf(file);
      return named(check(native.readLink(file), 'readlink', file), optionsOf(options, {}).encoding);
    },
    realpath(file, options) {
      file = pathOf(file);
      return named(real(path.resolve(file), file), optionsOf(options, {}).encoding);
    },
    chmod(file, mode) { file = pathOf(file); check(native.chmod(file, modeOf(mode)), 'chmod', file); },
    fchmod(fd, mode) { check(native.fchmod(fdOf(fd), modeOf(mode)), 'fchmod'); },
    lchmod() { throw unsupported('fs.lchmod', 'is not available on Linux'); },
    chown(file, uid, gid) { file = pathOf(file); check(native.setOwner(file, true, uid >>> 0, gid >>> 0), 'chown', file); },
    lchown(file, uid, gid) { file = pathOf(file); check(native.setOwner(file, false, uid >>> 0, gid >>> 0), 'lchown', file); },
    fchown(fd, uid, gid) { calls.chown(`/proc/self/fd/${fdOf(fd)}`, uid, gid); },
    utimes(file, atime, mtime) { file = pathOf(file); check(native.setTimes(file, true, timeOf(atime), timeOf(mtime)), 'utime', file); },
    lutimes(file, atime, mtime) { file = pathOf(file); check(native.setTimes(file, false, timeOf(atime), timeOf(mtime)), 'lutime', file); },
    futimes(fd, atime, mtime) { check(native.setTimes(`/proc/self/fd/${fdOf(fd)}`, true, timeOf(atime), timeOf(mtime)), 'futime'); },
    access(file, mode = 0) { file = pathOf(file); check(native.access(file, mode), 'access', file); },
    truncate(file, length = 0) {
      if (typeof file === 'number') return calls.ftruncate(file, length);
      const fd = calls.open(file, 'r+');
      try {
        calls.ftruncate(fd, length);
      } finally {
        native.close(fd);
      }
      return undefined;
    },
    ftruncate(fd, length = 0) {
      validate.integer(length, 'len');
      check(native.truncate(fdOf(fd), Math.max(0, length)), 'ftruncate');
    },
    fsync(fd) { check(native.sync(fdOf(fd)), 'fsync'); },
    fdatasync(fd) { check(native.sync(fdOf(fd)), 'fdatasync'); },
    copyFile(from, to, mode = 0) {
      from = pathOf(from, 'src');
      to = pathOf(to, 'dest');
      const source = native.open(from, 0, 0);
      if (source < 0) throw system(source, 'copyfile', from, to);
      try {
        const stat = native.fstat(source);
        if ((stat[1] & 61440) === 16384) throw system(-21, 'copyfile', from, to);
        const target = native.open(to, mode & 1 ? 193 : 577, stat[1] & 0o777);
        if (target < 0) throw system(target, 'copyfile', from, to);
        const piece = new Uint8Array(262144);
        try {
          for (;;) {
            const count = check(native.read(source, piece, -1), 'copyfile', from, to);
            if (count === 0) break;
            check(native.writeAll(target, piece.subarray(0, count)), 'copyfile', from, to);
          }
        } finally {
          native.close(target);
        }
      } finally {
        native.close(source);
      }
    },
    cp(from, to, options = {}) {
      from = pathOf(from, 'src');
      to = pathOf(to, 'dest');
      copyTree(from, to, options);
    },
    opendir(directory) { return new Dir(pathOf(directory)); },
  };

  function statAt(file, options, follow, call) {
    file = pathOf(file);
    const numbers = native.stat(file, follow);
    if (typeof numbers === 'number') {
      if (options?.throwIfNoEntry === false && (numbers === -2 || numbers === -20)) return undefined;
      throw system(numbers, call, file);
    }
    return statsFrom(numbers, options?.bigint);
  }

  function removeAll(directory) {
    for (const { name, kind } of entries(directory)) {
      const full = path.join(directory, name);
      if (kind === 2) removeAll(full);
      else check(native.unlink(full), 'rm', full);
    }
    check(native.rmdir(directory), 'rm', directory);
  }

  function real(full, said) {
    let done = '/', rest = full.split('/').filter(Boolean), links = 0;
    while (rest.length) {
      const next = path.join(done, rest.shift());
      const stat = check(native.stat(next, false), 'lstat', next);
      if ((stat[1] & 61440) === 40960) {
        if (++links > 40) throw system(-40, 'realpath', said);
        const target = check(native.readLink(next), 'readlink', next);
        rest = [...target.split('/').filter(Boolean), ...rest];
        if (target.startsWith('/')) done = '/';
        // `..` in what a link says counts from where it leads.
        while (rest[0] === '..' || rest[0] === '.') { if (rest.shift() === '..') done = path.dirname(done); }
      } else done = next;
      while (rest[0] === '..') { rest.shift(); done = path.dirname(done); }
    }
    return done;
  }

  function copyTree(from, to, options) {
    if (options.filter && !options.filter(from, to)) return;
    const stat = options.dereference ? calls.stat(from) : calls.lstat(from);
    const there = native.stat(to, false);
    if (stat.isDirectory()) {
      if (!options.recursive) {
        throw coded(Error, 'ERR_FS_EISDIR', `Recursive option not enabled, cannot copy a directory: cp returned EISDIR (${from} is a directory (not copied)) ${from}`);
      }
      if (`${path.resolve(to)}/`.startsWith(`${path.resolve(from)}/`)) {
        throw coded(Error, 'ERR_FS_CP_EINVAL', `Invalid src or dest: cp returned EINVAL (cannot copy ${from} to a subdirectory of self ${to}) ${to}`);
      }
      if (typeof there === 'number') calls.mkdir(to, { recursive: true });
      for (const { name } of entries(from)) copyTree(path.join(from, name), path.join(to, name), options);
      return;
    }
    if (typeof there !== 'number') {
      if (options.errorOnExist && options.force === false) throw coded(Error, 'ERR_FS_CP_EEXIST', `Target already exists: cp returned EEXIST (${to} already exists) ${to}`);
      if (options.force === false) return;
      if (stat.isSymbolicLink()) calls.unlink(to);
    } else calls.mkdir(path.dirname(path.resolve(to)), { recursive: true });
    if (stat.isSymbolicLink()) calls.symlink(options.verbatimSymlinks ? calls.readlink(from) : path.resolve(path.dirname(from), calls.readlink(from)), to);
    else {
      calls.copyFile(from, to, options.mode);
      if (options.preserveTimestamps) calls.utimes(to, stat.atimeMs / 1000, stat.mtimeMs / 1000);
    }
  }

  class Dir {
    #list; #at = 0; #closed = false;
    constructor(directory) {
      this.path = directory;
      this.#list = entries(directory);
    }
    #check() { if (this.#closed) throw coded(Error, 'ERR_DIR_CLOSED', 'Directory handle was closed'); }
    readSync() {
      this.#check();
      const next = this.#list[this.#at++];
      return next ? new Dirent(next.name, next.kind, this.path) : null;
    }
    read(callback) {
      if (callback === undefined) return Promise.resolve().then(() => this.readSync());
      return later(() => this.readSync(), callback);
    }
    closeSync() { this.#check(); this.#closed = true; }
    close(callback) {
      if (callback === undefined) return Promise.resolve().then(() => this.closeSync());
      return later(() => this.closeSync(), callback);
    }
    async* entries() {
      try {
        for (;;) {
          const next = this.readSync();
          if (!next) return;
          yield next;
        }
      } finally {
        if (!this.#closed) this.closeSync();
      }
    }
    [Symbol.asyncIterator]() { return this.entries(); }
  }

  // Does something, and tells a callback of it from the event loop.
  function later(act, callback, ...extra) {
    let error = null, value;
    try {
      value = act();
    } catch (thrown) {
      if (typeof thrown?.code === 'string' && thrown.code.startsWith('ERR_INVALID') || thrown?.code === 'ERR_OUT_OF_RANGE') throw thrown;
      error = thrown;
    }
    loop.complete(() => (error ? callback(error) : value === undefined && extra.length === 0 ? callback(null) : callback(null, value, ...extra)));
  }

  for (const name of Object.keys(calls)) {
    const call = calls[name];
    Object.defineProperty(call, 'name', { value: `${name}Sync` });
    exports[`${name}Sync`] = call;
    exports[name] = Object.defineProperty(function (...args) {
      const callback = args.pop();
      if (typeof callback !== 'function') throw invalidArgType('cb', 'function', args.length > 1 ? callback : undefined);
      if (name === 'read' || name === 'write') return later(() => call(...args), callback, args[1]);
      return later(() => call(...args), callback);
    }, 'name', { value: name });
  }
  exports.existsSync = (file) => {
    try {
      file = pathOf(file);
    } catch {
      return false;
    }
    return typeof native.stat(file, true) !== 'number';
  };
  exports.exists = (file, callback) => {
    validate.function(callback, 'cb');
    loop.complete(() => callback(exports.existsSync(file)));
  };
  const { promisify } = require('util');
  Object.defineProperty(exports.exists, promisify.custom, { value: (file) => Promise.resolve(exports.existsSync(file)) });
  Object.defineProperty(exports.read, promisify.names, { value: ['bytesRead', 'buffer'], enumerable: false });
  Object.defineProperty(exports.write, promisify.names, { value: ['bytesWritten', 'buffer'], enumerable: false });
  exports.realpathSync.native = exports.realpathSync;
  exports.realpath.native = exports.realpath;

  // Watching would need to be told of changes by the kernel: files are looked at again and again instead.
  const { lazyMember } = require('_lazy');
  for (const name of ['ReadStream', 'WriteStream', 'createReadStream', 'createWriteStream', 'watch', 'watchFile', 'unwatchFile']) lazyMember(exports, name, '_fs_streams');
  lazyMember(exports, 'promises', 'fs/promises', null);
  exports.constants = constants;
  Object.assign(exports, { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 });
  exports.Stats = Stats;
  exports.Dirent = Dirent;
  exports.Dir = Dir;
  exports.openAsBlob = async (file, options) => new Blob([calls.readFile(file)], options);
  Object.defineProperty(exports, '_calls', { value: calls, enumerable: false });
})
