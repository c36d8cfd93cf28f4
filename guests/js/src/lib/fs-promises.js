// fs.promises: the same calls, with promises and file handles.
(function (exports, require, module, native) {
  'use strict';

  const fs = require('fs');
  const EventEmitter = require('events');
  const loop = require('_loop');
  const { _calls: calls } = fs;
  const { system, AbortError } = require('_errors');

  // Does something at once, and settles a promise from the event loop.
  const promised = (act) => new Promise((resolve, reject) => {
    let value, error, failed = false;
    try {
      value = act();
    } catch (thrown) {
      failed = true;
      error = thrown;
    }
    loop.complete(() => (failed ? reject(error) : resolve(value)));
  });

  const target = (file) => (file instanceof FileHandle ? file.fd : file);
  const collect = async (data) => {
    const parts = [];
    for await (const part of data) parts.push(typeof part === 'string' ? Buffer.from(part) : part);
    return Buffer.concat(parts);
  };
  const isIterable = (data) => data !== null && typeof data === 'object' && !ArrayBuffer.isView(data) && (data[Symbol.asyncIterator] || data[Symbol.iterator]);

  class FileHandle extends EventEmitter {
    #fd;
    constructor(fd) { super(); this.#fd = fd; }
    get fd() { return this.#fd; }
    #use(act) {
      return this.#fd < 0 ? Promise.reject(system(-9, 'fstat')) : promised(() => act(this.#fd));
    }
    appendFile(data, options) { return this.writeFile(data, options); }
    chmod(mode) { return this.#use((fd) => calls.fchmod(fd, mode)); }
    chown(uid, gid) { return this.#use((fd) => calls.fchown(fd, uid, gid)); }
    datasync() { return this.#use((fd) => calls.fdatasync(fd)); }
    sync() { return this.#use((fd) => calls.fsync(fd)); }
    read(buffer, offset, length, position) {
      if (!ArrayBuffer.isView(buffer)) {
        const options = buffer ?? {};
        buffer = options.buffer ?? Buffer.alloc(16384);
        ({ offset, length, position } = options);
      }
      return this.#use((fd) => ({ bytesRead: calls.read(fd, buffer, offset, length, position), buffer }));
    }
    readFile(options) { return this.#use((fd) => calls.readFile(fd, options)); }
    readv(buffers, position) { return this.#use((fd) => ({ bytesRead: calls.readv(fd, buffers, position), buffers })); }
    stat(options) { return this.#use((fd) => calls.fstat(fd, options)); }
    truncate(length) { return this.#use((fd) => calls.ftruncate(fd, length)); }
    utimes(atime, mtime) { return this.#use((fd) => calls.futimes(fd, atime, mtime)); }
    write(data, offset, length, position) {
      return this.#use((fd) => ({ bytesWritten: calls.write(fd, data, offset, length, position), buffer: data }));
    }
    async writeFile(data, options) {
      if (isIterable(data)) data = await collect(data);
      return this.#use((fd) => calls.writeFile(fd, data, options));
    }
    writev(buffers, position) { return this.#use((fd) => ({ bytesWritten: calls.writev(fd, buffers, position), buffers })); }
    async close() {
      if (this.#fd < 0) return;
      const fd = this.#fd;
      this.#fd = -1;
      await promised(() => calls.close(fd));
      this.emit('close');
    }
    createReadStream(options) { return fs.createReadStream(null, { ...options, fd: this.#fd, autoClose: false }).once('close', () => options?.autoClose === false || this.close()); }
    createWriteStream(options) { return fs.createWriteStream(null, { ...options, fd: this.#fd, autoClose: false }).once('close', () => options?.autoClose === false || this.close()); }
    readLines(options) { return require('readline').createInterface({ input: this.createReadStream(options), crlfDelay: Infinity }); }
    [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() { return this.close(); }
  }

  for (const name of ['access', 'appendFile', 'chmod', 'chown', 'copyFile', 'cp', 'lchmod', 'lchown', 'link', 'lstat', 'lutimes', 'mkdir',
    'mkdtemp', 'opendir', 'readdir', 'readlink', 'realpath', 'rename', 'rm', 'rmdir', 'stat', 'statfs', 'symlink', 'truncate', 'unlink', 'utimes']) {
    exports[name] = Object.defineProperty((...args) => promised(() => calls[name](...args)), 'name', { value: name });
  }
  exports.appendFile = async (file, data, options) => promised(() => calls.appendFile(target(file), data, options));
  exports.readFile = (file, options) => {
    if (options?.signal?.aborted) return Promise.reject(new AbortError(undefined, { cause: options.signal.reason }));
    return promised(() => calls.readFile(target(file), options));
  };
  exports.writeFile = async (file, data, options) => {
    if (options?.signal?.aborted) throw new AbortError(undefined, { cause: options.signal.reason });
    if (isIterable(data)) data = await collect(data);
    return promised(() => calls.writeFile(target(file), data, options));
  };
  exports.open = (file, flags = 'r', mode = 0o666) => promised(() => new FileHandle(calls.open(file, flags, mode)));
  exports.watch = (file, options) => EventEmitter.on(fs.watch(file, options), 'change');
  exports.constants = fs.constants;
})
