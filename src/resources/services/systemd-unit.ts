/** The state of systemd units, as `systemctl show` prints it, and explanations of failed commands. */

import type { CommandRefusal } from '../command.js';
import { type CommandResult, commandFailure, exitedWith, lastLines } from '../command.js';
import type { Host, RunStep } from '../host.js';
import type { StepVerdict } from '../kind.js';

/** A unit in systemd; texts as systemd prints them, or empty. */
export interface Unit {
  /** The unit's own name, even if it was queried by an alias. */
  readonly id: string;
  /** `loaded`, `not-found`, `masked`, `bad-setting`, `error`, … */
  readonly load: string;
  readonly loadError: string;
  /** `active`, `reloading`, `inactive`, `failed`, `activating`, `deactivating`, … */
  readonly active: string;
  readonly sub: string;
  /** Result of its last run: `success`, `exit-code`, `timeout`, … */
  readonly result: string;
  readonly type: string;
  readonly remainsAfterExit: boolean;
  /** `enabled`, `disabled`, `static`, `masked`, … */
  readonly enablement: string;
  readonly path: string;
  /** True when the unit file or a drop-in has changed since it was loaded. */
  readonly isStale: boolean;
  readonly canReload: boolean;
}

const PROPERTIES = [
  'Id',
  'LoadState',
  'LoadError',
  'ActiveState',
  'SubState',
  'Result',
  'Type',
  'RemainAfterExit',
  'UnitFileState',
  'FragmentPath',
  'NeedDaemonReload',
  'CanReload',
] as const;

/** Returns the query for all units. */
export const showCommand = (units: readonly string[]): readonly [string, ...string[]] => [
  'systemctl',
  'show',
  `--property=${PROPERTIES.join(',')}`,
  '--',
  ...units,
];

/** Returns the query for the units' own names. */
export const showIdsCommand = (units: readonly string[]): readonly [string, ...string[]] => [
  'systemctl',
  'show',
  '--property=Id',
  '--',
  ...units,
];

/** Returns the queried units in order; fewer when systemd stopped at an invalid name. */
export function parseUnits(stdout: string): readonly Unit[] {
  return stdout
    .split(/\n{2,}/)
    .map((block) => block.trim())
    .filter((block) => block !== '')
    .map(parseUnit);
}

function parseUnit(block: string): Unit {
  const values = new Map<string, string>();
  for (const line of block.split('\n')) {
    const at = line.indexOf('=');
    if (at > 0) values.set(line.slice(0, at), line.slice(at + 1));
  }
  const value = (name: (typeof PROPERTIES)[number]): string => values.get(name) ?? '';
  return {
    id: value('Id'),
    load: value('LoadState'),
    loadError: sentenceOf(value('LoadError')),
    active: value('ActiveState'),
    sub: value('SubState'),
    result: value('Result'),
    type: value('Type'),
    remainsAfterExit: value('RemainAfterExit') === 'yes',
    enablement: value('UnitFileState'),
    path: value('FragmentPath'),
    isStale: value('NeedDaemonReload') === 'yes',
    canReload: value('CanReload') === 'yes',
  };
}

/** Extracts the sentence from `org.freedesktop.systemd1.NoSuchUnit "Unit x.service not found."`. */
const sentenceOf = (error: string): string => /^\S+ "(.*)"$/.exec(error)?.[1] ?? error;

/** True for an active unit, also during a reload. */
export const isUp = ({ active }: Unit): boolean => ['active', 'reloading', 'refreshing'].includes(active);

/** True for a stopped or failed unit. A unit in transition, or waiting for a restart, is neither up nor down. */
export const isDown = ({ active }: Unit): boolean => ['inactive', 'failed'].includes(active);

/** Returns the state for display. */
export function stateOf(unit: Unit): string {
  if (isUp(unit)) return 'running';
  if (unit.active === 'failed') return 'failed';
  return isDown(unit) ? 'stopped' : `${unit.active} (${unit.sub})`;
}

/** True for a failed unit that systemd will restart itself; a `start` would only wait for that. */
export const isWaiting = ({ sub }: Unit): boolean => sub.startsWith('auto-restart');

/** Returns the failure of a unit, or null. */
export function failureOf(unit: Unit): string | null {
  return unit.active === 'failed' || isWaiting(unit) ? `${unit.id} has failed (${unit.result})` : null;
}

