/** `orch serve backup`, `restore` and `recover-admin`, and `orch store copy`: commands on the store of an orchestrator. */
import { resolve } from 'node:path';
import { monotonicFactory } from 'ulid';
import { askOrchestrator } from '../daemon/ask-orchestrator.js';
import { type BackupReport, BackupReportSchema } from '../daemon/backup/backup-target.js';
import { copyStore } from '../daemon/backup/copy-store.js';
import { restoreStore } from '../daemon/backup/restore-store.js';
import {
  isStoppedCommand,
  recoverAdmin as runRecovery,
  type StoppedOptions,
  stoppedBackup,
} from '../daemon/backup/stopped-store.js';
import { storeLocationOf } from '../daemon/database/store-location.js';
import type {
  BackupRequest,
  CopiedStore,
  CopyRequest,
  RecoveredAdmin,
  RecoverRequest,
  Restored,
  RestoreRequest,
  ServeFlags,
} from '../src/cli/programs.js';
import { holderOf } from '../src/identity/data-directory.js';
import { Fault } from '../src/kernel/fault.js';
import { silentLogger } from '../src/kernel/logger.js';
import { validator } from '../src/kernel/validator.js';
import { serveSettingsOf } from './serve-requests.js';
import { systemClock } from './this-process.js';

const reports = validator(BackupReportSchema);

/**
 * Makes a backup. A running orchestrator makes it with its own rights; otherwise this process does.
 * Throws `data_dir_locked` while another command holds the data directory.
 */
export async function backup({ flags, file, force }: BackupRequest): Promise<BackupReport> {
  const stopped = stoppedOf(flags);
  const holder = holderOf(stopped.dataDir);
  if (holder === null || isStoppedCommand(holder.program)) return stoppedBackup(stopped, { file, force });
  const report = await askOrchestrator(stopped.dataDir, { verb: 'backup', file, force });
  if (reports.check(report)) return report;
  throw new Fault('protocol_violation', `the orchestrator on ${stopped.dataDir} answered nothing useful`);
}

export const restore = ({ flags, file, newIdentity, confirm }: RestoreRequest): Promise<Restored> =>
  restoreStore({ ...stoppedOf(flags), file, newIdentity, confirm });

export const recoverAdmin = ({ flags, publicKey, username, confirm }: RecoverRequest): Promise<RecoveredAdmin> =>
  runRecovery({ ...stoppedOf(flags), wanted: { publicKey, username: username ?? null }, confirm });

export const copy = (request: CopyRequest): Promise<CopiedStore> => {
  process.umask(0o077);
  return copyStore({
    ...request,
    env: process.env,
    clock: systemClock,
    newId: monotonicFactory(),
    logger: silentLogger,
  });
};

function stoppedOf(flags: ServeFlags): StoppedOptions {
  process.umask(0o077);
  const settings = serveSettingsOf(flags);
  const dataDir = resolve(settings.data_dir);
  const location = storeLocationOf({ ...settings, data_dir: dataDir }, process.env);
  return { dataDir, location, clock: systemClock, newId: monotonicFactory(), logger: silentLogger };
}
