/** Saves units of systemd: whether they start at boot and run, and the unit file that orch writes. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { commandFailure, exitedWith } from '../../resources/command.js';
import type { Host } from '../../resources/host.js';
import { timerUnits } from '../../resources/services/systemd-timer-plan.js';
import { unitNameOf, unitPath } from '../../resources/services/systemd-unit-file.js';
import { AGENT_UNIT } from '../../service/units.js';
import type { Keeper } from './keeper.js';
import type { SavedPath } from './saved-path.js';

interface SavedUnit {
  readonly unit: string;
  /** True if it existed. */
  readonly isLoaded: boolean;
  readonly isUp: boolean;
  /** `enabled`, `disabled`, `static`, … as systemd says. */
  readonly enablement: string;
  /** True for a masked unit that starts at boot once it is unmasked; its enablement does not tell. Missing in older snapshots. */
  readonly isWanted?: boolean;
  /** ID that systemd gives to each start; null when it was not running. */
  readonly invocation: string | null;
  /** The administrator's unit file; null if it cannot be restored. */
  readonly file: SavedPath | null;
}

/** Where the administrator's units are, and the links that start units at boot. */
const UNITS = '/etc/systemd/system';
const PROPERTIES = 'LoadState,ActiveState,UnitFileState,InvocationID';
/** Longer than systemd's default limits for a stop and a start. */
const TIMEOUT_SECS = 200;
const UP: readonly string[] = ['active', 'reloading', 'refreshing', 'activating'];

export const unitKeeper: Keeper<SavedUnit> = {
  async save(bodies, { host, paths }) {
    const names = bodies.map((body) => ('name' in body ? String(body.name) : ''));
    const files = await paths.save(names.map(unitPath));
    const saved: (SavedUnit | string)[] = [];
    for (const [at, name] of names.entries()) {
      const unit = unitNameOf(name);
      const now = await stateOf(host, unit);
      const file = files[at];
      saved.push(typeof now === 'string' ? now : { unit, ...now, file: typeof file === 'object' ? file : null });
    }
    return saved;
  },

  async restore(saved, phase, { host, paths }, action) {
    const { unit } = saved;
    if (phase === 'state') return saved.file === null ? null : paths.restore(saved.file);
    // The agent's own unit: whoever restores it is that unit, or starts it afterwards.
    const isSelf = unit === AGENT_UNIT;
    if (phase === 'stop') {
      if (isSelf) return null;
      const now = await stateOf(host, unit);
      if (typeof now === 'string' || !now.isLoaded) return null;
      const stopped = now.isUp && !saved.isUp ? await systemctl(host, 'stop', unit) : null;
      // A failure here must not keep the unit file from its place; the last phase reports it.
      await restoreLinks(host, saved, now);
      return stopped;
    }
    if (!saved.isLoaded) return null;
    const now = await stateOf(host, unit);
    if (typeof now === 'string') return now;
    const enabled = now.enablement === saved.enablement ? problemOfLinks(saved) : await restoreEnablement(host, saved);
    if (!saved.isUp || isSelf) return enabled;
    if (now.isUp && now.invocation === saved.invocation && action !== 'reload') return enabled;
    const verb = now.isUp && now.invocation === saved.invocation ? 'try-reload-or-restart' : 'restart';
    await systemctl(host, 'reset-failed', unit);
    return (await systemctl(host, verb, unit)) ?? enabled;
  },
};

interface SavedTimer {
  readonly timer: SavedUnit;
  readonly service: SavedUnit;
}

/** Both units of a timer. */
export const timerKeeper: Keeper<SavedTimer> = {
  async save(bodies, tools) {
    const names = bodies.flatMap((body) => timerUnits('name' in body ? String(body.name) : ''));
    const units = await unitKeeper.save(
      names.map((name) => ({ name })),
      tools,
    );
    return bodies.map((_, at) => {
      const [timer, service] = units.slice(2 * at, 2 * at + 2);
      if (typeof timer !== 'object') return timer ?? 'it was not saved';
      return typeof service === 'object' ? { timer, service } : (service ?? 'it was not saved');
    });
  },

  async restore({ timer, service }, ...how) {
    const reasons = [await unitKeeper.restore(timer, ...how), await unitKeeper.restore(service, ...how)];
    return reasons.filter((reason) => reason !== null).join('; ') || null;
  },
};

/** Restores the links that start a unit at boot, which systemd can do only while no mask hides the unit. */
async function restoreLinks(
  host: Host,
  { unit, enablement, isLoaded, isWanted }: SavedUnit,
  now: UnitNow,
): Promise<void> {
  // "disable" also takes the links until the next boot, with which a unit in another state may have been started.
  const wasOff = isWanted === false || enablement === 'disabled' || !isLoaded;
  if (now.enablement === 'enabled' && wasOff) await systemctl(host, 'disable', unit);
  if (now.enablement === 'disabled' && isWanted === true) await systemctl(host, 'enable', unit);
}

/** Returns what is wrong with the links of a unit that is masked again; null if they are as before. */
const problemOfLinks = ({ unit, isWanted }: SavedUnit): string | null =>
  isWanted === undefined || isLinked(unit) === isWanted
    ? null
    : `once it is unmasked, it ${isWanted ? 'no longer starts' : 'starts'} at boot`;

function restoreEnablement(host: Host, { unit, enablement }: SavedUnit): Promise<string | null> {
  if (enablement === 'enabled') return systemctl(host, 'enable', unit);
  if (enablement === 'masked-runtime') return systemctl(host, 'mask', unit, '--runtime');
  if (enablement === 'disabled') return systemctl(host, 'disable', unit);
  return Promise.resolve(`whether it starts at boot is not ${JSON.stringify(enablement)} as before`);
}

type UnitNow = Omit<SavedUnit, 'unit' | 'file'>;

async function stateOf(host: Host, unit: string): Promise<UnitNow | string> {
  const command = { argv: ['systemctl', 'show', `--property=${PROPERTIES}`, '--', unit] } as const;
  const result = await host.run(command);
  if (!exitedWith(result, 0)) return commandFailure(command, result).message;
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(result.stdout)?.[1] ?? '';
  const isUp = UP.includes(value('ActiveState'));
  const enablement = value('UnitFileState');
  return {
    isLoaded: value('LoadState') !== 'not-found',
    isUp,
    enablement,
    ...(enablement.startsWith('masked') && { isWanted: isLinked(unit) }),
    invocation: isUp ? value('InvocationID') || null : null,
  };
}

/** True if a link of the administrator's starts the unit together with another one. */
function isLinked(unit: string): boolean {
  const entries = existsSync(UNITS) ? readdirSync(UNITS, { withFileTypes: true }) : [];
  const directories = entries.filter((entry) => entry.isDirectory() && /\.(wants|requires)$/.test(entry.name));
  return directories.some(({ name }) => readdirSync(join(UNITS, name)).includes(unit));
}

/** Returns null on success, or what systemctl says. */
async function systemctl(host: Host, verb: string, unit: string, ...flags: readonly string[]): Promise<string | null> {
  const command = { argv: ['systemctl', verb, ...flags, '--', unit], timeoutSecs: TIMEOUT_SECS } as const;
  const result = await host.run(command);
  return exitedWith(result, 0) ? null : commandFailure(command, result).message;
}
