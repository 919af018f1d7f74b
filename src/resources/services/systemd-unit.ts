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
