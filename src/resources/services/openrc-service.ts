/** A service of OpenRC as the machine shows it: its script, its runlevels and its state. */
import { type CommandRefusal, commandFailure } from '../command.js';
import type { Host, PathFact } from '../host.js';

const RUNLEVELS = '/etc/runlevels';
/** OpenRC keeps the runlevel that it is in here; without the file it does not run the machine. */
const RUNNING = '/run/openrc/softlevel';

export const initScript = (name: string): string => `/etc/init.d/${name}`;

/** `inactive`: started, and waits for something such as a network. */
export type OpenrcState = 'started' | 'stopped' | 'starting' | 'stopping' | 'inactive' | 'crashed' | 'unknown';

/** Exit statuses of `rc-service NAME status`. */
const STATES: Readonly<Record<number, OpenrcState>> = {
  0: 'started',
  3: 'stopped',
  4: 'stopping',
  8: 'starting',
  16: 'inactive',
  32: 'crashed',
};

export interface OpenrcService {
  readonly script: PathFact;
  readonly state: OpenrcState;
  /** Runlevels in which it is started. */
  readonly runlevels: readonly string[];
  /** Runlevels that the machine has. */
  readonly known: readonly string[];
  readonly canReload: boolean;
}

export const isUp = ({ state }: OpenrcService): boolean =>
  state === 'started' || state === 'starting' || state === 'inactive';

/** True for a stopped service, and for one whose script knows no state. */
export const isDown = ({ state }: OpenrcService): boolean => state === 'stopped' || state === 'unknown';

/** Reads services, in order. */
export async function readOpenrc(
  host: Host,
  names: readonly string[],
): Promise<readonly (OpenrcService | CommandRefusal)[]> {
  const [softlevel, levels] = host.observe([
    { path: RUNNING, content: false, entries: false },
    { path: RUNLEVELS, content: false, entries: true },
  ]);
  if (softlevel?.type !== 'file') return names.map(() => NO_OPENRC);
  const known = levels?.type === 'directory' ? (levels.entries ?? []) : [];
  const found: (OpenrcService | CommandRefusal)[] = [];
  for (const name of names) found.push(await readOne(host, name, known));
  return found;
}

const NO_OPENRC: CommandRefusal = {
  code: 'unsupported_on_platform',
  message: `OpenRC does not run this machine (there is no ${RUNNING}); use the kind of its own init system, such as service-systemd, in a variant with "when: {init_system: …}"`,
};

async function readOne(host: Host, name: string, known: readonly string[]): Promise<OpenrcService | CommandRefusal> {
  const [script = MISSING, ...links] = host.observe([
    { path: initScript(name), content: true, entries: false },
    ...known.map((level) => ({ path: `${RUNLEVELS}/${level}/${name}`, content: false, entries: false })),
  ]);
  const runlevels = known.filter((_, at) => links[at]?.type === 'symlink');
  if (script.type === 'absent') return { script, state: 'unknown', runlevels, known, canReload: false };
  const argv = ['rc-service', '--nocolor', name, 'status'] as const;
  const result = await host.run({ argv });
  if (result.end.how !== 'exited') return commandFailure({ argv }, result);
  return { script, state: STATES[result.end.code] ?? 'unknown', runlevels, known, canReload: canReload(script) };
}

const MISSING: PathFact = { type: 'absent', parent: 'absent' };

/** True for a script with a function `reload`, or with a case of that name. */
function canReload(script: PathFact): boolean {
  if (script.type !== 'file' || script.content.kind !== 'text') return false;
  return script.content.text
    .split('\n')
    .map((line) => line.trim())
    .some((line) => /^reload\s*\(\)/.test(line) || isReloadCase(line));
}

function isReloadCase(line: string): boolean {
  const end = line.indexOf(')');
  if (end < 0) return false;
  return line
    .slice(0, end)
    .replace(/^\(/, '')
    .split('|')
    .some((word) => word.trim() === 'reload');
}
