/** Renamed files that count as durable: their directory is synced too, or a power cut brings the earlier one back. */
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { needs, place, run } from '../support/agent.js';
import { isInstalled } from '../support/is-installed.js';

const DIST = new URL('../../dist/src/', import.meta.url).href;

const writers = {
  'the record of an upgrade': `
    const { writeUpgrade } = await import('${DIST}agent/upgrade/upgrade-record.js');
    writeUpgrade(directory, { format: 1, upgrade_id: 'x', version: '1', state: 'failed', waits_for: null, error: null, trial: null });`,
  'a unit file': `
    const { startUnit } = await import('${DIST}service/unit-files.js');
    await startUnit({ systemctl: async () => '', places: { own: directory, packaged: '/nowhere' } }, 'x.service', 'text');`,
};

it.for(Object.entries(writers))('%s', ([, writer], context) => {
  needs(context, process.platform === 'linux' && isInstalled('strace'), 'strace');
  const directory = realpathSync(place());
  const log = join(place(), 'calls');
  const program = `const directory = ${JSON.stringify(directory)}; ${writer}`;
  const words = ['-f', '-qq', '-y', '-o', log, '-e', 'trace=rename,fsync'];
  const { status, stderr } = run('strace', ...words, process.execPath, '--input-type=module', '-e', program);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const calls = readFileSync(log, 'utf8').split('\n');
  const renamed = calls.findIndex((line) => line.includes('rename(') && line.includes(directory));
  expect(renamed).toBeGreaterThan(0);
  expect(calls[renamed - 1]).toContain(`<${directory}/`);
  expect(calls.slice(renamed).join('\n')).toMatch(new RegExp(`fsync\\(\\d+<${directory}>\\)`));
});
