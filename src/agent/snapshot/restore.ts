/** Restores a snapshot in reverse order: units stop, then everything else returns, then units start. */

import { messageOf } from '../../kernel/fault.js';
import { kindOfAbsence } from '../../resources/absence-name.js';
import type { Host } from '../../resources/host.js';
import { MAX_RESTORED_NAMES, type Restored } from '../../resources/restored.js';
import { AGENT_UNIT } from '../../service/units.js';
import type { RestorePhase, RestoreTools } from './keeper.js';
import { keeperOf } from './keepers.js';
import { PathRestorer, type PathRestorerOptions } from './path-restorer.js';
import type { SavedItem, SnapshotRecord } from './snapshot-record.js';

const PHASES: readonly RestorePhase[] = ['stop', 'state', 'start'];
const MAX_REASON = 1_024;

/** Restores everything that can be, whatever fails. Safe to repeat after a crash. */
export async function restore(record: SnapshotRecord, host: Host, options: PathRestorerOptions): Promise<Restored> {
  const tools: RestoreTools = { host, paths: new PathRestorer(options) };
  const reasons = new Map<SavedItem, string>();
  const items = record.items.toReversed();
  for (const phase of PHASES) {
    // Units start in the order in which they were applied, because later ones may need earlier ones.
    const order = phase === 'start' ? record.items : items;
    if (phase === 'start' && touchesUnits(items)) await host.run({ argv: ['systemctl', 'daemon-reload'] });
    for (const item of order) {
      if (reasons.has(item)) continue;
      const reason = await restoreItem(item, phase, tools);
      if (reason !== null) reasons.set(item, reason.slice(0, MAX_REASON));
    }
  }
  return reportOf(items, reasons);
}

/** True if the agent's own unit may be another one now, so that the agent has to start anew. */
export const changesAgentUnit = ({ items }: SnapshotRecord): boolean =>
  items.some(
    ({ kind, identity }) =>
      (kind === 'service-systemd' && `${identity}.service` === AGENT_UNIT) ||
      identity.endsWith(`/${AGENT_UNIT}`) ||
      identity.includes(`/${AGENT_UNIT}.d/`),
  );

async function restoreItem(item: SavedItem, phase: RestorePhase, tools: RestoreTools): Promise<string | null> {
  const { kind, saved, reason, action } = item;
  if (saved === null) return reason ?? 'it was not saved';
  const keeper = keeperOf(kind);
  if (typeof keeper === 'string') return keeper;
  try {
    return await keeper.restore(saved, phase, tools, action);
  } catch (error) {
    return messageOf(error);
  }
}

const UNIT_FILE = /\/systemd\/system(?:\.control)?\//;

/** Kinds whose files systemd reads; it makes units of the lines in /etc/fstab. */
const OF_SYSTEMD: readonly string[] = ['service-systemd', 'timer-systemd', 'mount-linux'];

const touchesUnits = (items: readonly SavedItem[]): boolean =>
  items.some(({ kind, identity }) => OF_SYSTEMD.includes(kindOfAbsence(kind)) || UNIT_FILE.test(identity));

function reportOf(items: readonly SavedItem[], reasons: ReadonlyMap<SavedItem, string>): Restored {
  const resources = items.map((item) => ({
    kind: item.kind,
    identity: item.identity.slice(0, 4_096),
    reason: reasons.get(item) ?? null,
  }));
  const left = resources.filter(({ reason }) => reason !== null);
  const back = resources.filter(({ reason }) => reason === null);
  return {
    restored: back.length,
    not_restored: left.length,
    resources: [...left, ...back].slice(0, MAX_RESTORED_NAMES),
  };
}
