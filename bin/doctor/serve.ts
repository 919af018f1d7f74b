/** The orchestrator of this machine, as `orch doctor` sees it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { keysIn } from '../../daemon/backup/starting-directory.js';
import { holderOf } from '../../src/identity/data-directory.js';
import { systemCodeOf } from '../../src/kernel/fault.js';
import { type DoctorCheck, failure, guarded, note, ok, problem, warning } from '../../src/programs/doctor-check.js';
import { READY_FILE, SERVE_DATA_DIR, SERVE_UNIT } from '../../src/service/units.js';
import { loadSettings, standardDataDir } from '../../src/settings/load-serve.js';
import type { Settings } from '../../src/settings/serve.js';
import { directoryChecks, diskCheck, mayLook, runningVersion, serviceCheck, unitState } from './places.js';
import type { Needs } from './runtime.js';
import { storeCheck } from './store-file.js';
import { storeServerChecks } from './store-server.js';

/** Free bytes below which a running orchestrator says that it is degraded. */
const ENOUGH_DISK = 2 ** 30;

/** Checks the orchestrator, if this machine has one. Notes in `needs` whether it does. */
export async function examineServe(needs: Needs): Promise<readonly DoctorCheck[]> {
  const unit = await unitState(SERVE_UNIT);
  const settings = settingsOf();
  const path = unit?.isUsed && process.env.ORCH_SERVE_DATA_DIR === undefined ? SERVE_DATA_DIR : settings.dataDir;
  const isHere = existsSync(path);
  if (!isHere && !unit?.isUsed) {
    const install = note('serve', 'this machine has no orchestrator', 'to run one here: orch serve install');
    return settings.check.state === 'problem' ? [install, settings.check] : [install];
  }
  needs.store = true;
  if (!isHere || !mayLook(path)) {
    const service = serviceCheck({ of: 'serve', unit: SERVE_UNIT, state: unit, pid: null });
    const data = isHere ? note('serve data', `${path} is closed to this user`, 'sudo orch doctor') : null;
    return [...(unit?.isUsed ? [service] : []), settings.check, ...(data === null ? [] : [data])];
  }
  const pid = holderOf(path)?.pid ?? null;
  return [
    serviceCheck({ of: 'serve', unit: SERVE_UNIT, state: unit, pid }),
    ...runningVersion('serve', SERVE_UNIT, pid),
    ...(unit?.active === 'active' ? readyCheck() : []),
    settings.check,
    ...(await guarded('serve data', () => directoryChecks({ of: 'serve', path, secret: SECRET }))),
    ...(await guarded('serve keys', () => keyChecks(path))),
    ...(await guarded('serve store', () => storeChecks(settings.found, path, pid))),
    ...(await guarded('serve disk', () => [diskCheck({ of: 'serve', path, enough: ENOUGH_DISK })])),
  ];
}

/** @param settings null where they are not valid */
async function storeChecks(
  settings: Settings | null,
  dataDir: string,
  pid: number | null,
): Promise<readonly DoctorCheck[]> {
  return settings === null || settings.store === ''
    ? [await storeCheck(dataDir, pid)]
    : storeServerChecks({ settings, dataDir, pid });
}

const SECRET = ['identity.key', 'audit.key', 'secrets.key', 'api.key', 'orch.db', 'orch.db-wal'];

interface FoundSettings {
  readonly check: DoctorCheck;
  readonly dataDir: string;
  /** Null where they are not valid. */
  readonly found: Settings | null;
}

function settingsOf(): FoundSettings {
  const { env } = process;
  const isRoot = process.geteuid?.() === 0;
  try {
    const found = loadSettings({ flags: {}, env, configFile: env.ORCH_SERVE_CONFIG ?? null, isRoot });
    const check = ok('serve settings', 'the configuration file and the variables are valid');
    return { check, dataDir: found.data_dir, found };
  } catch (error) {
    const dataDir = env.ORCH_SERVE_DATA_DIR ?? standardDataDir(env, isRoot);
    return { check: failure('serve settings', error), dataDir, found: null };
  }
}

function readyCheck(): readonly DoctorCheck[] {
  const name = 'serve ready';
  try {
    const { api_url, agent_address } = JSON.parse(readFileSync(READY_FILE, 'utf8'));
    return [ok(name, `it listens: API ${api_url}, agents ${agent_address}`)];
  } catch (error) {
    // Only its own user and root may read the file.
    if (systemCodeOf(error) === 'EACCES') return [];
    const log = `wait a moment; then see: journalctl -u ${SERVE_UNIT}`;
    return [warning(name, `it runs, and does not say in ${READY_FILE} that it listens`, log)];
  }
}

function keyChecks(path: string): readonly DoctorCheck[] {
  const keys = keysIn(path);
  const isStored = existsSync(join(path, 'orch.db'));
  if (keys.length === 0 && !isStored) return [note('serve keys', 'there are none yet; the first start makes them')];
  const missing = ['identity.key', 'audit.key', 'secrets.key'].filter((name) => !keys.includes(join(path, name)));
  if (missing.length === 0)
    return [ok('serve keys', 'all are there; keep a copy of them elsewhere, backups have none')];
  return [
    problem(
      'serve keys',
      `${path} lacks ${missing.join(', ')}`,
      'put it back from your copy; docs/backup.md says what its loss means',
    ),
  ];
}
