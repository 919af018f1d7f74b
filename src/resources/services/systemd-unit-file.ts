/** The unit files that orch writes. */
import type { ServiceBody } from '../service-systemd.js';

/** Its presence tells that orch wrote the file. */
export const MARKER = '# Managed by orch: what is changed here by hand will be undone.';

/** Where unit files of the machine's administrator lie; they go before those of packages. */
export const unitPath = (name: string): string => `/etc/systemd/system/${unitNameOf(name)}`;

/** Where the unit file of a unit may lie that is not written by orch; an instance has that of its template. */
export const unitPlaces = (name: string): readonly string[] =>
  [...new Set([unitNameOf(name), unitNameOf(name).replace(/@.*(?=\.)/, '@')])].flatMap((file) => [
    `/etc/systemd/system/${file}`,
    `/usr/lib/systemd/system/${file}`,
    `/lib/systemd/system/${file}`,
  ]);

export const isOurs = (text: string): boolean => text === MARKER || text.startsWith(`${MARKER}\n`);

const RESTART = { always: 'always', on_failure: 'on-failure', never: 'no' } as const;

/** Equal bodies have equal texts. The command line stands as it is given; in all else nothing has a second meaning. */
export function unitFileText(body: ServiceBody): string {
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
    // What has done its work counts as running, so that "running" can be true of it.
    body.type === 'oneshot' && body.running === true ? 'RemainAfterExit=yes' : null,
    setting('User', body.user),
    setting('Group', body.group),
    setting('WorkingDirectory', body.working_directory, literal),
    ...environment.map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`),
    setting('ExecStart', body.exec_start),
    body.restart == null ? null : `Restart=${RESTART[body.restart]}`,
    '',
    '[Install]',
    'WantedBy=multi-user.target',
  ];
  return `${lines.filter((line) => line !== null).join('\n')}\n`;
}

const asGiven = (value: string): string => value;

/** One `%` begins a specifier. */
const literal = (value: string): string => value.replaceAll('%', '%%');

/** One word, whatever it holds. A `$` has no meaning outside of command lines. */
const quoted = (word: string): string =>
  `"${literal(word).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;

const setting = (name: string, value: string | null | undefined, write = asGiven): string | null =>
  value == null || value === '' ? null : `${name}=${write(value)}`;

/** Names of systemd units: `nginx` is short for `nginx.service`. */

const SUFFIX = /\.(?:service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;

/** What systemd takes without escaping; anything else would be changed or refused by `systemctl`. */
export const UNIT_NAME_PATTERN = '^[A-Za-z0-9:_][A-Za-z0-9:_.\\\\-]*(@[A-Za-z0-9:_.@\\\\-]*)?$';

const MAX_LENGTH = 255;

/** The name with its type. */
export const unitNameOf = (name: string): string => (SUFFIX.test(name) ? name : `${name}.service`);

/** Equal for all names of a unit: without `.service`, unless what is left would be read as another type of unit. */
export function unitIdentity(name: string): string {
  const short = unitNameOf(name).replace(/\.service$/, '');
  return SUFFIX.test(short) && name.endsWith('.service') ? name : short;
}

/** Why a name that matches the pattern cannot be managed; null when it can. */
export function problemOfUnitName(name: string): string | null {
  const unit = unitNameOf(name);
  if (unit.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  if (!/@\.[a-z]+$/.test(unit)) return null;
  return `is a template, of which only instances can run; name one, such as ${unit.replace('@.', '@1.')}`;
}
