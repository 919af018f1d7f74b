/** What is done to units: commands that take many units at once. */
import type { RunStep } from './host.js';

/** Longer than systemd gives a unit to stop and to start again, unless its file says otherwise. */
const TIMEOUT_SECS = 300;

export const RELOAD_UNIT_FILES: RunStep = { do: 'run', command: { argv: ['systemctl', 'daemon-reload'] } };

export type Verb = 'start' | 'stop' | 'try-restart' | 'try-reload-or-restart' | 'enable' | 'disable';

export const unitStep = (verb: Verb, unit: string): RunStep => ({
  do: 'run',
  command: { argv: ['systemctl', verb, '--'], timeoutSecs: TIMEOUT_SECS },
  items: [unit],
});

/** A simple service is started when its process is; this fails when that is dead already. For one unit: of many, one would do. */
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
