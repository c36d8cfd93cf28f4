(function (exports, require, module, native) {
  'use strict';
  const process = require('process');
  const entries = [];
  const observers = new Set();
  class PerformanceEntry {
    constructor(name, entryType, startTime, duration, detail) { Object.assign(this, { name, entryType, startTime, duration }); if (detail !== undefined) this.detail = detail; }
    toJSON() { return { ...this }; }
  }
  class PerformanceMark extends PerformanceEntry {}
  class PerformanceMeasure extends PerformanceEntry {}
  const add = (entry) => {
    entries.push(entry);
    for (const one of observers) one._take(entry);
    return entry;
  };
  class Performance {
    now() { return (native.hrtime() - process._started()) / 1e6; }
    get timeOrigin() { return process._origin(); }
    mark(name, options) { return add(new PerformanceMark(`${name}`, 'mark', options?.startTime ?? this.now(), 0, options?.detail ?? null)); }
    measure(name, from, to) {
      let detail = null, duration;
      if (from !== null && typeof from === 'object') ({ start: from, end: to, detail = null, duration } = from);
      const at = (mark, otherwise) => {
        if (mark === undefined) return otherwise;
        if (typeof mark === 'number') return mark;
        const found = entries.findLast((one) => one.entryType === 'mark' && one.name === mark);
        if (!found) throw new (require('_events').DOMException)(`The "${mark}" performance mark has not been set`, 'SyntaxError');
        return found.startTime;
      };
      const start = at(from, 0);
      const end = duration !== undefined ? start + duration : at(to, this.now());
      return add(new PerformanceMeasure(`${name}`, 'measure', start, end - start, detail));
    }
    getEntries() { return [...entries].sort((one, other) => one.startTime - other.startTime); }
    getEntriesByName(name, type) { return this.getEntries().filter((one) => one.name === name && (type === undefined || one.entryType === type)); }
    getEntriesByType(type) { return this.getEntries().filter((one) => one.entryType === type); }
    clearMarks(name) { clear('mark', name); }
    clearMeasures(name) { clear('measure', name); }
    timerify(fn) { return fn; }
    eventLoopUtilization() { return { idle: 0, active: 0, utilization: 0 }; }
    get nodeTiming() { return { name: 'node', entryType: 'node', startTime: 0, duration: this.now() }; }
    toJSON() { return { timeOrigin: this.timeOrigin, nodeTiming: this.nodeTiming }; }
  }
  function clear(type, name) {
    for (let index = entries.length - 1; index >= 0; index--) if (entries[index].entryType === type && (name === undefined || entries[index].name === name)) entries.splice(index, 1);
  }
  class PerformanceObserver {
    #callback; #types = []; #queue = [];
    constructor(callback) { require('_errors').validate.function(callback, 'callback'); this.#callback = callback; }
    static get supportedEntryTypes() { return ['mark', 'measure']; }
    observe(options) { this.#types = options.entryTypes ?? [options.type]; observers.add(this); }
    disconnect() { observers.delete(this); }
    takeRecords() { return this.#queue.splice(0); }
    _take(entry) {
      if (!this.#types.includes(entry.entryType)) return;
      if (this.#queue.push(entry) === 1) require('timers').setImmediate(() => {
        const list = this.#queue.splice(0);
        if (list.length) this.#callback({ getEntries: () => list, getEntriesByName: (name) => list.filter((one) => one.name === name), getEntriesByType: (type) => list.filter((one) => one.entryType === type) }, this);
      });
    }
  }
  Object.assign(exports, { performance: new Performance(), Performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver, constants: {} });
  exports.monitorEventLoopDelay = () => { throw require('_errors').unsupported('monitorEventLoopDelay'); };
  exports.createHistogram = () => { throw require('_errors').unsupported('createHistogram'); };
})