/** Lines of the unit's log in a message. */
const LOG_LINES = 10;

/** What systemd says to users who may not change its units. */
const DENIED = /^(?:Failed to .*: )?(?:Access denied|Interactive authentication required|Permission denied)/im;

/** Verbs that fail because of the unit itself. */
const ABOUT_UNIT = new Set(['start', 'restart', 'stop', 'try-restart', 'try-reload-or-restart', 'is-active']);

export async function explainUnit(
  host: Host,
  name: string,
  { command }: RunStep,
  result: CommandResult,
): Promise<CommandRefusal> {
  const failure = commandFailure(command, result);
  const verb = command.argv[1] ?? '';
  if (result.end.how === 'exited' && DENIED.test(result.stderr)) {
    const message = `this user may not change the unit ${name}; run the agent as root (${failure.message})`;
    return { code: 'permission_denied', message };
  }
  if (result.end.how !== 'exited' || !ABOUT_UNIT.has(verb)) return failure;
  const shown = await host.run({ argv: showCommand([name]) });
  const [unit] = parseUnits(shown.stdout);
  if (!unit) return failure;
  const lines = result.withheld === undefined ? await logOf(host, unit.id) : withheldLog(unit.id);
  return { code: 'service_failed', message: [failureSentence(unit, verb, failure), lines].filter(Boolean).join('\n') };
}

/** Returns the unit names in a message of systemctl. */
function unitsIn(text: string): ReadonlySet<string> {
  const words = text.split(/[^\w@:\\.-]/).map((word) => word.slice(0, endOfName(word)));
  return new Set(words.filter((word) => UNIT_SUFFIX.test(word)));
}

const UNIT_SUFFIX = /\.(?:service|socket|timer|path|mount|automount|swap|target|slice|scope|device)$/;

/** Returns the length of a word without the punctuation behind it. */
function endOfName(word: string): number {
  let end = word.length;
  while (end > 0 && '.:-'.includes(word.charAt(end - 1))) end -= 1;
  return end;
}

/** Judges one unit after a failed command for several: systemctl names the failed units and completes the others. */
export async function judgeUnit(host: Host, name: string, step: RunStep, result: CommandResult): Promise<StepVerdict> {
  const verb = step.command.argv[1] ?? '';
  if (!ABOUT_UNIT.has(verb) || step.items === undefined || result.end.how !== 'exited') return 'undone';
  const named = unitsIn(result.stderr);
  if (named.size === 0) return 'undone';
  return named.has(name) ? explainUnit(host, name, step, result) : 'done';
}

function failureSentence(unit: Unit, verb: string, { message }: CommandRefusal): string {
  if (unit.loadError !== '') return `systemd does not take the unit: ${unit.loadError}`;
  const state = `${unit.active}${unit.sub === unit.active ? '' : ` (${unit.sub})`}`;
  if (verb === 'try-reload-or-restart' && isUp(unit))
    return `${unit.id} could not be reloaded and runs as before: ${message}`;
  if (verb === 'stop' && !isDown(unit)) return `${unit.id} could not be stopped and is ${state}: ${message}`;
  const why = unit.result === 'success' || unit.result === '' ? '' : `, ${unit.result}`;
  if (verb === 'is-active') return `${unit.id} was started and does not run: it is ${state}${why}`;
  // A unit that systemd did not try to start has no entry in its log.
  const said = unit.active === 'inactive' ? `: ${message}` : '';
  return `${unit.id} could not be started: it is ${state}${why}${said}`;
}

const withheldLog = (unit: string): string =>
  `its log may hold secrets, so it is not shown; on the machine: journalctl --unit=${unit}`;

/** Returns the last lines of the unit's log; empty without a journal. */
async function logOf(host: Host, unit: string): Promise<string> {
  // The last output may not have reached the journal yet.
  await host.run({ argv: ['journalctl', '--sync'], timeoutSecs: 10 });
  const log = await host.run({
    argv: ['journalctl', `--unit=${unit}`, `--lines=${LOG_LINES}`, '--output=cat', '--no-pager', '--quiet'],
    timeoutSecs: 30,
  });
  return exitedWith(log, 0) ? lastLines({ stdout: log.stdout, stderr: '' }, LOG_LINES) : '';
}
