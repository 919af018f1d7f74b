/** The unit files that orch writes. */
import type { ServiceBody } from './systemd-service-body.js';
import { unitNameOf } from './systemd-unit-name.js';

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
