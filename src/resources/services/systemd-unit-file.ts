/** The unit files that orch writes. */
import type { ServiceBody } from '../service-systemd.js';

/** Marks a file that orch wrote. */
export const MARKER = '# Managed by orch: what is changed here by hand will be undone.';

/** Returns the path of the administrator's unit file, which precedes those of packages. */
export const unitPath = (name: string): string => `/etc/systemd/system/${unitNameOf(name)}`;

/** Returns the possible paths of a unit file that orch does not write; an instance uses that of its template. */
export const unitPlaces = (name: string): readonly string[] =>
  [...new Set([unitNameOf(name), unitNameOf(name).replace(/@.*(?=\.)/, '@')])].flatMap((file) => [
    `/etc/systemd/system/${file}`,
    `/usr/lib/systemd/system/${file}`,
    `/lib/systemd/system/${file}`,
  ]);

/** Directories of unit files. */
const UNIT_FILE = /^\/(?:etc|run|usr\/lib|usr\/local\/lib|lib)\/systemd\/system\/([^/]+)$/;

/** Returns the name of the unit that a path defines or masks; null for other paths. */
export const unitAt = (path: string): string | null => UNIT_FILE.exec(path)?.[1] ?? null;

/** Returns the paths at which a package would have the unit file, which that of the administrator precedes. */
export const packagedPlaces = (name: string): readonly string[] =>
  ['/usr/local/lib', '/usr/lib', '/lib'].map((root) => `${root}/systemd/system/${unitNameOf(name)}`);

/**
 * Returns the units through which alone a unit file can be enabled: those of `Also=` if its `[Install]` section has nothing else.
 * Returns an empty list for every other file.
 */
export function enabledThrough(text: string): readonly string[] {
  const lines = text.split('\n').map((line) => line.trim());
  const start = lines.lastIndexOf('[Install]');
  if (start < 0) return [];
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => line.startsWith('['));
  const settings = rest.slice(0, end < 0 ? undefined : end).map((line) => line.split('=', 2));
  const has = (names: readonly string[]) =>
    settings.filter(([key = '', value = '']) => names.includes(key.trim()) && value.trim() !== '');
  if (has(['WantedBy', 'RequiredBy', 'UpheldBy', 'Alias']).length > 0) return [];
  return has(['Also']).flatMap(([, value = '']) => value.trim().split(/\s+/));
}

export const isOurs = (text: string): boolean => text === MARKER || text.startsWith(`${MARKER}\n`);

const RESTART = { always: 'always', on_failure: 'on-failure', never: 'no' } as const;

/**
 * Returns the unit file; equal bodies have equal texts. The command line is written as given, other values are escaped. A unit that
 * another one starts cannot be enabled.
 */
export function unitFileText(body: ServiceBody & { readonly isStartedByAnother?: true }): string {
  const dependencies = (body.dependencies ?? []).map(unitNameOf).join(' ');
  const environment = Object.entries(body.environment ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = [
    MARKER,
    '[Unit]',
    setting('Description', body.description, literal),
    setting('Requires', dependencies),
    setting('After', dependencies),
    '',
    '[Service]',
    setting('Type', body.type),
    // A finished oneshot unit counts as running, so that "running" can be true.
    body.type === 'oneshot' && body.running === true ? 'RemainAfterExit=yes' : null,
    setting('User', body.user),
    setting('Group', body.group),
    setting('WorkingDirectory', body.working_directory, literal),
    ...environment.map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`),
    setting('ExecStart', body.exec_start),
    body.restart == null ? null : `Restart=${RESTART[body.restart]}`,
    ...(body.isStartedByAnother === true ? [] : ['', '[Install]', 'WantedBy=multi-user.target']),
  ];
  return `${lines.filter((line) => line !== null).join('\n')}\n`;
}

const asGiven = (value: string): string => value;

/** Escapes `%`, which begins a specifier. */
export const literal = (value: string): string => value.replaceAll('%', '%%');

/** Quotes a word. A `$` has no meaning outside of command lines. */
const quoted = (word: string): string =>
  `"${literal(word).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;

export const setting = (name: string, value: string | null | undefined, write = asGiven): string | null =>
  value == null || value === '' ? null : `${name}=${write(value)}`;

/** Names of systemd units: `nginx` is short for `nginx.service`. */

const SUFFIX = /\.(?:service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;

/** Unit names that need no escaping. */
export const UNIT_NAME_PATTERN = '^[A-Za-z0-9:_][A-Za-z0-9:_.\\\\-]*(@[A-Za-z0-9:_.@\\\\-]*)?$';

const MAX_LENGTH = 255;

/** Returns the name with its type suffix. */
export const unitNameOf = (name: string): string => (SUFFIX.test(name) ? name : `${name}.service`);

/** Returns the same identity for all spellings of a name: without `.service`, unless the rest looks like another type. */
export function unitIdentity(name: string): string {
  const short = unitNameOf(name).replace(/\.service$/, '');
  return SUFFIX.test(short) && name.endsWith('.service') ? name : short;
}

/** Returns why a name that matches the pattern cannot be managed, or null. */
export function problemOfUnitName(name: string): string | null {
  const unit = unitNameOf(name);
  if (unit.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  if (!/@\.[a-z]+$/.test(unit)) return null;
  return `is a template, of which only instances can run; name one, such as ${unit.replace('@.', '@1.')}`;
}
