(function (exports, require, module, native) {
  'use strict';
  const process = require('process');
  const read = (file) => { try { return require('fs').readFileSync(file, 'utf8'); } catch { return ''; } };
  const { ERRNOS } = require('_errors');

  exports.EOL = '\n';
  exports.devNull = '/dev/null';
  exports.arch = () => process.arch;
  exports.platform = () => process.platform;
  exports.type = () => 'Linux';
  exports.machine = () => process.arch;
  exports.release = () => read('/proc/sys/kernel/osrelease').trim() || '6.1.0';
  exports.version = () => read('/proc/sys/kernel/version').trim() || '#1';
  exports.hostname = () => read('/proc/sys/kernel/hostname').trim() || read('/etc/hostname').trim() || process.env.HOSTNAME || 'localhost';
  exports.homedir = () => process.env.HOME ?? exports.userInfo().homedir;
  exports.tmpdir = () => (process.env.TMPDIR ?? process.env.TMP ?? process.env.TEMP ?? '/tmp').replace(/(.)\/$/, '$1');
  exports.endianness = () => 'LE';
  exports.uptime = () => Number(read('/proc/uptime').split(' ')[0]) || 0;
  exports.loadavg = () => (read('/proc/loadavg').split(' ').slice(0, 3).map(Number).concat(0, 0, 0)).slice(0, 3);
  const memory = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(read('/proc/meminfo'))?.[1] ?? 0) * 1024;
  exports.totalmem = () => memory('MemTotal');
  exports.freemem = () => memory('MemAvailable') || memory('MemFree');
  exports.cpus = () => {
    const count = read('/proc/cpuinfo').match(/^processor\s*:/gm)?.length ?? 1;
    return Array.from({ length: count }, () => ({ model: 'wasm32', speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }));
  };
  exports.availableParallelism = () => exports.cpus().length;
  exports.networkInterfaces = () => ({ lo: [{ address: '127.0.0.1', netmask: '255.0.0.0', family: 'IPv4', mac: '00:00:00:00:00:00', internal: true, cidr: '127.0.0.1/8' }] });
  exports.userInfo = () => {
    const uid = native.uid();
    const line = read('/etc/passwd').split('\n').map((one) => one.split(':')).find((one) => Number(one[2]) === uid) ?? [];
    return { uid, gid: native.gid(), username: line[0] ?? process.env.USER ?? 'user', homedir: line[5] ?? process.env.HOME ?? '/', shell: line[6] ?? '/bin/sh' };
  };
  exports.getPriority = () => 0;
  exports.setPriority = () => { throw require('_errors').unsupported('os.setPriority'); };
  exports.constants = Object.assign(Object.create(null), {
    UV_UDP_REUSEADDR: 4, dlopen: Object.create(null), errno: Object.fromEntries(ERRNOS.map(([name, number]) => [name, number])), signals: process._kSignals,
    priority: { PRIORITY_LOW: 19, PRIORITY_BELOW_NORMAL: 10, PRIORITY_NORMAL: 0, PRIORITY_ABOVE_NORMAL: -7, PRIORITY_HIGH: -14, PRIORITY_HIGHEST: -20 },
  });
})
