/** `orch maintenance start`. */
import { toSeconds } from '../../../kernel/clock.js';
import { Fault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { parseDuration } from '../../duration.js';
import { requiredText, text } from '../../option.js';
import { parseAhead } from '../../when.js';
import { setWindow } from './set-window.js';

export const command = defineCommand({
  examples: [
    'orch maintenance start --for 2h --reason "new switch in rack 3"',
    'orch maintenance start --ends-at 2030-01-31T22:00:00+01:00 --reason "move of the rack"',
  ],
  detail: [
    'While a window is active no drift check starts by itself and no channel is sent to; notifications are kept, and can be',
    'read with "orch notifications". Plans, applies and drift checks that somebody asks for go on.',
  ],
  access: 'admin',
  options: {
    for: text('TIME', 'how long, such as 30m, 2h or 1d'),
    endsAt: text('TIME', 'when it ends instead: a date, RFC 3339, or how far ahead'),
    reason: requiredText('TEXT', 'what is being done'),
  },
  run: async (context, { reason, for: span, endsAt }) => {
    if ((span === undefined) === (endsAt === undefined)) {
      throw new Fault('usage', 'say when it ends with one of --for and --ends-at');
    }
    const now = context.clock.now();
    const starts_at = toSeconds(now);
    const ends_at =
      endsAt === undefined
        ? starts_at + parseDuration(span ?? '', '--for')
        : toSeconds(Date.parse(parseAhead(endsAt, '--ends-at', now)));
    return setWindow(context, { reason, starts_at, ends_at });
  },
});
