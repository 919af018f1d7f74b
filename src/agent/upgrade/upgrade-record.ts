/**
 * The record of the agent's last upgrade in its data directory. The agent and the trial of the new release write it in turns; it
 * is deleted once the orchestrator knows how the upgrade ended.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile, syncDirectory } from '../../disk/durable.js';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { UpgradeState } from '../../wire/messages.js';

/** Facts that the trial of a release needs. */
interface Trial {
  /** Directory of the new release. */
  readonly release: string;
  /** Directory that `/opt/orch/current` named before; null without that link. */
  readonly previous: string | null;
  /** Seconds in which the new release has to reach the orchestrator. */
  readonly seconds: number;
  /** Number of trials that began; above one after a restart of the machine. */
  readonly begun: number;
}

export interface UpgradeRecord {
  readonly format: 1;
  readonly upgrade_id: string;
  readonly version: string;
  readonly state: UpgradeState;
  /** The work that the upgrade waits for, or null. */
  readonly waits_for: string | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Null before the release is on the disk. */
  readonly trial: Trial | null;
}

/** True once the record is final. */
export const isFinal = ({ state }: Pick<UpgradeRecord, 'state'>): boolean =>
  state === 'succeeded' || state === 'failed' || state === 'rolled_back';

const FILE = 'upgrade.json';

/** Returns the record; null without one. Throws `data_dir_invalid` for one that cannot be read. */
export function readUpgrade(dataDir: string): UpgradeRecord | null {
  const path = join(dataDir, FILE);
  try {
    const record = JSON.parse(readFileSync(path, 'utf8')) as UpgradeRecord;
    if (record.format !== 1) throw new Error(`it has the format ${record.format}`);
    return record;
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return null;
    throw new Fault('data_dir_invalid', `${path} cannot be read: ${messageOf(cause)}`, {
      hint: 'delete it: it only says how the last upgrade of the agent ended',
      cause,
    });
  }
}

/** Replaces the record durably. */
export function writeUpgrade(dataDir: string, record: UpgradeRecord): void {
  replaceFile(join(dataDir, FILE), `${JSON.stringify(record, null, 2)}\n`);
}

export function forgetUpgrade(dataDir: string): void {
  rmSync(join(dataDir, FILE), { force: true });
  syncDirectory(dataDir);
}
