/** `orch maintenance start`. */
import { toSeconds } from '../../../kernel/clock.js';
import { defineCommand } from '../../define-command.js';
import { parseDuration } from '../../duration.js';
import { requiredText } from '../../option.js';
import { setWindow } from './set-window.js';

export const command = defineCommand({
  examples: ['orch maintenance start --for 2h --reason "new switch in rack 3"'],
  detail: [
    'While a window is active no drift check starts by itself and no channel is sent to; notifications are kept, and can be',
    'read with "orch notifications". Plans, applies and drift checks that somebody asks for go on.',
  ],
  access: 'admin',
  options: {
    for: requiredText('TIME', 'how long, such as 30m, 2h or 1d'),
    reason: requiredText('TEXT', 'what is being done'),
  },
  run: async (context, input) => {
    const starts_at = toSeconds(context.clock.now());
    return setWindow(context, {
      reason: input.reason,
      starts_at,
      ends_at: starts_at + parseDuration(input.for, '--for'),
    });
  },
});
