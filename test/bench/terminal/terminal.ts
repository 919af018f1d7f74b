/** Remote terminals, beside a terminal on this machine and OpenSSH. */
import type { Part } from '../row.js';
import { ECHO_ROWS, measureEcho } from './echo.js';
import { FAR_ROWS, measureFar } from './far.js';
import { FIRST_BYTE_ROWS, measureFirstByte } from './first-byte.js';
import { startFleet } from './fleet.js';
import { MANY_SESSIONS_ROWS, measureManySessions } from './many-sessions.js';
import { measurePrediction, PREDICTION_ROWS } from './prediction.js';
import { measureQuiet, QUIET_ROWS } from './quiet.js';
import { measureShortCommands, SHORT_COMMANDS_ROWS } from './short-commands.js';
import { startSshd } from './sshd.js';
import { LIMIT, targetsOf } from './targets.js';
import { measureThroughput, THROUGHPUT_ROWS } from './throughput.js';

export const terminal: Part = {
  name: 'terminal',
  summary:
    'remote terminals: echo, predicted keys, throughput, start, Ctrl-C, many sessions, nothing lost; beside OpenSSH',
  run: async ({ say, missing, measure, shared }) => {
    const fleet = shared(startFleet, (made) => made.stop());
    // OpenSSH is the limit that the goals name, so it is measured without other peers too.
    const sshd = shared(
      () => startSshd((reason) => missing('ssh', reason)),
      async (made) => made?.stop(),
    );
    const targets = async () => targetsOf(await fleet(), await sshd());
    // First, as memory that was freed before would be taken again.
    await measure(MANY_SESSIONS_ROWS, async () => measureManySessions(await fleet(), await targets(), say));
    await measure(ECHO_ROWS, async () => measureEcho(await targets()));
    await measure(FIRST_BYTE_ROWS, async () =>
      measureFirstByte((await targets()).filter(({ name }) => name !== LIMIT)),
    );
    await measure(QUIET_ROWS, async () => measureQuiet(await targets()));
    await measure(FAR_ROWS, async () => measureFar(await fleet(), await sshd()));
    await measure(THROUGHPUT_ROWS, async () => measureThroughput(await targets()));
    await measure(PREDICTION_ROWS, async () => measurePrediction(await fleet()));
    await measure(SHORT_COMMANDS_ROWS, async () => measureShortCommands(await fleet()));
  },
};
