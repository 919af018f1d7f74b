/** The machine's log of logins, which a machine need not have. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { writeAuthLog } from '../../../src/agent/terminal/auth-log.js';
import { until } from '../../support/orch.js';
import { place } from '../support/place.js';

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
  writeAuthLog('terminal opened', place());
  await new Promise((resolve) => setTimeout(resolve, 100));
});
