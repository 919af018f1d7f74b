/** Finds the orchestrator that is installed as a service of this host. */
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { hasSystemd } from './systemd.js';
import { SERVE_UNIT } from './units.js';

export interface InstalledServe {
  /** Values of the flags in the unit's command that choose its data and settings, by flat name. */
  readonly flags: Readonly<Partial<Record<(typeof FLAGS)[number], string>>>;
}

const FLAGS = ['config', 'data_dir', 'store', 'store_password_file'] as const;
/** Milliseconds that systemd may take. */
const WITHIN = 5_000;

/** Returns the service of `orch serve`; null when this host has none. */
export function installedServe(): InstalledServe | null {
  if (!hasSystemd()) return null;
  try {
    const words = ['show', '--property=LoadState,ExecStart', SERVE_UNIT];
    return parseServe(execFileSync('systemctl', words, { encoding: 'utf8', timeout: WITHIN, stdio: 'pipe' }));
  } catch {
    return null;
  }
}

/** Reads the properties `LoadState` and `ExecStart` of the unit, as `systemctl show` prints them. */
export function parseServe(shown: string): InstalledServe | null {
  if (!/^LoadState=loaded$/m.test(shown)) return null;
  const words = (/^ExecStart=\{.*?argv\[\]=(.*?) ; ignore_errors=/m.exec(shown)?.[1] ?? '').split(' ');
  const flags: Partial<Record<(typeof FLAGS)[number], string>> = {};
  for (const name of FLAGS) {
    const flag = `--${name.replaceAll('_', '-')}`;
    const at = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
    const value = words[at] === flag ? words[at + 1] : words[at]?.slice(flag.length + 1);
    if (value !== undefined) flags[name] = value;
  }
  return flags.data_dir === undefined ? null : { flags };
}

/**
 * Returns the owner of the service's data directory when this process is root and works on that directory; null for
 * any other user or directory, and when the directory is root's own.
 */
export function serviceOwner(dataDir: string): { readonly uid: number; readonly gid: number } | null {
  if (process.geteuid?.() !== 0 || installedServe()?.flags.data_dir !== dataDir) return null;
  const found = statSync(dataDir, { throwIfNoEntry: false });
  return found === undefined || found.uid === 0 ? null : { uid: found.uid, gid: found.gid };
}
