/** `orch serve accept-clock`. */
import { defineCommand } from '../../define-command.js';
import { formatDuration } from '../../format.js';
import type { ServeClock } from '../../programs.js';
import { type Line, lines } from '../../view.js';
import { storeFlags, storeOptions } from './store-options.js';

export const command = defineCommand({
  examples: ['orch serve accept-clock', 'orch serve accept-clock --data-dir /var/lib/orch --yes'],
  detail: [
    'Runs beside the orchestrator, on its host and as its user. When the clock of the host has jumped ahead by more than',
    'a week, the orchestrator deletes nothing for its age until the clock is right again or this command says that it',
    'is right, as after a long time out of use. It also ends the warning about events that lie ahead of the clock.',
    'Afterwards, data that is past its retention by this clock is deleted.',
  ],
  access: 'local',
  consent: true,
  options: storeOptions,
  run: async ({ programs, prompt, present }, which) => {
    const flags = storeFlags(which);
    const found = await programs.clock(flags, false);
    if (!found.waits && found.ahead_ms === 0) {
      return { body: { ...found, accepted: false }, names: [found.now], view: lines(nothingText(found)) };
    }
    await present(lines(...foundLines(found)));
    await prompt.consent(`Is ${found.now} the right time?`);
    const accepted = await programs.clock(flags, true);
    return {
      body: { ...accepted, accepted: true },
      names: [accepted.now],
      view: lines('The clock is taken as right from now on.'),
    };
  },
});

const nothingText = ({ now }: ServeClock): string => `The clock says ${now}, and there is nothing to accept.`;

function foundLines({ now, doubt_ms, waits, ahead_ms }: ServeClock): readonly Line[] {
  return [
    `The clock of the orchestrator says ${now}.`,
    ...(waits
      ? [
          `It is ${formatDuration(doubt_ms / 1000)} ahead of the time that the orchestrator has seen pass; nothing is deleted for its age.`,
        ]
      : []),
    ...(ahead_ms > 0 ? [`The audit log holds events from up to ${formatDuration(ahead_ms / 1000)} ahead of it.`] : []),
  ];
}
