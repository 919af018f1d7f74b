/** `orch serve backup`, `restore` and `recover-admin`: the store of the orchestrator of this host. */
import { resolve } from 'node:path';
import { monotonicFactory } from 'ulid';
import { askOrchestrator } from '../daemon/ask-orchestrator.js';
import { type BackupReport, BackupReportSchema } from '../daemon/backup/backup-report.js';
import { recoverAdmin as runRecovery } from '../daemon/backup/recover-admin.js';
import { restoreStore } from '../daemon/backup/restore-store.js';
import { stoppedBackup } from '../daemon/backup/stopped-backup.js';
import { isStoppedCommand, type StoppedOptions } from '../daemon/backup/stopped-store.js';
import type {
  BackupRequest,
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
import { loadSettings } from '../src/settings/load-serve.js';
import { systemClock } from './system-clock.js';

const reports = validator(BackupReportSchema);

/** The orchestrator makes it when it runs, with its own rights; else this process does. Throws `data_dir_locked` while another command is at work. */
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

function stoppedOf({ config, ...flags }: ServeFlags): StoppedOptions {
  process.umask(0o077);
  const { env } = process;
  const configFile = typeof config === 'string' ? config : (env.ORCH_SERVE_CONFIG ?? null);
  const { data_dir } = loadSettings({ flags, env, configFile, isRoot: process.geteuid?.() === 0 });
  return { dataDir: resolve(data_dir), clock: systemClock, newId: monotonicFactory(), logger: silentLogger };
}
