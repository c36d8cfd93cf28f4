// process: arguments, variables, streams, exit codes, signals.
(function (exports, require, module, native) {
  'use strict';

  const EventEmitter = require('events');
  const loop = require('_loop');
  const { coded, system, validate, invalidArgType, invalidArgValue, unsupported } = require('_errors');

  const VERSION = '20.20.2';
  const SIGNALS = {
    SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGTRAP: 5, SIGABRT: 6, SIGIOT: 6, SIGBUS: 7, SIGFPE: 8, SIGKILL: 9,
    SIGUSR1: 10, SIGSEGV: 11, SIGUSR2: 12, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15, SIGCHLD: 17, SIGSTKFLT: 16, SIGCONT: 18,
    SIGSTOP: 19, SIGTSTP: 20, SIGTTIN: 21, SIGTTOU: 22, SIGURG: 23, SIGXCPU: 24, SIGXFSZ: 25, SIGVTALRM: 26, SIGPROF: 27,
    SIGWINCH: 28, SIGIO: 29, SIGPOLL: 29, SIGPWR: 30, SIGSYS: 31,
  };

  function process() {}
  Object.defineProperty(process, 'name', { value: 'process' });
  const object = Object.create(process.prototype);
  Object.setPrototypeOf(process.prototype, EventEmitter.prototype);
  Object.defineProperty(object, Symbol.toStringTag, { value: 'process', configurable: true });
  EventEmitter.call(object);
  const hide = (name, value) => Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });
  for (const name of [...['_events', '_eventsCount', '_maxListeners'], ...Object.getOwnPropertySymbols(object)]) if (name !== Symbol.toStringTag) hide(name, object[name]);

  const check = (result, call, ...rest) => {
    if (typeof result === 'number' && result < 0) throw system(result, call, ...rest);
    return result;
  };
  const once = (name, make) => Object.defineProperty(object, name, {
    configurable: true, enumerable: true,
    get() {
      const value = make();
      Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: true });
      return value;
    },
    set(value) { Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: true }); },
  });

  let code, started = 0, origin = 0;
  Object.assign(object, {
    version: `v${VERSION}`,
    versions: { node: VERSION, quickjs: 'ng', uv: '1.46.0', modules: '115' },
    arch: 'wasm32', platform: 'linux',
    release: { name: 'node', lts: 'Iron' },
    title: 'node', argv: [], execArgv: [], execPath: '', argv0: 'node', pid: 0, ppid: 0, debugPort: 9229,
    features: { inspector: false, debug: false, uv: true, ipv6: true, tls_alpn: true, tls_sni: true, tls_ocsp: false, tls: true, cached_builtins: true },
    config: { target_defaults: {}, variables: {} },
    nextTick(callback, ...args) {
      validate.function(callback, 'callback');
      loop.nextTick(callback, args);
    },
    cwd: () => check(native.cwd(), 'uv_cwd'),
    chdir(directory) {
      validate.string(directory, 'directory');
      check(native.chdir(directory), 'chdir', object.cwd(), directory);
    },
    exit(status) {
      if (status !== undefined) object.exitCode = status;
      if (!object._exiting) {
        object._emitExit(object.exitCode ?? 0);
      }
      native.exit((object.exitCode ?? 0) & 255);
    },
    reallyExit(status) { native.exit(status & 255); },
    abort() {
      native.onSignal(6, 0);
      native.kill(native.pid(), 6);
      native.exit(134);
    },
    kill(pid, signal = 'SIGTERM') {
      if (typeof pid !== 'number') throw invalidArgType('pid', 'number', pid);
      const number = typeof signal === 'number' ? signal : SIGNALS[signal];
      if (number === undefined) throw coded(TypeError, 'ERR_UNKNOWN_SIGNAL', `Unknown signal: ${signal}`);
      check(native.kill(pid, number), 'kill');
      return true;
    },
    umask: (mask) => {
      if (mask === undefined) {
        const old = native.umask(0);
        native.umask(old);
        return old;
      }
      return native.umask(typeof mask === 'string' ? parseInt(mask, 8) : mask);
    },
    uptime: () => (native.hrtime() - started) / 1e9,
    hrtime: (since) => {
      const nanos = native.hrtime();
      let pair = [Math.floor(nanos / 1e9), Math.floor(nanos % 1e9)];
      if (since) {
        pair = [pair[0] - since[0], pair[1] - since[1]];
        if (pair[1] < 0) pair = [pair[0] - 1, pair[1] + 1e9];
      }
      return pair;
    },
    memoryUsage: () => {
      const heap = native.heap();
      return { rss: heap + (8 << 20), heapTotal: heap, heapUsed: heap, external: 0, arrayBuffers: 0 };
    },
    cpuUsage: (since) => {
      const [user, systemTime] = native.times();
      return { user: Math.round(user - (since?.user ?? 0)), system: Math.round(systemTime - (since?.system ?? 0)) };
    },
    resourceUsage: () => {
      const [user, systemTime] = native.times();
      return { userCPUTime: Math.round(user), systemCPUTime: Math.round(systemTime), maxRSS: Math.round(native.heap() / 1024) };
    },
    getuid: () => native.uid(), geteuid: () => native.uid(), getgid: () => native.gid(), getegid: () => native.gid(),
    getgroups: () => [native.gid()],
    emitWarning(warning, type, code) {
      let detail;
      if (type !== null && typeof type === 'object') ({ type, code, detail } = type);
      if (typeof warning === 'string') {
        const name = type || 'Warning';
        warning = new Error(warning);
        warning.name = name;
        if (code) warning.code = code;
        if (detail) warning.detail = detail;
      }
      if (warning.name === 'DeprecationWarning' && object.noDeprecation) return;
      loop.nextTick(() => {
        if (!object._noWarnings) {
          const label = warning.code ? `[${warning.code}] ` : '';
          let text = `(node:${object.pid}) ${label}${object.traceWarnings ? warning.stack : `${warning.name}: ${warning.message}`}\n`;
          if (warning.detail) text += `${warning.detail}\n`;
          if (!object._warned) {
            object._warned = true;
            if (!object.traceWarnings) text += warning.name === 'DeprecationWarning' ? '(Use `node --trace-deprecation ...` to show where the warning was created)\n' : '(Use `node --trace-warnings ...` to show where the warning was created)\n';
          }
          native.writeText(2, text);
        }
        object.emit('warning', warning);
      });
    },
    setUncaughtExceptionCaptureCallback(fn) { hide('_capture', fn); },
    hasUncaughtExceptionCaptureCallback: () => object._capture != null,
    setSourceMapsEnabled() {},
    binding(name) { throw coded(Error, 'ERR_INVALID_MODULE', `No such binding: ${name}`); },
    dlopen() { throw unsupported('process.dlopen', 'loads native code, which this sandbox has not: use a package without native code'); },
    getActiveResourcesInfo: () => [],
    constrainedMemory: () => 0,
    availableMemory: () => 2 ** 28,
    report: { compact: false, directory: '', filename: '', getReport() { throw unsupported('process.report'); } },
    allowedNodeEnvironmentFlags: new Set(),
    stdoutIsPrepared: undefined,
  });
  delete object.stdoutIsPrepared;
  object.hrtime.bigint = () => BigInt(Math.floor(native.hrtime()));
  object.memoryUsage.rss = () => object.memoryUsage().rss;

  Object.defineProperty(object, 'exitCode', {
    configurable: true, enumerable: true,
    get: () => code,
    set(value) {
      if (value !== undefined && value !== null) {
        const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
        if (typeof number !== 'number') throw invalidArgType('code', 'integer', value);
        if (!Number.isInteger(number)) throw require('_errors').outOfRange('code', 'an integer', value);
        value = number;
      }
      code = value;
    },
  });
  for (const name of ['_exiting', '_warned', '_noWarnings', '_rejections', '_testOptions', '_capture']) hide(name, undefined);
  hide('_emitExit', (status) => {
    if (object._exiting) return;
    object._exiting = true;
    if (object.exitCode === undefined) object.exitCode = status;
    object.emit('exit', object.exitCode ?? status);
  });
  hide('_kSignals', SIGNALS);

  function environment() {
    const env = {};
    for (const pair of native.environ()) {
      const cut = pair.indexOf('=');
      if (cut > 0) env[pair.slice(0, cut)] = pair.slice(cut + 1);
    }
    return new Proxy(env, {
      set(target, key, value) {
        if (typeof key === 'symbol' || typeof value === 'symbol') throw new TypeError('Cannot convert a Symbol value to a string');
        target[key] = `${value}`;
        return true;
      },
      defineProperty(target, key, descriptor) {
        if ('value' in descriptor) {
          if (!(descriptor.configurable && descriptor.writable && descriptor.enumerable)) {
            throw coded(TypeError, 'ERR_INVALID_OBJECT_DEFINE_PROPERTY', "'process.env' only accepts a configurable, writable, and enumerable data descriptor");
          }
          target[key] = `${descriptor.value}`;
          return true;
        }
        throw coded(TypeError, 'ERR_INVALID_OBJECT_DEFINE_PROPERTY', "'process.env' does not accept an accessor(getter/setter) descriptor");
      },
    });
  }
  once('env', environment);
  once('stdout', () => require('_stdio').output(1));
  once('stderr', () => require('_stdio').output(2));
  once('stdin', () => require('_stdio').input());

  // Signals are delivered to listeners as long as there are any.
  object.on('newListener', (name) => {
    if (SIGNALS[name] && object.listenerCount(name) === 0) {
      if (SIGNALS[name] === 9 || SIGNALS[name] === 19) throw system(-22, 'uv_signal_start');
      loop.onSignal(SIGNALS[name], (number) => object.emit(name, name, number));
    }
  });
  object.on('removeListener', (name) => {
    if (SIGNALS[name] && object.listenerCount(name) === 0) loop.onSignal(SIGNALS[name], null);
  });

  // What differs from process to process, and is not part of the start image.
  hide('_start', () => {
    started = native.hrtime();
    origin = native.now();
    object.pid = native.pid();
    object.ppid = native.ppid();
    const args = native.args();
    object.argv0 = args[0] ?? 'node';
    object.execPath = executable(object.argv0);
    // A pipe that nobody reads is an error of the write, not the end of the process.
    native.onSignal(13, 2);
    return args;
  });
  hide('_origin', () => origin);
  hide('_started', () => started);

  function executable(name) {
    if (name.includes('/')) return name.startsWith('/') ? name : require('path').resolve(name);
    for (const directory of (object.env.PATH ?? '/usr/bin:/bin').split(':')) {
      const path = `${directory}/${name}`;
      if (native.access(path, 1) === undefined || native.access(path, 1) === null) return path;
    }
    return `/usr/bin/${name}`;
  }

  void invalidArgValue;
  module.exports = object;
})
