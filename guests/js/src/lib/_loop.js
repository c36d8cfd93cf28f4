// The event loop: ticks, microtasks, timers, descriptors that are waited for, children, immediates.
(function (exports, require, module, native) {
  'use strict';

  const ticks = [];
  const watchers = new Map();
  const completions = [];
  let immediates = [];
  let timers = [];
  let serial = 0;
  // Children that have not ended: pid to a function of code and signal.
  const children = new Map();
  const signals = new Map();
  let held = 0;

  exports.nextTick = (fn, args) => { ticks.push({ fn, args }); };

  const now = () => native.hrtime() / 1e6;
  exports.now = now;

  // Runs a callback of the loop; what it throws is an uncaught exception.
  function run(fn, self, args) {
    try {
      if (args === undefined) fn.call(self);
      else fn.apply(self, args);
    } catch (error) {
      require('_rejections').uncaught(error, 'uncaughtException');
    }
    drain();
  }
  exports.run = run;

  function drain() {
    const rejections = require('_rejections');
    do {
      while (ticks.length) {
        const { fn, args } = ticks.shift();
        try {
          if (args) fn(...args);
          else fn();
        } catch (error) {
          rejections.uncaught(error, 'uncaughtException');
        }
      }
      while (native.job());
    } while (ticks.length || rejections.check());
  }
  exports.drain = drain;

  // Timers are kept in order of time, then of creation.
  exports.addTimer = (timer) => {
    timer.at = now() + timer.delay;
    timer.serial = ++serial;
    let low = 0, high = timers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (timers[middle].at <= timer.at) low = middle + 1;
      else high = middle;
    }
    timers.splice(low, 0, timer);
    timer.active = true;
  };
  exports.removeTimer = (timer) => {
    if (!timer.active) return;
    timer.active = false;
    const index = timers.indexOf(timer);
    if (index >= 0) timers.splice(index, 1);
  };

  exports.addImmediate = (immediate) => { immediates.push(immediate); };

  // Something that was done at once, whose callback comes later, as in Node's thread pool.
  exports.complete = (fn, ...args) => { completions.push({ fn, args }); };

  // Calls back when a descriptor can be read or written. What it returns is the watcher.
  exports.watch = (fd, events, fn) => {
    const watcher = { fd, events, fn, ref: true };
    watchers.set(watcher, watcher);
    return watcher;
  };
  exports.unwatch = (watcher) => { if (watcher) watchers.delete(watcher); };

  exports.addChild = (pid, ended) => {
    if (children.size === 0) native.onSignal(17, 2);
    children.set(pid, { ended, ref: true });
  };
  exports.refChild = (pid, ref) => { const child = children.get(pid); if (child) child.ref = ref; };

  exports.onSignal = (number, fn) => {
    if (fn) {
      signals.set(number, fn);
      native.onSignal(number, 2);
    } else {
      signals.delete(number);
      native.onSignal(number, 0);
    }
  };

  // Keeps the loop alive without anything it could see.
  exports.hold = () => { held++; };
  exports.release = () => { held--; };

  function reap() {
    for (const [pid, child] of children) {
      const ended = native.wait(pid, false);
      if (ended === null || ended === undefined) continue;
      children.delete(pid);
      const [code, signal] = typeof ended === 'number' ? [-1, 0] : ended;
      run(child.ended, undefined, [code, signal]);
    }
  }

  function takeSignals() {
    for (const number of native.signals()) {
      const fn = signals.get(number);
      if (fn) run(fn, undefined, [number]);
    }
  }

  const alive = () => completions.length > 0 || immediates.some((one) => one.ref && !one.cleared) || timers.some((timer) => timer.ref)
    || [...watchers.values()].some((watcher) => watcher.ref) || [...children.values()].some((child) => child.ref) || held > 0;
  exports.alive = alive;

  function runTimers() {
    // What is due within this millisecond is due.
    const start = now() + 1;
    while (timers.length && timers[0].at <= start) {
      const timer = timers.shift();
      timer.active = false;
      run(timer.fire, timer);
    }
  }

  function poll() {
    let wait = -1;
    if (immediates.length || completions.length || (held === 0 && !alive())) wait = 0;
    else if (timers.length) wait = Math.max(0, timers[0].at - now());
    // A child may have ended just before the wait began.
    if (children.size && (wait < 0 || wait > 50)) wait = 50;
    if (signals.size && (wait < 0 || wait > 200)) wait = 200;
    const batch = completions.splice(0);
    const list = [...watchers.values()];
    if (list.length || wait > 0) {
      if (list.length === 0 && wait < 0) wait = 1000;
      const ready = native.poll(list.map((one) => one.fd), list.map((one) => one.events), wait);
      if (typeof ready !== 'number') {
        for (let index = 0; index < list.length; index++) {
          if (ready[index] && watchers.has(list[index])) run(list[index].fn, undefined, [ready[index]]);
        }
      }
    }
    for (const { fn, args } of batch) run(fn, undefined, args);
  }

  function runImmediates() {
    const batch = immediates;
    immediates = [];
    for (const immediate of batch) if (!immediate.cleared) run(immediate.fire, immediate);
  }

  // Runs until there is nothing left to wait for.
  exports.runAll = () => {
    drain();
    while (alive()) {
      runTimers();
      poll();
      if (children.size) reap();
      if (signals.size) takeSignals();
      runImmediates();
    }
  };

  // Runs until a promise is settled or nothing is left.
  exports.stop = () => { timers = []; immediates = []; completions.length = 0; watchers.clear(); children.clear(); held = 0; };
})
