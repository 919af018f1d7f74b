/** The two unit files of a timer: the service that runs, and when it does. */
import type { TimerBody } from './systemd-timer-body.js';
import { literal, MARKER, setting, unitFileText } from './systemd-unit-file.js';

/** Returns the file of the service. */
export const timerServiceText = (body: TimerBody): string =>
  unitFileText({
    name: body.name,
    description: body.description ?? null,
    exec_start: commandLine(body.command),
    type: 'oneshot',
    user: body.user ?? null,
    group: body.group ?? null,
    working_directory: body.working_directory ?? null,
    environment: body.environment ?? null,
    isStartedByAnother: true,
  });

/** Returns the file of the timer; equal bodies have equal texts. */
export function timerText(body: TimerBody): string {
  const lines = [
    MARKER,
    '[Unit]',
    setting('Description', body.description, literal),
    '',
    '[Timer]',
    setting('OnCalendar', body.on_calendar),
    setting('OnBootSec', body.on_boot),
    // The first run comes after one interval too, counted from the start of the timer.
    setting('OnActiveSec', body.every),
    setting('OnUnitActiveSec', body.every),
    // systemd may otherwise be a minute late, which is too much for short intervals.
    setting('AccuracySec', body.every == null ? null : '1s'),
    setting('RandomizedDelaySec', body.randomized_delay),
    body.persistent === true ? 'Persistent=yes' : null,
    '',
    '[Install]',
    'WantedBy=timers.target',
  ];
  return `${lines.filter((line) => line !== null).join('\n')}\n`;
}

/** Returns the command line as systemd reads it. A text is one already; each word of a list becomes one argument as it is. */
const commandLine = (command: string | readonly string[]): string =>
  typeof command === 'string' ? command : command.map(argument).join(' ');

const argument = (word: string): string =>
  /^[A-Za-z0-9_./:=@,+-]+$/.test(word)
    ? word
    : `"${literal(word)
        .replaceAll('$', () => '$$')
        .replaceAll('\\', '\\\\')
        .replaceAll('"', '\\"')}"`;
