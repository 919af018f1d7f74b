/** The commands of `orch secrets`. */
import type { ApiClient, FullAnswer } from '../../client/api-client.js';
import type { NewRestriction, Secret, SecretUsage } from '../../contract/secrets.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { argument, defineCommand, optionalArgument } from '../define-command.js';
import { count, type TimeCell, textOrNone, timeCells } from '../format.js';
import { resolveNodes } from '../nodes/resolve-node.js';
import { flag, text } from '../options.js';
import { type Column, type FieldsView, fields, lines, stack, type TableView } from '../outcome.js';
import { parseAhead } from '../parse-time.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';
import { readTextFile } from '../text-files.js';

/** `orch secrets set`. */
export const setSecret = defineCommand({
  examples: [
    'orch secrets set DB_PASSWORD',
    'orch secrets set DB_PASSWORD -',
    'orch secrets set TLS_KEY --file key.pem --restrict-tags role=web --expires 90d',
    'orch secrets set DB_PASSWORD --description "of the shop"',
  ],
  detail: [
    'Members that are not given stay. Asks for the value, unless it is given or only other members of an existing',
    'secret change. With - the value comes from standard input, without its final newline; a file is taken as it is.',
    'All users of this machine can see --value in the process list.',
  ],
  access: 'operator',
  args: {
    name: argument('SECRET', 'letters, digits, "_", "." and "-"', 'secret'),
    source: optionalArgument('-', 'read the value from standard input'),
  },
  options: {
    file: text('FILE', 'read the value from a file', { completes: 'file' }),
    value: text('VALUE', 'the value itself'),
    description: text('TEXT', 'description; empty removes it'),
    expires: text('TIME', 'expiry: a date, RFC 3339, or a duration such as 90d'),
    clear_expires: flag('remove the expiry'),
    restrict_tags: text('SELECTOR', 'restrict it to agents that match; empty removes the restriction'),
    restrict_nodes: text('NODE,…', 'restrict it to these agents; empty removes the restriction'),
  },
  run: async (context, input) => {
    const { name } = input;
    if (input.expires !== undefined && input.clear_expires) {
      throw new Fault('usage', '--expires and --clear-expires exclude each other');
    }
    const hasValue = hasSource(input);
    const expires =
      input.expires === undefined ? undefined : parseAhead(input.expires, '--expires', context.clock.now());
    const api = await context.api();
    const found = await find(api, name, context.signal);
    const before = found?.body ?? null;
    const details = {
      ...(input.description === undefined ? {} : { description: input.description || null }),
      ...(expires === undefined ? {} : { expires_at: expires }),
      ...(input.clear_expires ? { expires_at: null } : {}),
      ...(await restrictionOf({ api, context, before }, input)),
    };
    const isAsked = before === null || Object.keys(details).length === 0;
    const value = hasValue || isAsked ? await readValue(context, name, input) : null;
    const { signal } = context;
    const secret =
      before === null
        ? await api.call('createSecret', { body: { name, value: value ?? '', ...details }, signal })
        : await api.call('updateSecret', {
            params: { name },
            body: { value, ...details },
            ifMatch: found?.headers.etag,
            signal,
          });
    const nameOf = await operatorNames(context, api);
    const done = before === null ? `Created ${name}.` : `Changed ${name}.`;
    return { body: secret, names: [name], view: stack(lines(done), secretFields(secret, nameOf)) };
  },
});

const SECRET_COLUMNS: readonly Column[] = [
  { title: 'SECRET', whole: true },
  { title: 'EXPIRES' },
  { title: 'ONLY FOR' },
  { title: 'UPDATED', spare: 2 },
  { title: 'BY', spare: 1 },
  { title: 'DESCRIPTION' },
];

/** `orch secrets list`. */
export const listSecrets = defineCommand({
  examples: ['orch secrets list'],
  access: 'viewer',
  columns: SECRET_COLUMNS,
  run: async (context) => {
    const api = await context.api();
    const secrets = await api.call('listSecrets', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: secrets,
      names: secrets.map(({ name }) => name),
      view: secretTable(secrets, nameOf, timeCells(context.clock.now(), context.globals)),
    };
  },
});

/** `orch secrets show`. */
export const showSecret = defineCommand({
  examples: ['orch secrets show DB_PASSWORD'],
  detail: ['A value is never shown. Read it where it was applied, or set a new one if it is lost.'],
  access: 'viewer',
  args: { name: argument('SECRET', 'name of the secret', 'secret') },
  run: async (context, { name }) => {
    const api = await context.api();
    const request = { params: { name }, signal: context.signal };
    const secret = await api.call('getSecret', request);
    const usage = await api.call('getSecretUsage', request);
    const nameOf = await operatorNames(context, api);
    const { modules, values = [], agents } = usage;
    return {
      body: { ...secret, usage: { modules, values, agents } },
      names: [secret.name],
      view: stack(secretFields(secret, nameOf), usageFields(usage)),
    };
  },
});

/** `orch secrets remove`. */
export const removeSecret = defineCommand({
  examples: ['orch secrets remove DB_PASSWORD'],
  detail: ['Applied values stay on the agents. Modules that use the secret cannot be applied until it exists again.'],
  access: 'operator',
  consent: true,
  args: { name: argument('SECRET', 'name of the secret', 'secret') },
  run: async (context, { name }) => {
    const api = await context.api();
    const request = { params: { name }, signal: context.signal };
    const { modules, values = [], agents } = await api.call('getSecretUsage', request);
    const sets = values.length === 0 ? '' : ` and ${count(values.length, 'value set')}`;
    const use = `named in ${count(modules.length, 'module')}${sets}, held by ${count(agents.length, 'agent')}`;
    await context.prompt.consent(`Delete the secret ${name} (${use})?`);
    await api.call('removeSecret', request);
    return { names: [name], view: lines(`Deleted ${name}.`) };
  },
});

