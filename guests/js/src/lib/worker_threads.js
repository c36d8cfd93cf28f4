// worker_threads: there is one thread.
(function (exports, require, module, native) {
  'use strict';
  const { MessageChannel, MessagePort, BroadcastChannel } = require('_events');
  class Worker {
    constructor() {
      throw require('_errors').unsupported('Worker', 'is not available in this sandbox: a script has one thread; use child_process for work beside it');
    }
  }
  Object.assign(exports, { Worker, isMainThread: true, parentPort: null, workerData: null, threadId: 0, resourceLimits: {}, SHARE_ENV: Symbol.for('nodejs.worker_threads.SHARE_ENV'), MessageChannel, MessagePort, BroadcastChannel });
  exports.markAsUntransferable = () => {};
  exports.moveMessagePortToContext = () => { throw require('_errors').unsupported('moveMessagePortToContext'); };
  exports.receiveMessageOnPort = () => undefined;
  exports.getEnvironmentData = () => undefined;
  exports.setEnvironmentData = () => {};
})
