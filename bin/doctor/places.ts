/** Checks of `orch doctor` for the agent and the orchestrator alike: unit, data directory, disk, running program. */
import { lstatSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readRegularFile } from '../../src/identity/private-file.js';
import { shellWord, systemCodeOf } from '../../src/kernel/fault.js';
import { VERSION } from '../../src/kernel/version.js';
import { type DoctorCheck, note, ok, problem, warning } from '../../src/programs/doctor-check.js';
import { hasSystemd, systemctlWithin } from '../../src/service/systemd.js';

/** Milliseconds for a question to systemd. */
const LIMIT_MS = 5_000;
const systemctl = systemctlWithin(LIMIT_MS);

export interface UnitState {
  /** True if it is in use: it runs, or starts with the machine. */
  readonly isUsed: boolean;
  /** `ActiveState` of systemd.unit(5): `active`, `failed`, … */
  readonly active: string;
  readonly isEnabled: boolean;
  readonly restarts: number;
}

/** Returns the state of a unit; null without systemd or without such a unit. Rejects when systemd does not answer. */
export async function unitState(unit: string): Promise<UnitState | null> {
  if (!hasSystemd()) return null;
  const shown = await systemctl('show', '--property=LoadState,ActiveState,UnitFileState,NRestarts', unit);
  const propertyOf = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(shown)?.[1] ?? '';
  if (propertyOf('LoadState') !== 'loaded') return null;
  const active = propertyOf('ActiveState');
  const isEnabled = propertyOf('UnitFileState').startsWith('enabled');
  return {
    isUsed: isEnabled || active !== 'inactive',
    active,
    isEnabled,
    restarts: Number(propertyOf('NRestarts')) || 0,
  };
}

interface ServiceOptions {
  /** Prefix of the check's name: `agent` or `serve`. */
  readonly of: string;
  readonly unit: string;
  readonly state: UnitState | null;
  /** Process that uses the data directory; null without one. */
  readonly pid: number | null;
}

/** Restarts of a service from which it seems to end again and again. */
const MANY_RESTARTS = 3;

/** Checks that a service runs, and starts with the machine. */
export function serviceCheck({ of, unit, state, pid }: ServiceOptions): DoctorCheck {
  const name = `${of} service`;
  const install = `orch ${of} install`;
  if (state === null || !state.isUsed) {
    if (!hasSystemd()) {
      const found = pid === null ? 'it does not run' : `it runs as process ${pid}`;
      return note(
        name,
        `${found}; systemd does not run this machine`,
        'let the service manager of this machine run it',
      );
    }
    if (pid === null) return note(name, `it does not run, and no service starts it`, `sudo ${install}`);
    return warning(name, `it runs as process ${pid}, and does not start with this machine`, `sudo ${install}`);
  }
  const log = `journalctl -u ${unit}`;
  if (state.active === 'activating' && state.restarts > 0) {
    return problem(name, `${unit} ends again and again (${state.restarts} restarts)`, `see why: ${log}`);
  }
  if (state.active !== 'active') {
    return problem(name, `${unit} is ${state.active}`, `sudo systemctl start ${unit}; if it ends again, see: ${log}`);
  }
  if (!state.isEnabled) {
    return warning(name, `${unit} runs, and does not start with this machine`, `sudo systemctl enable ${unit}`);
  }
  if (state.restarts >= MANY_RESTARTS) {
    return warning(
      name,
      `${unit} runs, and has ended by itself ${state.restarts} times since it was started`,
      `see why: ${log}`,
    );
  }
  return ok(name, `${unit} runs, and starts with this machine`);
}

interface DirectoryOptions {
  readonly of: string;
  readonly path: string;
  /** Names of files in the directory that only its owner may read. */
  readonly secret: readonly string[];
}

/** Returns true when this user may look into a directory. Throws the system's error for a directory that cannot be read. */
export function mayLook(path: string): boolean {
  try {
    readdirSync(path);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'EACCES') return false;
    throw error;
  }
}