async function find(api: ApiClient, name: string, signal: AbortSignal): Promise<FullAnswer<'getSecret'> | null> {
  try {
    return await api.callWithHeaders('getSecret', { params: { name }, signal });
  } catch (error) {
    if (isFault(error, 'secret_not_found')) return null;
    throw error;
  }
}

interface Place {
  readonly api: ApiClient;
  readonly context: Context;
  readonly before: Secret | null;
}

interface RestrictionInput {
  readonly restrict_tags: string | undefined;
  readonly restrict_nodes: string | undefined;
}

/** Returns the new restriction. A part that is not given stays unchanged. */
async function restrictionOf(
  { api, context, before }: Place,
  { restrict_tags: tags, restrict_nodes: nodes }: RestrictionInput,
): Promise<{ restriction?: NewRestriction | null }> {
  if (tags === undefined && nodes === undefined) return {};
  const names =
    nodes
      ?.split(',')
      .map((node) => node.trim())
      .filter((node) => node !== '') ?? [];
  const found = names.length === 0 ? [] : await resolveNodes(api, names, { signal: context.signal });
  const ids = nodes === undefined ? (before?.restriction?.node_ids ?? null) : found.map(({ node_id }) => node_id);
  const selector = tags === undefined ? (before?.restriction?.tags ?? null) : tags || null;
  const isEmpty = ids === null || ids.length === 0;
  return { restriction: isEmpty && selector === null ? null : { node_ids: isEmpty ? null : ids, tags: selector } };
}

/** Sources of a secret's value beside the prompt. */
export interface ValueSources {
  readonly file: string | undefined;
  readonly value: string | undefined;
  /** `-` for standard input; other words are rejected. */
  readonly source: string | undefined;
}

/** Returns whether the value comes without a prompt. Throws `usage` for more than one source. */
export function hasSource({ file, value, source }: ValueSources): boolean {
  if (source !== undefined && source !== '-') {
    throw new Fault('usage', 'a value is not given as a word of its own', {
      hint: 'use --file FILE, - for standard input, or leave it out to be asked',
    });
  }
  const given = [file, value, source].filter((one) => one !== undefined).length;
  if (given > 1) throw new Fault('usage', 'give the value only once: --file, --value or -');
  return given === 1;
}

/** Reads the value; prompts for it if there is no other source. */
export async function readValue(context: Context, name: string, sources: ValueSources): Promise<string> {
  const { file, value, source } = sources;
  if (value !== undefined) return value;
  if (file !== undefined) return fromFile(context, file);
  // `echo` adds the newline; it is not part of the secret.
  if (source === '-') return (await context.readInput()).replace(/\r?\n$/, '');
  return context.prompt.secret(`Value of ${name}:`, 'give it with --file FILE, or pipe it in and add -');
}

function fromFile(context: Context, file: string): string {
  const text = readTextFile(file);
  if (/^[^\n]*\n$/.test(text)) context.warn(`${file} ends with a line end, which is part of the value now.`);
  return text;
}

/** The table of secrets, without their values. */
export const secretTable = (secrets: readonly Secret[], nameOf: NameOfOperator, timeOf: TimeCell): TableView => ({
  kind: 'table',
  columns: SECRET_COLUMNS,
  rows: secrets.map((secret) => [
    secret.name,
    timeOf(secondsOf(secret.expires_at)),
    textOrNone(restrictionText(secret.restriction)),
    timeOf(secondsOf(secret.updated_at)),
    nameOf(secret.updated_by),
    textOrNone(secret.description),
  ]),
  empty: 'No secrets. Make one with: orch secrets set NAME',
});

export function secretFields(secret: Secret, nameOf: NameOfOperator): FieldsView {
  return fields(
    ['Secret', secret.name],
    ['Description', textOrNone(secret.description)],
    ['Expires', secret.expires_at === null ? 'never' : shortTime(secret.expires_at)],
    ['Only for', restrictionText(secret.restriction) || 'every approved agent'],
    ['Created', `${shortTime(secret.created_at)} by ${nameOf(secret.created_by)}`],
    ['Updated', `${shortTime(secret.updated_at)} by ${nameOf(secret.updated_by)}`],
  );
}

/** Older orchestrators know no value sets. */
export const usageFields = ({ modules, values = [], agents }: SecretUsage): FieldsView =>
  fields(
    ['Modules', textOrNone(modules.join(', '))],
    ...(values.length === 0 ? [] : [['Value sets', values.join(', ')] as const]),
    [
      'Agents',
      textOrNone(
        agents.map(({ name, node_id, current }) => `${name ?? node_id}${current ? '' : ' (older value)'}`).join(', '),
      ),
    ],
  );

function restrictionText(restriction: Secret['restriction']): string {
  const { node_ids: nodes, tags } = restriction ?? { node_ids: [], tags: null };
  return [...(nodes.length === 0 ? [] : [count(nodes.length, 'agent')]), ...(tags === null ? [] : [tags])].join(
    ' and ',
  );
}

/** Removes the milliseconds of a timestamp. */
const secondsOf = (timestamp: string | null): number | null =>
  timestamp === null ? null : Math.floor(Date.parse(timestamp) / 1000);

const shortTime = (timestamp: string | null): string => (timestamp ?? '').replace(/\.\d{3}Z$/, 'Z');
