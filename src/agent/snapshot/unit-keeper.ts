/** Saves units of systemd: whether they start at boot and run, and the unit file that orch writes. */
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
  /** ID that systemd gives to each start; null when it was not running. */
  readonly invocation: string | null;
  /** The administrator's unit file; null if it cannot be restored. */
  readonly file: SavedPath | null;
}

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
      if (saved.isUp || isSelf) return null;
      const now = await stateOf(host, unit);
      if (typeof now === 'string' || !now.isLoaded) return null;
      const stopped = now.isUp ? await systemctl(host, 'stop', unit) : null;
      if (!saved.isLoaded && now.enablement === 'enabled') await systemctl(host, 'disable', unit);
      return stopped;
    }
    if (!saved.isLoaded) return null;
    const now = await stateOf(host, unit);
    if (typeof now === 'string') return now;
    const enabled = now.enablement === saved.enablement ? null : await restoreEnablement(host, saved);
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

function restoreEnablement(host: Host, { unit, enablement }: SavedUnit): Promise<string | null> {
  if (enablement === 'enabled') return systemctl(host, 'enable', unit);
  return enablement === 'disabled' ? systemctl(host, 'disable', unit) : Promise.resolve(null);
}

type UnitNow = Pick<SavedUnit, 'isLoaded' | 'isUp' | 'enablement' | 'invocation'>;

async function stateOf(host: Host, unit: string): Promise<UnitNow | string> {
  const command = { argv: ['systemctl', 'show', `--property=${PROPERTIES}`, '--', unit] } as const;
  const result = await host.run(command);
  if (!exitedWith(result, 0)) return commandFailure(command, result).message;
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(result.stdout)?.[1] ?? '';
  const isUp = UP.includes(value('ActiveState'));
  return {
    isLoaded: value('LoadState') !== 'not-found',
    isUp,
    enablement: value('UnitFileState'),
    invocation: isUp ? value('InvocationID') || null : null,
  };
}

/** Returns null on success, or what systemctl says. */
async function systemctl(host: Host, verb: string, unit: string): Promise<string | null> {
  const command = { argv: ['systemctl', verb, '--', unit], timeoutSecs: TIMEOUT_SECS } as const;
  const result = await host.run(command);
  return exitedWith(result, 0) ? null : commandFailure(command, result).message;
}
