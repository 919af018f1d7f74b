/** Saves services of OpenRC: the runlevels that they start in, and whether they run. */
import type { Host } from '../../resources/host.js';
import { isUp, type OpenrcService, readOpenrc } from '../../resources/services/openrc-service.js';
import { run } from './account-keeper.js';
import type { Keeper } from './keeper.js';

interface SavedService {
  readonly name: string;
  /** True if it existed. */
  readonly isThere: boolean;
  readonly isUp: boolean;
  readonly runlevels: readonly string[];
}

export const openrcKeeper: Keeper<SavedService> = {
  async save(bodies, { host }) {
    const names = bodies.map((body) => ('name' in body ? String(body.name) : ''));
    const found = await readOpenrc(host, names);
    return names.map((name, at) => {
      const now = found[at];
      if (now === undefined || 'code' in now) return now?.message ?? 'it was not saved';
      return { name, isThere: now.script.type !== 'absent', isUp: isUp(now), runlevels: now.runlevels };
    });
  },

  async restore(saved, phase, { host }, action) {
    const [now] = await readOpenrc(host, [saved.name]);
    if (now === undefined || 'code' in now) return now?.message ?? 'it was not read';
    if (phase === 'stop') {
      const reasons = [isUp(now) && !saved.isUp ? await service(host, saved.name, 'stop') : null];
      if (!saved.isThere) reasons.push(await restoreRunlevels(host, saved, now));
      return reasons.find((reason) => reason !== null) ?? null;
    }
    if (phase === 'state' || !saved.isThere) return null;
    const enabled = await restoreRunlevels(host, saved, now);
    if (!saved.isUp) return enabled;
    // What it was restarted or reloaded for has returned to its former state.
    const isRepeated = action === 'restart' || action === 'reload';
    if (isUp(now) && !isRepeated) return enabled;
    return (await service(host, saved.name, isUp(now) ? 'restart' : 'start')) ?? enabled;
  },
};

async function restoreRunlevels(host: Host, { name, runlevels }: SavedService, now: OpenrcService) {
  const added = runlevels.filter((level) => !now.runlevels.includes(level));
  const gone = now.runlevels.filter((level) => !runlevels.includes(level));
  const deleted = gone.length === 0 ? null : await run(host, ['rc-update', 'del', name, ...gone]);
  return added.length === 0 ? deleted : ((await run(host, ['rc-update', 'add', name, ...added])) ?? deleted);
}

const service = (host: Host, name: string, verb: 'start' | 'stop' | 'restart') =>
  run(host, ['rc-service', '--nocolor', name, verb]);
