/** The rest of a creation that failed is orch's own: it does not count as there before. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { apply } from '../../../src/agent/converge.js';
import { Journal } from '../../../src/agent/journal.js';
import type { Host } from '../../../src/resources/host.js';
import { clock, content, file, host, place } from '../../support/agent.js';

/** A machine whose steps fail, with or without having been done. */
function failing(isDone: boolean): Host {
  const real = host();
  return {
    platform: 'linux',
    accounts: () => real.accounts(),
    observe: (requests) => real.observe(requests),
    run: (command) => real.run(command),
    commit: async (steps) => {
      if (isDone) await real.commit(steps);
      return steps.map(() => ({ code: 'apply_failed', message: 'it failed' }));
    },
  };
}

it.each([
  [true, false],
  [false, true],
])('is told by whether something was left (left: %s)', async (isLeft, existed) => {
  const path = join(place(), 'f');
  const dataDir = place();
  let journal = new Journal(dataDir);
  const applied = async (machine: Host) => {
    const outcome = await apply(content([file(path)]), machine, {
      clock,
      ledger: journal,
      intend: (_intents, precautions) => {
        journal.recordPrecautions(precautions);
        journal.sync();
      },
      onResults: (_items, notes) => {
        journal.recordNotes(notes);
        journal.sync();
      },
    });
    journal.close();
    journal = new Journal(dataDir);
    return outcome.results[0];
  };
  expect(await applied(failing(isLeft))).toMatchObject({
    existed: isLeft ? false : null,
    result: { status: 'failed' },
  });
  expect(existsSync(path)).toBe(isLeft);
  // It is made by hand where orch did not.
  if (!isLeft) writeFileSync(path, 'x');
  expect(await applied(host())).toMatchObject({ existed, result: { status: 'unchanged' } });
  expect(await applied(host())).toMatchObject({ existed: true, result: { status: 'unchanged' } });
});
