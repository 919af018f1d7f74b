/** Remote terminals, beside a terminal on this machine and OpenSSH. */
import type { Part, Row } from '../row.js';
import { measureEcho } from './echo.js';
import { measureFirstByte } from './first-byte.js';
import { startFleet } from './fleet.js';
import { measureManySessions } from './many-sessions.js';
import { measurePrediction } from './prediction.js';
import { measureQuiet } from './quiet.js';
import { measureShortCommands } from './short-commands.js';
import { startSshd } from './sshd.js';
import { LIMIT, targetsOf } from './targets.js';
import { measureThroughput } from './throughput.js';

export const terminal: Part = {
  name: 'terminal',
  summary:
    'remote terminals: echo, predicted keys, throughput, start, Ctrl-C, many sessions, nothing lost; beside OpenSSH',
  run: async ({ say, only = '' }) => {
    // OpenSSH is the limit that the goals name, so it is asked for here without --peers.
    const sshd = await startSshd(say);
    const fleet = await startFleet();
    const targets = targetsOf(fleet, sshd);
    const rows: Row[] = [];
    const measure = async (what: string, run: () => Promise<readonly Row[]>): Promise<void> => {
      if (!what.includes(only)) return;
      say(`terminal: ${what}`);
      try {
        rows.push(...(await run()));
      } catch (error) {
        // The other measurements are worth having.
        say(`terminal: ${what} failed: ${error instanceof Error ? error.message : String(error)}`);
        rows.push({ what: `terminal: ${what}`, unit: '', ours: Number.NaN, beside: {}, goal: 'works', isMet: false });
      }
    };
    try {
      // First, as memory that was freed before would be taken again.
      await measure('many sessions', () => measureManySessions(fleet, targets, say));
      await measure('echo of keys', () => measureEcho(targets));
      await measure('from the command to the prompt', () =>
        measureFirstByte(targets.filter(({ name }) => name !== LIMIT)),
      );
      await measure('Ctrl-C under a flood', () => measureQuiet(targets));
      await measure('throughput', () => measureThroughput(targets));
      await measure('predicted keys', () => measurePrediction(fleet));
      await measure('short commands', () => measureShortCommands(fleet));
    } finally {
      await fleet.stop();
      await sshd?.stop();
    }
    return rows;
  },
};