/** Checks owner and modes of a data directory and its files. */
export function directoryChecks({ of, path, secret }: DirectoryOptions): readonly DoctorCheck[] {
  const name = `${of} data`;
  // Windows has neither owners nor modes of this kind.
  if (process.geteuid === undefined) return [ok(name, path)];
  const { mode, uid } = statSync(path);
  const word = shellWord(path);
  const found: DoctorCheck[] = [];
  if ((mode & 0o077) !== 0) found.push(problem(name, `${path} is open to other users`, `chmod 700 ${word}`));
  // A running program replaces files meanwhile.
  const files = readdirSync(path).flatMap((entry) => {
    const stats = lstatSync(join(path, entry), { throwIfNoEntry: false });
    return stats === undefined ? [] : [{ entry, file: join(path, entry), stats }];
  });
  const foreign = files.filter(({ stats }) => stats.uid !== uid).map(({ file }) => file);
  if (foreign.length > 0) {
    const list =
      foreign.length > 3 ? `${foreign.slice(0, 3).join(', ')} and ${foreign.length - 3} more` : foreign.join(', ');
    found.push(
      problem(
        name,
        `${list}: not of user ${uid}, to whom the directory belongs`,
        `chown -R --reference=${word} ${word}`,
      ),
    );
  }
  for (const { file, stats } of files.filter((one) => secret.includes(one.entry) && (one.stats.mode & 0o077) !== 0)) {
    const shown = (stats.mode & 0o777).toString(8).padStart(4, '0');
    found.push(problem(name, `${file} has mode ${shown}: other users can read it`, `chmod 600 ${shellWord(file)}`));
  }
  return found.length === 0 ? [ok(name, `${path} belongs to user ${uid} alone`)] : found;
}

interface DiskOptions {
  readonly of: string;
  readonly path: string;
  /** Free bytes below which the program complains. */
  readonly enough: number;
}

const MIB = 2 ** 20;
/** Free bytes below which writes are about to fail. */
const LEAST = 32 * MIB;

export function diskCheck({ of, path, enough }: DiskOptions): DoctorCheck {
  const name = `${of} disk`;
  const { bavail, bsize } = statfsSync(path);
  const free = bavail * bsize;
  const found = `${Math.floor(free / MIB)} MiB are free for ${path}`;
  const fix = 'free some space on its file system';
  if (free < LEAST) return problem(name, found, fix);
  return free < enough ? warning(name, `${found}, less than ${enough / MIB} MiB`, fix) : ok(name, found);
}

/** Compares the release that a process runs with that of this command. Returns nothing where that is not known. */
export function runningVersion(of: string, unit: string, pid: number | null): readonly DoctorCheck[] {
  const theirs = pid === null ? null : versionOf(pid);
  if (theirs === null) return [];
  const name = `${of} version`;
  if (theirs === VERSION) return [ok(name, `it runs orch ${VERSION}, like this command`)];
  return [
    warning(
      name,
      `it runs orch ${theirs}, and this command is ${VERSION}`,
      `if ${VERSION} was installed since: sudo systemctl restart ${unit}`,
    ),
  ];
}

/** Reads the version beside the program of a process: in the file of a release, or of a package for npm. */
function versionOf(pid: number): string | null {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    const program = words.find((word) => word.endsWith('/orch.js'));
    const root = program === undefined ? null : join(dirname(program), '..', '..');
    for (const file of root === null ? [] : ['RELEASE', 'package.json']) {
      const version = versionIn(join(String(root), file));
      if (version !== null) return version;
    }
  } catch {
    // Another user's process, or not Linux.
  }
  return null;
}

/** Maximum size of a file that names a version. */
const MOST = 64 * 1024;

function versionIn(file: string): string | null {
  try {
    const { version } = JSON.parse(readRegularFile(file, MOST).toString('utf8'));
    return typeof version === 'string' ? version : null;
  } catch {
    return null;
  }
}
