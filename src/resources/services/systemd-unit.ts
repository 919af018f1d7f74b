import { type CommandResult, commandFailure, exitedWith, lastLines } from '../command.js';
import type { Host, RunStep } from '../host.js';
import type { CommandRefusal, StepVerdict } from '../kind.js';

/** What systemd says of units, as `systemctl show` prints it. */

/** A unit as systemd knows it; texts as it writes them, empty where it says nothing. */
export interface Unit {
  /** The unit's own name, where it was asked for by an alias. */
  readonly id: string;
  /** `loaded`, `not-found`, `masked`, `bad-setting`, `error`, … */
  readonly load: string;
  readonly loadError: string;
  /** `active`, `reloading`, `inactive`, `failed`, `activating`, `deactivating`, … */
  readonly active: string;
  readonly sub: string;
  /** Why it has ended: `success`, `exit-code`, `timeout`, … */
  readonly result: string;
  readonly type: string;
  readonly remainsAfterExit: boolean;
  /** `enabled`, `disabled`, `static`, `masked`, … */
  readonly enablement: string;
  readonly path: string;
  /** The unit file or one of its drop-ins was changed since it was loaded. */
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

/** Asks for all units at once. */
export const showCommand = (units: readonly string[]): readonly [string, ...string[]] => [
  'systemctl',
  'show',
  `--property=${PROPERTIES.join(',')}`,
  '--',
  ...units,
];

/** One unit for each that was asked for, in that order; fewer when systemd stopped at one that it refuses. */
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

/** The sentence of `org.freedesktop.systemd1.NoSuchUnit "Unit x.service not found."`. */
const sentenceOf = (error: string): string => /^\S+ "(.*)"$/.exec(error)?.[1] ?? error;

/** Running means active; what systemd reloads runs all the while. */
export const isUp = ({ active }: Unit): boolean => ['active', 'reloading', 'refreshing'].includes(active);

/** What has failed does not run. What is on its way up or down, or waits to be started again, is neither up nor down. */
export const isDown = ({ active }: Unit): boolean => ['inactive', 'failed'].includes(active);

/** Its state for people. */
export function stateOf(unit: Unit): string {
  if (isUp(unit)) return 'running';
  if (unit.active === 'failed') return 'failed';
  return isDown(unit) ? 'stopped' : `${unit.active} (${unit.sub})`;
}

/** True when it has failed and systemd is about to start it again, which a start would only wait for. */
export const isWaiting = ({ sub }: Unit): boolean => sub.startsWith('auto-restart');

/** Why it does not run, when it has failed by itself. */
export function troubleOf(unit: Unit): string | null {
  return unit.active === 'failed' || isWaiting(unit) ? `${unit.id} has failed (${unit.result})` : null;
}

/** Says why systemd could not start, stop or reload a unit: what it makes of it, and the last lines of its log. */
const LOG_LINES = 10;

/** Commands that fail because of the unit itself. */
const ABOUT_UNIT = new Set(['start', 'restart', 'stop', 'try-restart', 'try-reload-or-restart', 'is-active']);

export async function explainUnit(
  host: Host,
  name: string,
  { command }: RunStep,
  result: CommandResult,
): Promise<CommandRefusal> {
  const failure = commandFailure(command, result);
  const verb = command.argv[1] ?? '';
  if (result.end.how !== 'exited' || !ABOUT_UNIT.has(verb)) return failure;
  const shown = await host.run({ argv: showCommand([name]) });
  const [unit] = parseUnits(shown.stdout);
  if (!unit) return failure;
  const lines = await logOf(host, unit.id);
  return { code: 'service_failed', message: [failureSentence(unit, verb, failure), lines].filter(Boolean).join('\n') };
}

/** Units as systemctl names them in its messages. */
const NAMED = /[\w@:\\.-]+\.(?:service|socket|timer|path|mount|automount|swap|target|slice|scope|device)\b/g;

/** Of a command for several units that has failed: systemctl names those that it failed for, and has done the others. */
export async function judgeUnit(host: Host, name: string, step: RunStep, result: CommandResult): Promise<StepVerdict> {
  const verb = step.command.argv[1] ?? '';
  if (!ABOUT_UNIT.has(verb) || step.items === undefined || result.end.how !== 'exited') return 'undone';
  const named = new Set(result.stderr.match(NAMED));
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
  // What systemd has not even tried, such as for want of another unit, has nothing to say in its log.
  const said = unit.active === 'inactive' ? `: ${message}` : '';
  return `${unit.id} could not be started: it is ${state}${why}${said}`;
}

/** Empty where there is no journal. */
async function logOf(host: Host, unit: string): Promise<string> {
  // What the unit wrote last may be on its way to the journal still.
  await host.run({ argv: ['journalctl', '--sync'], timeoutSecs: 10 });
  const log = await host.run({
    argv: ['journalctl', `--unit=${unit}`, `--lines=${LOG_LINES}`, '--output=cat', '--no-pager', '--quiet'],
    timeoutSecs: 30,
  });
  return exitedWith(log, 0) ? lastLines({ stdout: log.stdout, stderr: '' }, LOG_LINES) : '';
}
