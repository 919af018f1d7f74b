/** A secret that an earlier body has put on the machine is not shown when the body no longer names it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { apply, plan } from '../../../src/agent/converge.js';
import { Journal } from '../../../src/agent/journal.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { clock, content, file, host, place, resultAt } from '../../support/agent.js';

const SECRET = 'hunter2-long';

/** With a journal as the agent has it; `dies` loses what is known after the change. */
function machine(dataDir = place()) {
  let journal = new Journal(dataDir);
  return {
    plan: (resource: DesiredResource) => plan(content([resource]), host(), { clock, ledger: journal }),
    apply: (resource: DesiredResource, { dies = false } = {}) =>
      apply(content([resource]), host(), {
        clock,
        ledger: journal,
        intend: (_intents, precautions) => {
          journal.recordPrecautions(precautions);
          journal.sync();
        },
        onResults: (_items, notes) => {
          if (dies) return;
          journal.recordNotes(notes);
          journal.sync();
        },
      }),
    restart: () => {
      journal.close();
      journal = new Journal(dataDir);
    },
  };
}

it.each([false, true])(
  'is masked in the plan and the apply that take it away, and then forgotten (crash: %s)',
  async (dies) => {
    const path = join(place(), 'f');
    const text = `a\npw=${SECRET}\nb\n`;
    const span = { start: 5, end: 5 + SECRET.length, secret: 'PW', tag: 'ab12' };
    const before = file(path, { content: text }, { taint: { '/content': [span] } });
    const after = file(path, { content: 'a\nb\n' });
    const { plan: planned, apply: applied, restart } = machine();
    await applied(before, { dies });
    restart();
    const foretold = await planned(after);
    const changed = await applied(after);
    for (const { results } of [foretold, changed]) {
      expect(JSON.stringify(results)).not.toContain(SECRET);
      expect(resultAt(results, 0)).toMatchObject({ sensitive: true });
      expect(resultAt(results, 0).diff).toContain('-‹masked line›\n');
    }
    expect(readFileSync(path, 'utf8')).toBe('a\nb\n');
    restart();
    expect(resultAt((await planned(file(path, { content: 'c\n' }))).results, 0)).toMatchObject({ sensitive: false });
  },
);
