/** The commands of `orch operator`, and `orch login` and `orch logout`. */
import type { KeyObject } from 'node:crypto';
import { dirname } from 'node:path';
import type { ApiClient } from '../../client/api-client.js';
import { expandHome, makeOwnDirectory, standardKeyPath } from '../../client/operator-files.js';
import type { Operator } from '../../contract/operators.js';
import { ROLES } from '../../contract/rights.js';
import { groupsOfFour, operatorIdOf, publicKeyOfKeyObject } from '../../identity/key-object.js';
import { importOpensshKey } from '../../identity/openssh.js';
import { generateKey, writeNewKey } from '../../identity/private-key.js';
import { Fault } from '../../kernel/fault.js';
import { nearest } from '../../language/nearest.js';
import type { Context } from '../context.js';
import { argument, defineCommand } from '../define-command.js';
import { formatTime, type TimeCell, timeCells } from '../format.js';
import { choice, flag, requiredText, text } from '../options.js';
import {
  type Column,
  type FieldsView,
  fields,
  fieldsOf,
  lines,
  stack,
  type TableCell,
  type TableView,
} from '../outcome.js';
import { readPublicKey } from '../read-public-key.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';
import { readInlineOrFile } from '../text-files.js';
import { EXPIRY_DETAIL, expiresOption, expiryOf, GRANT_DETAIL, grantOption, grantsOf, sayGrant } from './grants.js';

/** `orch operator init`. */
export const initOperator = defineCommand({
  examples: ['orch operator init', 'orch operator init --from-ssh ~/.ssh/id_ed25519'],
  detail: [
    'Writes ~/.config/orch/operator.key, or the file of --key-file or ORCH_KEY_FILE. An existing file is never',
    'replaced. Give the printed public key to an admin, who runs: orch operator add',
  ],
  access: 'local',
  options: {
    fromSsh: text('FILE', 'import an Ed25519 key of OpenSSH', { completes: 'file' }),
    passphrase: flag('ask for a passphrase and encrypt the file with it'),
  },
  run: async (context, input) => {
    const path = keyPath(context);
    const key = input.fromSsh === undefined ? generateKey() : importOpensshKey(expandHome(context.env, input.fromSsh));
    const passphrase = input.passphrase ? await newPassphrase(context) : undefined;
    makeDirectory(dirname(path));
    writeNewKey(path, key, { passphrase });
    return describe(path, key);
  },
});

/** `orch operator whoami`. */
export const whoAmI = defineCommand({
  examples: ['orch operator whoami'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const session = await api.call('getSession', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: session,
      names: [session.operator.username],
      view: stack(
        operatorFields(session.operator, nameOf),
        fields(['Orchestrator', api.url.href.replace(/\/$/, '')], ['Session until', formatTime(session.expires_at)]),
      ),
    };
  },
});

/** `orch operator add`. */
export const addOperator = defineCommand({
  examples: [
    'orch operator add 3b6a27bc…29 --username ada',
    'orch operator add "ssh-ed25519 AAAAC3…" --username ada --role viewer',
    'orch operator add @ada.pub --username ada --role deployer --grant deployer:env=dev',
    'orch operator add @ci.pub --username ci --role deployer --robot --expires 90d',
  ],
  detail: [
    'The roles admin, operator and deployer can become root on all machines, or on those of the grants.',
    ...GRANT_DETAIL,
    EXPIRY_DETAIL,
    'A robot is a program: it gets no terminal, is no admin, and has an end within 366 days.',
  ],
  access: 'admin',
  args: {
    key: argument('KEY', 'public key: 64 hex digits, an OpenSSH public key line, or @FILE with either'),
  },
  options: {
    username: requiredText('NAME', 'username of the operator; cannot be changed later'),
    role: choice('ROLE', ROLES, 'role of the operator [operator]'),
    grant: grantOption,
    expires: expiresOption,
    robot: flag('a program, which gets no terminal'),
  },
  run: async (context, { key, username, role, grant, expires, robot }) => {
    const grants = grantsOf(grant);
    const expires_at = expires === undefined ? null : expiryOf(expires, context.clock.now());
    const text = await readInlineOrFile(key, context.readInput);
    const publicKey = readPublicKey(text, key.startsWith('@') ? key.slice(1) : 'KEY');
    const api = await context.api();
    const operator = await api.call('addOperator', {
      body: {
        public_key: publicKey,
        username,
        role: role ?? null,
        ...(grants.length > 0 && { grants }),
        ...(expires_at !== null && { expires_at }),
        ...(robot && { robot }),
      },
      signal: context.signal,
    });
    const nameOf = await operatorNames(context, api);
    return {
      body: operator,
      names: [operator.operator_id],
      view: stack(lines(`Added ${operator.username} as ${operator.role}.`), operatorFields(operator, nameOf)),
    };
  },
});

