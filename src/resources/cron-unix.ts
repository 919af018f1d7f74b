/** `cron-unix`: a command that cron runs on a schedule, in a file of its own in `/etc/cron.d`. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { escapePointer } from '../kernel/validator.js';
import { fileUnix } from './file-unix.js';
import type { PathFact } from './host.js';
import { type BodyProblem, defineResource, type PlanContext } from './kind.js';
import { checkUserReference, MAX_ACCOUNT_NAME } from './unix/unix-accounts.js';
import { parentOf } from './unix/unix-path.js';

const schema = closed({
  name: Type.String({
    pattern: '^[A-Za-z0-9_-]{1,128}$',
    description: 'Name of the file in /etc/cron.d: letters, digits, "_" and "-", because cron reads no others',
  }),
  schedule: Type.String({
    minLength: 1,
    maxLength: 256,
    description: 'Minute, hour, day of the month, month and day of the week, or @reboot, @hourly, @daily and the like',
  }),
  user: Type.String({ minLength: 1, maxLength: MAX_ACCOUNT_NAME, description: 'Name of the user that it runs as' }),
  command: Type.String({ minLength: 1, maxLength: 900, description: 'Command line for /bin/sh, in one line' }),
  environment: optional(
    Type.Record(Type.String(), Type.String(), {
      additionalProperties: false,
      description: 'Environment variables, such as MAILTO and PATH',
    }),
  ),
});

type CronBody = Type.Static<typeof schema>;

const DIRECTORY = '/etc/cron.d';

/** Returns the path of the file of an entry. */
export const cronPath = (name: string): string => `${DIRECTORY}/${name}`;

/** Returns the file that a body means. */
const fileOf = (body: CronBody) => ({
  path: cronPath(body.name),
  content: contentOf(body),
  owner: 'root',
  group: 'root',
  mode: '0644',
});

/** cron takes a bare percent sign for the end of the line. */
function contentOf({ schedule, user, command, environment }: CronBody): string {
  const variables = Object.entries(environment ?? {}).map(([name, value]) => `${name}=${quote(value)}\n`);
  const fields = schedule.trim().split(/\s+/).join(' ');
  return `${variables.join('')}${fields} ${user} ${command.replaceAll('%', '\\%')}\n`;
}

/** cron has no escapes: a text in one kind of quotes may hold the other kind. */
const quote = (value: string): string => (value.includes('"') ? `'${value}'` : `"${value}"`);

export const cronUnix = defineResource<CronBody, PathFact>({
  kind: 'cron-unix',
  family: 'path',
  platforms: ['linux'],
  schema,
  check: checkCron,
  identity: ({ name }) => cronPath(name),
  requires: ({ name, user }) => [
    { family: 'path', identity: parentOf(cronPath(name)) },
    { family: 'user', identity: user },
  ],
  ...(fileUnix.batch !== undefined && { batch: fileUnix.batch }),
  read(host, wants, purpose) {
    const files = purpose === 'removal' ? wants.map(({ name }) => ({ path: cronPath(name) })) : wants.map(fileOf);
    return fileUnix.read(host, files, purpose);
  },
  exists: (have) => fileUnix.exists(have),
  plan(want, have, context) {
    const missing = missingUser(want, context);
    if (missing !== null) return { action: 'fail', code: 'unknown_owner', message: missing };
    // A secret in the line is for root alone, who reads the file for every user.
    const file = { ...fileOf(want), ...(context.sensitive ? { mode: '0600' } : {}) };
    return fileUnix.plan(file, have, context);
  },
  planRemoval: (last, have, context) => fileUnix.planRemoval({ path: cronPath(last.name) }, have, context),
  inseparable: ['command', 'environment'],
});

/** Returns that the user is missing: cron would pass over the line without a word. A drift check compares the file alone. */
function missingUser({ user }: CronBody, { purpose, mayAppear, accounts, declares }: PlanContext): string | null {
  if (purpose === 'drift' || mayAppear || accounts.uid(user) !== undefined || declares('user', user)) return null;
  return `there is no user "${user}" on this machine`;
}

const CONTROL = /\p{Cc}/u;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

function checkCron({ schedule, user, command, environment }: CronBody): readonly BodyProblem[] {
  const problems: BodyProblem[] = [];
  const add = (path: string, problem: string | null) => {
    if (problem !== null) problems.push({ path, message: problem });
  };
  add('/schedule', problemOfSchedule(schedule));
  problems.push(...checkUserReference('/user', user));
  if (/^\d+$/.test(user)) add('/user', 'user must be a name, because cron takes no number');
  if (CONTROL.test(command))
    add('/command', 'command must be one line; put several into a file or a script, and run that');
  for (const [name, value] of Object.entries(environment ?? {})) {
    add(`/environment/${escapePointer(name)}`, problemOfVariable(name, value));
  }
  return problems;
}

function problemOfVariable(name: string, value: string): string | null {
  if (!VARIABLE.test(name)) return `${JSON.stringify(name)} is not the name of an environment variable`;
  if (CONTROL.test(value)) return `the value of ${name} must be one line`;
  return value.includes('"') && value.includes("'") ? `the value of ${name} must not hold both kinds of quotes` : null;
}

const WORDS = ['@reboot', '@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'];
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

interface CronField {
  readonly name: string;
  readonly least: number;
  readonly most: number;
  /** Names of the numbers, from the least one. */
  readonly words?: readonly string[];
}

const FIELDS: readonly CronField[] = [
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day of the month', least: 1, most: 31 },
  { name: 'month', least: 1, most: 12, words: MONTHS },
  { name: 'day of the week', least: 0, most: 7, words: DAYS },
];

/** Returns why cron would not read a schedule as it is meant, or null. */
function problemOfSchedule(schedule: string): string | null {
  if (CONTROL.test(schedule)) return 'schedule must be one line';
  const parts = schedule.trim().split(/\s+/);
  if (schedule.trim().startsWith('@')) {
    return WORDS.includes(schedule.trim()) ? null : `schedule must be one of ${WORDS.join(', ')}, or five fields`;
  }
  if (parts.length !== FIELDS.length) {
    return `schedule must have five fields (minute, hour, day of the month, month, day of the week), but has ${parts.length}`;
  }
  for (const [at, field] of FIELDS.entries()) {
    const bad = (parts[at] ?? '').split(',').find((part) => !isRange(part, field));
    if (bad !== undefined) {
      return `schedule has the ${field.name} ${JSON.stringify(bad)}; it goes from ${field.least} to ${field.most}, such as "${field.least}", "*", "*/2" or "${field.least}-${field.most}"`;
    }
  }
  return null;
}

function isRange(part: string, field: CronField): boolean {
  const [, range = '', step] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(part) ?? [];
  if (range === '' || (step !== undefined && Number(step) < 1)) return false;
  if (range === '*') return true;
  const [first = '', last, more] = range.split('-');
  const from = numberOf(first, field);
  if (from === null || more !== undefined) return false;
  if (last === undefined) return step === undefined;
  const to = numberOf(last, field);
  return to !== null && from <= to;
}

function numberOf(text: string, { least, most, words }: CronField): number | null {
  const word = words?.indexOf(text.toLowerCase()) ?? -1;
  if (word >= 0) return least + word;
  const number = /^\d{1,2}$/.test(text) ? Number(text) : -1;
  return number >= least && number <= most ? number : null;
}
