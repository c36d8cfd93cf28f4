// child_process: other programs of the sandbox.
(function (exports, require, module, native) {
  'use strict';

  const EventEmitter = require('events');
  const process = require('process');
  const loop = require('_loop');
  const { system, validate, invalidArgType, invalidArgValue, coded, errnoName, AbortError, unsupported } = require('_errors');
  const { Buffer } = require('buffer');
  const SIGNALS = process._kSignals;
  const nameOf = (number) => Object.keys(SIGNALS).find((name) => SIGNALS[name] === number) ?? null;
  const signalNumber = (signal) => {
    if (typeof signal === 'number') return signal;
    const number = SIGNALS[String(signal).toUpperCase()];
    if (number === undefined) throw coded(TypeError, 'ERR_UNKNOWN_SIGNAL', `Unknown signal: ${signal}`);
    return number;
  };

  function normalize(file, args, options) {
    validate.string(file, 'file');
    if (file.length === 0) throw invalidArgValue('file', file, 'cannot be empty');
    if (Array.isArray(args)) args = args.slice(0);
    else if (args === undefined || args === null) args = [];
    else if (typeof args !== 'object') throw invalidArgType('args', 'object', args);
    else { options = args; args = []; }
    options ??= {};
    validate.object(options, 'options');
    for (const value of [file, ...args]) if (String(value).includes('\0')) throw invalidArgValue('args', value, 'must be a string without null bytes');
    const cwd = options.cwd === undefined || options.cwd === null ? '' : typeof options.cwd === 'string' ? options.cwd : require('url').fileURLToPath(options.cwd);
    const from = options.env ?? process.env;
    const env = [];
    for (const key of Object.keys(from)) if (from[key] !== undefined) env.push(`${key}=${from[key]}`);
    let argv = [options.argv0 ?? file, ...args.map(String)];
    if (options.shell) {
      const shell = typeof options.shell === 'string' ? options.shell : '/bin/sh';
      argv = [shell, '-c', [file, ...args].join(' ')];
      file = shell;
    }
    return { file, argv, env, cwd, options, path: (options.env ?? process.env).PATH ?? '/usr/local/bin:/usr/bin:/bin' };
  }

  // Starts a program, looked for in PATH. What is returned is its number or a negative error.
  function start({ file, argv, env, cwd, path, options }, fds) {
    if (cwd && native.access(cwd, 1) < 0) return -2;
    const group = !!options.detached;
    if (file.includes('/')) return attempt(file, argv, env, cwd, fds, group);
    let denied = -2;
    for (const directory of path.split(':')) {
      const pid = attempt(`${directory || '.'}/${file}`, argv, env, cwd, fds, group);
      if (pid > 0) return pid;
      if (pid === -13) denied = pid;
      else if (pid !== -2 && pid !== -20) return pid;
    }
    return denied;
  }
  function attempt(file, argv, env, cwd, fds, group) {
    const pid = native.spawn(file, argv, env, cwd ? require('path').resolve(cwd) : '', fds, group);
    // A script without `#!` is one of the shell.
    if (pid === -8) return native.spawn('/bin/sh', ['/bin/sh', file, ...argv.slice(1)], env, cwd, fds, group);
    return pid;
  }

  function stdioOf(stdio, count = 3) {
    if (stdio === undefined || stdio === null) stdio = 'pipe';
    if (typeof stdio === 'string') stdio = stdio === 'inherit' ? [0, 1, 2] : Array(count).fill(stdio);
    if (!Array.isArray(stdio)) throw invalidArgValue('stdio', stdio);
    stdio = [...stdio];
    while (stdio.length < 3) stdio.push('pipe');
    return stdio.map((one, index) => {
      if (one === undefined || one === null) return index < 3 ? 'pipe' : 'ignore';
      if (one === 'overlapped') return 'pipe';
      if (one === 'inherit') return index;
      if (one === 'ipc') throw unsupported("stdio 'ipc' (child_process.fork)", 'is not available in this sandbox: use pipes');
      if (one === 'pipe' || one === 'ignore' || typeof one === 'number') return one;
      if (typeof one.fd === 'number') return one.fd;
      if (typeof one._handleFd === 'number') return one._handleFd;
      throw invalidArgValue('stdio', one);
    });
  }

  // Descriptors for the child, those kept here, and those to close once it has started.
  function arrange(stdio) {
    const fds = [], mine = [], close = [];
    for (const [index, one] of stdio.entries()) {
      if (one === 'pipe') {
        const ends = native.pipe();
        if (typeof ends === 'number') throw system(ends, 'spawn');
        const [readEnd, writeEnd] = ends;
        const writes = index === 0;
        fds.push(writes ? readEnd : writeEnd);
        mine.push(writes ? writeEnd : readEnd);
        close.push(writes ? readEnd : writeEnd);
      } else if (one === 'ignore') {
        const fd = native.open('/dev/null', 2, 0);
        fds.push(fd);
        mine.push(null);
        close.push(fd);
      } else {
        fds.push(one);
        mine.push(null);
      }
    }
    return { fds, mine, done: () => close.forEach((fd) => native.close(fd)) };
  }

  class ChildProcess extends EventEmitter {
    constructor() {
      super();
      this.pid = undefined;
      this.exitCode = null;
      this.signalCode = null;
      this.killed = false;
      this.connected = false;
      this.stdin = this.stdout = this.stderr = null;
      this.stdio = [];
      this.spawnfile = null;
      this.spawnargs = [];
    }
    _spawn(request) {
      const { reader, writer } = require('_stdio');
      const stdio = stdioOf(request.options.stdio);
      const { fds, mine, done } = arrange(stdio);
      this.spawnfile = request.file;
      this.spawnargs = request.argv;
      const pid = start(request, fds);
      done();
      let open = 0;
      const closed = () => { if (--open === 0) this.#close(); };
      mine.forEach((fd, index) => {
        let stream = null;
        if (fd !== null) {
          if (index === 0) {
            stream = writer(fd, () => native.close(fd));
            stream.on('error', () => {});
          } else {
            open++;
            stream = reader(fd, () => native.close(fd));
            stream.once('close', closed);
          }
        }
        this.stdio.push(stream);
      });
      [this.stdin, this.stdout, this.stderr] = this.stdio;
      open++;
      if (pid < 0) {
        const error = new Error(`spawn ${request.file} ${errnoName(pid)}`);
        Object.assign(error, { errno: pid, code: errnoName(pid), syscall: `spawn ${request.file}`, path: request.file, spawnargs: request.argv.slice(1) });
        for (const stream of this.stdio) stream?.destroy();
        this.exitCode = pid;
        loop.complete(() => { this.emit('error', error); closed(); });
        return this;
      }
      this.pid = pid;
      this.#end = closed;
      loop.addChild(pid, (code, signal) => {
        if (signal) this.signalCode = nameOf(signal);
        else this.exitCode = code;
        this.stdin?.destroy();
        this.emit('exit', this.exitCode, this.signalCode);
        // What nobody reads must not keep it open.
        for (const stream of this.stdio.slice(1)) if (stream && stream.readableFlowing === null && !stream.destroyed) stream.resume();
        this.#end();
      });
      loop.complete(() => this.emit('spawn'));
      return this;
    }
    #end = () => {};
    #close() { require('process').nextTick(() => this.emit('close', this.exitCode, this.signalCode)); }
    kill(signal = 'SIGTERM') {
      const number = signal === 0 ? 0 : signalNumber(signal);
      if (this.pid === undefined || this.exitCode !== null || this.signalCode !== null) return false;
      if (native.kill(this.pid, number) < 0) return false;
      this.killed = true;
      return true;
    }
    ref() { loop.refChild(this.pid, true); }
    unref() { loop.refChild(this.pid, false); for (const stream of this.stdio) stream?.unref?.(); }
    send() { throw unsupported('ChildProcess.send', 'is not available in this sandbox: use pipes'); }
    disconnect() {}
  }
  exports.ChildProcess = ChildProcess;

  exports.spawn = function spawn(file, args, options) {
    const request = normalize(file, args, options);
    const child = new ChildProcess()._spawn(request);
    limit(child, request.options);
    return child;
  };
  function limit(child, options) {
    if (options.timeout > 0) {
      const timer = require('timers').setTimeout(() => child.kill(options.killSignal ?? 'SIGTERM'), options.timeout);
      child.once('exit', () => clearTimeout(timer));
    }
    const { signal } = options;
    if (signal) {
      const abort = () => {
        child.kill(options.killSignal ?? 'SIGTERM');
        child.emit('error', new AbortError(undefined, { cause: signal.reason }));
      };
      if (signal.aborted) process.nextTick(abort);
      else {
        signal.addEventListener('abort', abort, { once: true });
        child.once('exit', () => signal.removeEventListener('abort', abort));
      }
    }
  }

  exports.execFile = function execFile(file, args, options, callback) {
    if (typeof args === 'function') { callback = args; args = []; options = {}; }
    else if (args !== undefined && args !== null && !Array.isArray(args)) { callback = options; options = args; args = []; }
    if (typeof options === 'function') { callback = options; options = {}; }
    options = { encoding: 'utf8', timeout: 0, maxBuffer: 1024 * 1024, killSignal: 'SIGTERM', ...options };
    const request = normalize(file, args, options);
    const child = new ChildProcess()._spawn(request);
    const kept = { stdout: [], stderr: [] }, sizes = { stdout: 0, stderr: 0 };
    let failure = null, over = false, timedOut = false;
    const shown = options.shell ? file : [file, ...args ?? []].join(' ');
    const finish = (code, signal) => {
      if (over) return;
      over = true;
      const text = (name) => {
        const bytes = Buffer.concat(kept[name]);
        return options.encoding && options.encoding !== 'buffer' && Buffer.isEncoding(options.encoding) ? bytes.toString(options.encoding) : bytes;
      };
      const stdout = text('stdout'), stderr = text('stderr');
      if (!callback) return;
      if (failure || code !== 0 || signal !== null) {
        let error = failure;
        if (!error) {
          error = new Error(`Command failed: ${shown}\n${stderr}`);
          error.code = code < 0 ? errnoName(code) : code;
          error.killed = child.killed || timedOut;
          error.signal = signal;
        }
        error.cmd = shown;
        error.stdout = stdout;
        error.stderr = stderr;
        callback(error, stdout, stderr);
      } else callback(null, stdout, stderr);
    };
    for (const name of ['stdout', 'stderr']) {
      child[name]?.on('data', (chunk) => {
        sizes[name] += chunk.length;
        if (sizes[name] > options.maxBuffer) {
          kept[name].push(chunk.subarray(0, chunk.length - (sizes[name] - options.maxBuffer)));
          failure ??= coded(RangeError, 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER', `${name} maxBuffer length exceeded`);
          child.kill(options.killSignal);
          child.stdout.destroy();
          child.stderr.destroy();
        } else kept[name].push(chunk);
      });
    }
    child.on('error', (error) => {
      failure ??= error;
      if (child.pid === undefined) finish(null, null);
    });
    child.on('close', finish);
    if (options.timeout > 0) child.once('exit', () => { timedOut = child.killed; });
    limit(child, options);
    return child;
  };
  exports.exec = function exec(command, options, callback) {
    validate.string(command, 'command');
    if (typeof options === 'function') { callback = options; options = {}; }
    return exports.execFile(command, [], { ...options, shell: typeof options?.shell === 'string' ? options.shell : true }, callback);
  };
  const { promisify } = require('util');
  for (const name of ['exec', 'execFile']) {
    Object.defineProperty(exports[name], promisify.custom, {
      enumerable: false,
      value: (...args) => {
        let child;
        const promise = new Promise((resolve, reject) => {
          child = exports[name](...args, (error, stdout, stderr) => {
            if (error) reject(Object.assign(error, { stdout, stderr }));
            else resolve({ stdout, stderr });
          });
        });
        promise.child = child;
        return promise;
      },
    });
  }
  exports.fork = (file, args, options) => {
    void args;
    void options;
    throw unsupported(`child_process.fork('${file}')`, 'is not available in this sandbox: there is no channel for messages; use spawn(process.execPath, [file])');
  };

  exports.spawnSync = function spawnSync(file, args, options) {
    const request = normalize(file, args, options);
    options = { maxBuffer: 1024 * 1024, ...request.options };
    const stdio = stdioOf(options.stdio);
    let { input } = options;
    if (input !== undefined && input !== null) {
      input = typeof input === 'string' ? Buffer.from(input, options.encoding && options.encoding !== 'buffer' ? options.encoding : 'utf8') : new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
      stdio[0] = 'pipe';
    }
    const { fds, mine, done } = arrange(stdio);
    const pid = start(request, fds);
    done();
    const result = { pid: Math.max(pid, 0), output: null, stdout: null, stderr: null, status: null, signal: null };
    const output = mine.map((fd, index) => (fd === null || index === 0 ? null : []));
    const decode = (parts) => {
      if (parts === null) return null;
      const bytes = Buffer.concat(parts);
      return options.encoding && options.encoding !== 'buffer' ? bytes.toString(options.encoding) : bytes;
    };
    if (pid < 0) {
      mine.forEach((fd) => { if (fd !== null) native.close(fd); });
      result.error = new Error(`spawnSync ${request.file} ${errnoName(pid)}`);
      Object.assign(result.error, { errno: pid, code: errnoName(pid), syscall: `spawnSync ${request.file}`, path: request.file, spawnargs: request.argv.slice(1) });
      return result;
    }
    exchange(pid, mine, input, output, options, result);
    const ended = native.wait(pid, true);
    const [code, signal] = typeof ended === 'number' || !ended ? [-1, 0] : ended;
    result.status = signal ? null : code;
    result.signal = signal ? nameOf(signal) : null;
    result.output = output.map(decode);
    result.stdout = result.output[1] ?? null;
    result.stderr = result.output[2] ?? null;
    return result;
  };

  // Writes and reads until all pipes are closed, or the time is over.
  function exchange(pid, mine, input, output, options, result) {
    const open = new Map();
    mine.forEach((fd, index) => { if (fd !== null) { native.setNonblocking(fd, true); open.set(fd, index); } });
    let at = 0;
    const sizes = output.map(() => 0);
    const until = options.timeout > 0 ? loop.now() + options.timeout : Infinity;
    const shut = (fd) => { open.delete(fd); native.close(fd); };
    const stop = (code) => {
      native.kill(pid, signalNumber(options.killSignal ?? 'SIGTERM'));
      result.error ??= Object.assign(new Error(`spawnSync ${options.shell ? '/bin/sh' : output.file ?? ''} ${code}`.replace('  ', ' ')), { code, errno: code === 'ETIMEDOUT' ? -110 : -105, syscall: 'spawnSync' });
    };
    const room = new Uint8Array(65536);
    if (mine[0] !== null && !input?.length) shut(mine[0]);
    while (open.size) {
      const list = [...open];
      const left = until - loop.now();
      const ready = native.poll(list.map(([fd]) => fd), list.map(([, index]) => (index === 0 ? 2 : 1)), left === Infinity ? -1 : Math.max(0, left));
      if (typeof ready === 'number') continue;
      if (loop.now() >= until && ready.every((one) => !one)) { stop('ETIMEDOUT'); list.forEach(([fd]) => shut(fd)); break; }
      list.forEach(([fd, index], which) => {
        if (!ready[which]) return;
        if (index === 0) {
          const count = native.write(fd, input.subarray(at), -1);
          if (count === -11) return;
          if (count > 0) at += count;
          if (count < 0 || at >= input.length) shut(fd);
          return;
        }
        const count = native.read(fd, room, -1);
        if (count === -11) return;
        if (count <= 0) { shut(fd); return; }
        sizes[index] += count;
        output[index].push(Buffer.from(room.subarray(0, count)));
        if (sizes[index] > options.maxBuffer) { stop('ENOBUFS'); shut(fd); }
      });
    }
    if (until !== Infinity) {
      while (!result.error && native.kill(pid, 0) === null && loop.now() < until) { if (finished(pid)) return; native.poll([], [], 5); }
    }
  }
  const finished = (pid) => { try { return /^\d+ \(.*\) Z/.test(require('fs').readFileSync(`/proc/${pid}/stat`, 'utf8')); } catch { return true; } };

  function checked(result, shown, inherit) {
    if (inherit && result.stderr?.length) process.stderr.write(result.stderr);
    const error = result.error ?? (result.status !== 0 ? new Error(`Command failed: ${shown}${result.stderr?.length > 0 ? `\n${result.stderr}` : ''}`) : null);
    if (error) throw Object.assign(error, result.error ? { ...result, error: undefined } : result);
    return result.stdout;
  }
  exports.execFileSync = function execFileSync(file, args, options) {
    if (!Array.isArray(args) && args !== undefined && args !== null) { options = args; args = []; }
    const result = exports.spawnSync(file, args, options);
    return checked(result, [file, ...args ?? []].join(' '), !options?.stdio);
  };
  exports.execSync = function execSync(command, options) {
    validate.string(command, 'command');
    const result = exports.spawnSync(command, [], { ...options, shell: typeof options?.shell === 'string' ? options.shell : true });
    return checked(result, command, !options?.stdio);
  };
})
