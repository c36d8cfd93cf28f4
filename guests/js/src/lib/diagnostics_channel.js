(function (exports, require, module, native) {
  'use strict';
  const channels = new Map();
  class Channel {
    #subscribers = [];
    constructor(name) { this.name = name; }
    get hasSubscribers() { return this.#subscribers.length > 0; }
    subscribe(fn) { this.#subscribers.push(fn); }
    unsubscribe(fn) {
      const index = this.#subscribers.indexOf(fn);
      if (index >= 0) this.#subscribers.splice(index, 1);
      return index >= 0;
    }
    publish(message) { for (const fn of [...this.#subscribers]) fn(message, this.name); }
    runStores(context, fn, self, ...args) { this.publish(context); return fn.apply(self, args); }
  }
  exports.Channel = Channel;
  exports.channel = (name) => { if (!channels.has(name)) channels.set(name, new Channel(name)); return channels.get(name); };
  exports.hasSubscribers = (name) => channels.get(name)?.hasSubscribers ?? false;
  exports.subscribe = (name, fn) => exports.channel(name).subscribe(fn);
  exports.unsubscribe = (name, fn) => exports.channel(name).unsubscribe(fn);
})
