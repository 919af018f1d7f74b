/** The machine's log of logins, which a machine need not have. */
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { writeAuthLog } from '../../../src/agent/terminal/create-terminals.js';
import { place } from '../../support/agent.js';
import { until } from '../../support/orch.js';

const built = new URL('../../../dist/src/agent/terminal/create-terminals.js', import.meta.url).href;

it('is written by the program of the system, as one line without anything that could forge another', async () => {
  const directory = place();
  const written = join(directory, 'written');
  writeFileSync(
    join(directory, 'logger'),
    `#!/bin/sh\nprintf '<%s>' "$@" > '${written}.new'; mv '${written}.new' '${written}'\n`,
  );
  chmodSync(join(directory, 'logger'), 0o755);
  writeAuthLog('terminal opened by operator a\nda\x1b[2J -x', `${directory}:/usr/bin:/bin`);
  await until(() => existsSync(written), 'it is written');
  expect(readFileSync(written, 'utf8')).toBe(
    '<-p><authpriv.notice><-t><orch><--><terminal opened by operator a?da?[2J -x>',
  );
});

it('does not matter when there is none', async () => {
  const directory = place();
  const program = [
    `import { writeAuthLog } from ${JSON.stringify(built)};`,
    `writeAuthLog('terminal opened', ${JSON.stringify(directory)});`,
    // An error that nothing listens for would end the process before.
    `process.on('exit', (status) => process.stdout.write('ended with ' + status));`,
  ];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    ...['--input-type=module', '--eval', program.join('\n')],
  ]);
  expect({ stdout, stderr }).toEqual({ stdout: 'ended with 0', stderr: '' });
});
