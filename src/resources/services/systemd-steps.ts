/** The commands that change units of systemd. */
import type { RunStep } from '../host.js';

/** Longer than systemd's default limits for a stop and a start. */
const TIMEOUT_SECS = 300;

export const RELOAD_UNIT_FILES: RunStep = { do: 'run', command: { argv: ['systemctl', 'daemon-reload'] } };

/** Commands of systemctl about one unit. */
export type Verb =
  | ('start' | 'restart' | 'stop' | 'try-restart' | 'try-reload-or-restart')
  | ('enable' | 'disable' | 'reenable' | 'mask' | 'unmask');

/** Links a unit file elsewhere again, whose link `disable` has deleted. */
export const linkAgain = (path: string): RunStep => ({
  do: 'run',
  command: { argv: ['systemctl', 'link', '--'], timeoutSecs: TIMEOUT_SECS },
  items: [path],
});

/** Returns the step that runs `systemctl VERB FLAGS -- UNIT`. */
export const unitStep = (verb: Verb, unit: string, ...flags: readonly string[]): RunStep => ({
  do: 'run',
  command: { argv: ['systemctl', verb, ...flags, '--'], timeoutSecs: TIMEOUT_SECS },
  items: [unit],
});

/** Returns the step for the unit that the agent runs in. systemd stops the agent meanwhile, so the agent must not wait for it. */
export function ownStep(verb: Verb, unit: string): RunStep {
  const step = unitStep(verb, unit);
  if (!verb.endsWith('restart')) return step;
  return { ...step, command: { ...step.command, argv: ['systemctl', '--no-block', verb, '--'] }, isDeferred: true };
}

/**
 * Waits half a second, because systemd reports some services as started as soon as they have a process. A service that cannot
 * read its configuration or open its port ends within that time.
 */
export const SETTLE: RunStep = { do: 'run', command: { argv: ['sleep', '0.5'] } };

/** Fails when a started unit no longer runs. Takes a single unit, because with several one active unit suffices. */
export const seeActive = (unit: string): RunStep => ({
  do: 'run',
  command: { argv: ['systemctl', 'is-active', '--', unit] },
});

/** Removes a stopped unit from the list of failed ones; it may be unknown already. */
export const forgetFailure = (unit: string): RunStep => ({
  do: 'run',
  command: { argv: ['systemctl', 'reset-failed', '--'] },
  items: [unit],
  ok: [0, 1],
});
