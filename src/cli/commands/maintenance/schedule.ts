/** `orch maintenance schedule`. */
import { toSeconds } from '../../../kernel/clock.js';
import { Fault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { parseDuration } from '../../duration.js';
import { requiredText, text } from '../../option.js';
import { parseAhead } from '../../when.js';
import { setWindow } from './set-window.js';

export const command = defineCommand({
  examples: [
    'orch maintenance schedule --from 2030-01-31T22:00:00+01:00 --for 4h --reason "new kernel"',
    'orch maintenance schedule --from 12h --until 2030-02-01 --reason "move of the rack"',
  ],
  detail: ['A date alone is its beginning in UTC; 12h is twelve hours from now.'],
  access: 'admin',
  options: {
    from: requiredText('TIME', 'when it begins: a date, RFC 3339, or how far ahead'),
    until: text('TIME', 'when it ends, in the same forms'),
    for: text('TIME', 'how long instead, such as 30m, 2h or 1d'),
    reason: requiredText('TEXT', 'what is being done'),
  },
  run: async (context, { from, until, for: span, reason }) => {
    const now = context.clock.now();
    const starts_at = secondsOf(parseAhead(from, '--from', now));
    if ((until === undefined) === (span === undefined)) {
      throw new Fault('usage', 'say when it ends with one of --until and --for');
    }
    const ends_at =
      span === undefined
        ? secondsOf(parseAhead(until ?? '', '--until', now))
        : starts_at + parseDuration(span, '--for');
    if (ends_at <= starts_at) throw new Fault('usage', '--until has to be after --from');
    return setWindow(context, { reason, starts_at, ends_at });
  },
});

const secondsOf = (timestamp: string): number => toSeconds(Date.parse(timestamp));
