// node --test: each file in a process of its own, one after the other.
(function (exports, require, module, native) {
  'use strict';
  const fs = require('fs');
  const path = require('path');
  const process = require('process');
  const { spawnSync } = require('child_process');

  const NAME = /(?:^test|^test-.+|.+[.\-_]test)\.[cm]?[jt]s$/;
  function find(directory, inTest) {
    const out = [];
    for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
      const full = path.join(directory, entry.name);
      if (entry.isDirectory()) {
        if (entry.name !== 'node_modules' && !entry.name.startsWith('.')) out.push(...find(full, inTest || entry.name === 'test'));
      } else if ((inTest && /\.[cm]?js$/.test(entry.name)) || NAME.test(entry.name)) out.push(full);
    }
    return out;
  }

  exports.run = (given, own) => {
    const files = given.length ? given.flatMap((one) => (fs.statSync(one).isDirectory() ? find(path.resolve(one), true) : [path.resolve(one)])) : find(process.cwd(), false);
    let failed = 0;
    const totals = new Map();
    process.stdout.write('TAP version 13\n');
    let number = 0;
    const options = [...(own.testOnly ? ['--test-only'] : []), ...(own.testPatterns ?? []).flatMap((one) => ['--test-name-pattern', one])];
    for (const file of files) {
      const result = spawnSync(process.execPath, [...options, file], { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8', maxBuffer: 64 << 20 });
      const lines = result.stdout.split('\n').filter((line) => line !== 'TAP version 13' && line !== '');
      const isTap = result.stdout.startsWith('TAP version 13');
      for (const line of lines) {
        const total = /^# (tests|suites|pass|fail|cancelled|skipped|todo) (\d+)$/.exec(line);
        if (isTap && total) totals.set(total[1], (totals.get(total[1]) ?? 0) + Number(total[2]));
        else if (isTap && (/^# duration_ms/.test(line) || /^1\.\.\d+$/.test(line))) continue;
        else if (isTap) process.stdout.write(`${line.replace(/^(not ok|ok) \d+ /, (all, word) => `${word} ${++number} `)}\n`);
        else process.stdout.write(`# ${line}\n`);
      }
      if (!isTap) {
        number++;
        process.stdout.write(`${result.status === 0 ? 'ok' : 'not ok'} ${number} - ${path.relative(process.cwd(), file)}\n`);
        for (const key of ['tests', result.status === 0 ? 'pass' : 'fail']) totals.set(key, (totals.get(key) ?? 0) + 1);
      }
      if (result.status !== 0) failed++;
    }
    process.stdout.write(`1..${number}\n`);
    for (const key of ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo']) process.stdout.write(`# ${key} ${totals.get(key) ?? 0}\n`);
    if (failed) process.exitCode = 1;
  };
})
