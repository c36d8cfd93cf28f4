(function (exports, require, module, native) {
  'use strict';
  const heap = () => native.heap();
  exports.getHeapStatistics = () => ({ total_heap_size: heap(), used_heap_size: heap(), heap_size_limit: 2 ** 32, total_available_size: 2 ** 32, malloced_memory: heap() });
  exports.getHeapSpaceStatistics = () => [];
  exports.setFlagsFromString = () => {};
  for (const name of ['serialize', 'deserialize', 'writeHeapSnapshot', 'getHeapSnapshot', 'takeCoverage', 'startupSnapshot']) {
    exports[name] = () => { throw require('_errors').unsupported(`v8.${name}`, 'is not available in this sandbox: the engine is QuickJS'); };
  }
})