const OPERATOR_COLUMNS: readonly Column[] = [
  { title: 'USERNAME', whole: true },
  { title: 'ROLE', whole: true },
  { title: 'OPERATOR ID', whole: true, spare: 1 },
  { title: 'ADDED' },
  { title: 'REMOVED' },
  { title: 'ADDED BY', wide: true },
  { title: 'PUBLIC KEY', wide: true },
];

/** `orch operator list`. */
export const listOperators = defineCommand({
  examples: ['orch operator list'],
  access: 'viewer',
  columns: OPERATOR_COLUMNS,
  options: { includeRemoved: flag('include removed operators') },
  run: async (context, { includeRemoved }) => {
    const api = await context.api();
    const operators = await api.call('listOperators', {
      query: { include_removed: includeRemoved },
      signal: context.signal,
    });
    return {
      body: operators,
      names: operators.map(({ username }) => username),
      view: operatorTable(
        operators,
        await operatorNames(context, api),
        timeCells(context.clock.now(), context.globals),
      ),
    };
  },
});

/** `orch operator show`. */
export const showOperator = defineCommand({
  examples: ['orch operator show ada'],
  access: 'viewer',
  args: { operator: argument('OPERATOR', 'username, operator ID, or a unique prefix', 'operator') },
  run: async (context, input) => {
    const api = await context.api();
    const operator = await findOperator(api, input.operator, context.signal);
    const nameOf = await operatorNames(context, api);
    return { body: operator, names: [operator.operator_id], view: operatorFields(operator, nameOf) };
  },
});

/** `orch operator remove`. */
export const removeOperator = defineCommand({
  examples: ['orch operator remove ada'],
  detail: ['All sessions of the operator end at once. The last active admin cannot be removed.'],
  access: 'admin',
  consent: true,
  args: { operator: argument('OPERATOR', 'username, operator ID, or a unique prefix', 'operator') },
  run: async (context, input) => {
    const api = await context.api();
    const { operator_id, username, role } = await findOperator(api, input.operator, context.signal);
    await context.prompt.consent(`Remove the operator ${username} (${role}, ${operator_id})?`);
    await api.call('removeOperator', { params: { operator_id }, signal: context.signal });
    return { names: [operator_id], view: lines(`Removed ${username}.`) };
  },
});

const keyPath = ({ env, globals }: Context): string => globals.keyFile ?? (env.ORCH_KEY_FILE || standardKeyPath(env));

export async function newPassphrase({ prompt }: Context): Promise<string> {
  const instead = 'leave out --passphrase for a key that programs use';
  const first = await prompt.secret('New passphrase:', instead);
  if (first === '') throw new Fault('usage', 'the passphrase is empty, so nothing was written');
  const second = await prompt.secret('Once more:', instead);
  if (first !== second) throw new Fault('usage', 'the two passphrases differ, so nothing was written');
  return first;
}

export function makeDirectory(path: string): void {
  try {
    makeOwnDirectory(path);
  } catch (cause) {
    throw new Fault('key_unwritable', `the directory ${path} cannot be made`, { cause });
  }
}

function describe(path: string, key: KeyObject) {
  const publicKey = publicKeyOfKeyObject(key);
  const id = operatorIdOf(publicKey);
  return {
    body: { operator_id: id, public_key: publicKey, key_file: path },
    names: [publicKey],
    view: stack(
      fields(['Key file', path], ['Public key', publicKey], ['Operator ID', groupsOfFour(id)]),
      lines(
        `An admin adds you with: orch operator add ${publicKey} --username NAME`,
        'An orchestrator that you start yourself makes you its first admin: orch serve',
      ),
    ),
  };
}

/** Shortest accepted prefix of an operator ID. */
const LEAST = 4;

/**
 * Finds an operator by username, operator ID or unique ID prefix. A username means its current holder, else its only removed
 * holder. Throws `operator_not_found`, or `usage` if ambiguous.
 */
