/** What is done to units: commands that take many units at once. */
import type { RunStep } from '../host.js';

/** Longer than systemd gives a unit to stop and to start again, unless its file says otherwise. */
const TIMEOUT_SECS = 300;

export const RELOAD_UNIT_FILES: RunStep = { do: 'run', command: { argv: ['systemctl', 'daemon-reload'] } };

export type Verb = 'start' | 'restart' | 'stop' | 'try-restart' | 'try-reload-or-restart' | 'enable' | 'disable';

export const unitStep = (verb: Verb, unit: string): RunStep => ({
  do: 'run',
  command: { argv: ['systemctl', verb, '--'], timeoutSecs: TIMEOUT_SECS },
  items: [unit],
});

/**
 * Where systemd calls a service started as soon as it has a process, half a second shows whether that stays: one that cannot
 * read its configuration or have its port ends within that.
 */
export const SETTLE: RunStep = { do: 'run', command: { argv: ['sleep', '0.5'] } };

/** Fails when a unit that was started does not run any more. For one unit: of many, one would do. */
export const seeActive = (unit: string): RunStep => ({
  do: 'run',
  command: { argv: ['systemctl', 'is-active', '--', unit] },
});

/** What ended with another status than systemd hoped for is not listed as failed any longer; it may be forgotten already. */
export const forgetFailure = (unit: string): RunStep => ({
  do: 'run',
  command: { argv: ['systemctl', 'reset-failed', '--'] },
  items: [unit],
  ok: [0, 1],
});