export async function findOperator(api: ApiClient, text: string, signal: AbortSignal): Promise<Operator> {
  const all = await api.call('listOperators', { query: { include_removed: true }, signal });
  const exact = all.find(({ operator_id }) => operator_id === text);
  if (exact) return exact;
  const named = all.filter(({ username }) => username === text);
  const holder = named.find(({ removed_at }) => removed_at === null) ?? named[0];
  if (holder && (holder.removed_at === null || named.length === 1)) return holder;
  if (holder) {
    throw new Fault('usage', `${named.length} removed operators have the name "${text}":\n${listOf(named)}`, {
      hint: 'name one by its ID',
    });
  }
  const prefix = text.replaceAll(' ', '').toLowerCase();
  const fitting = prefix.length < LEAST ? [] : all.filter(({ operator_id }) => operator_id.startsWith(prefix));
  const [first, ...others] = fitting;
  if (first && others.length === 0) return first;
  if (first) {
    throw new Fault('usage', `"${text}" begins the IDs of ${fitting.length} operators:\n${listOf(fitting)}`);
  }
  const meant = nearest(
    text,
    all.map(({ username }) => username),
  );
  throw new Fault('operator_not_found', `there is no operator "${text}"`, {
    hint: meant === null ? 'list them with: orch operator list' : `did you mean "${meant}"?`,
  });
}

const listOf = (operators: readonly Operator[]): string =>
  operators.map(({ operator_id, username }) => `  ${operator_id}  ${username}`).join('\n');

/** The table of operators. */
export const operatorTable = (operators: readonly Operator[], nameOf: NameOfOperator, timeOf: TimeCell): TableView => ({
  kind: 'table',
  columns: OPERATOR_COLUMNS,
  rows: operators.map((operator) => [
    operator.username,
    roleCell(operator, timeOf),
    operator.operator_id,
    timeOf(operator.added_at),
    timeOf(operator.removed_at),
    nameOf(operator.added_by),
    operator.public_key,
  ]),
  empty: 'No operators.',
});

/** Returns the role, and what else says how long it counts. */
function roleCell({ role, robot, expires_at }: Operator, timeOf: TimeCell): string {
  const kind = robot === true ? `${role}, robot` : role;
  return expires_at === undefined ? kind : `${kind}, end ${textOf(timeOf(expires_at))}`;
}

const textOf = (cell: TableCell): string => (typeof cell === 'object' && 'text' in cell ? cell.text : String(cell));

export function operatorFields(operator: Operator, nameOf: NameOfOperator): FieldsView {
  const removed: readonly (readonly [string, string])[] =
    operator.removed_at === null
      ? []
      : [['Removed', `${formatTime(operator.removed_at)} by ${nameOf(operator.removed_by ?? 'unknown')}`]];
  return fieldsOf([
    ['Username', operator.username],
    ['Role', operator.robot ? `${operator.role}, robot` : operator.role],
    ...endFields(operator),
    ...(operator.grants ?? []).map((grant): [string, string] => ['Grant', sayGrant(grant)]),
    ['Operator ID', groupsOfFour(operator.operator_id)],
    ['Public key', operator.public_key],
    [
      'Added',
      `${formatTime(operator.added_at)} by ${nameOf(operator.added_by)}${operator.bootstrap ? ' (the first one)' : ''}`,
    ],
    ...removed,
  ]);
}

function endFields({ expires_at, robot, last_used_at = null }: Operator): readonly (readonly [string, string])[] {
  const end: [string, string][] = expires_at === undefined ? [] : [['Until', formatTime(expires_at)]];
  return robot === true ? [...end, ['Last used', last_used_at === null ? 'never' : formatTime(last_used_at)]] : end;
}

/** `orch login`. */
export const logIn = defineCommand({
  examples: ['orch login'],
  detail: ['Commands log in on their own if needed; this one only checks that it works.'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const session = await api.call('getSession', { signal: context.signal });
    const { username, role } = session.operator;
    return {
      body: session,
      names: [username],
      view: lines(`Logged in as ${username} (${role}) until ${formatTime(session.expires_at)}.`),
    };
  },
});

/** `orch logout`. */
export const logOut = defineCommand({
  examples: ['orch logout'],
  detail: ['Ends the session at the orchestrator and forgets its token on this machine.'],
  access: 'viewer',
  run: async (context) => {
    await (await context.api()).logOut();
    return { view: lines('Logged out.') };
  },
});
