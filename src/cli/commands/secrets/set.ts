/** `orch secrets set`. */
import type { ApiClient } from '../../../client/api-client.js';
import type { NewRestriction, Secret } from '../../../contract/secrets.js';
import { Fault, isFault } from '../../../kernel/fault.js';
import { argument, optionalArgument } from '../../argument.js';
import type { Context } from '../../context.js';
import { defineCommand } from '../../define-command.js';
import { resolveNodes } from '../../nodes/resolve-node.js';
import { operatorNames } from '../../operator-names.js';
import { flag, text } from '../../option.js';
import { lines, stack } from '../../view.js';
import { parseAhead } from '../../when.js';
import { hasSource, readValue } from './read-value.js';
import { secretFields } from './secret-view.js';

export const command = defineCommand({
  examples: [
    'orch secrets set DB_PASSWORD',
    'orch secrets set DB_PASSWORD -',
    'orch secrets set TLS_KEY --file key.pem --restrict-tags role=web --expires 90d',
    'orch secrets set DB_PASSWORD --description "of the shop"',
  ],
  detail: [
    'Makes the secret, or changes it: what is not given stays. Asks for the value, unless it is given or only the rest',
    'of a secret that is there is to be changed. With - the value is piped in, and a line end at its end is left out;',
    'a file is taken as it is. --value can be seen by everybody who lists the processes of this machine.',
  ],
  access: 'operator',
  args: {
    name: argument('SECRET', 'letters, digits, "_", "." and "-"', 'secret'),
    source: optionalArgument('-', 'read the value from standard input'),
  },
  options: {
    file: text('FILE', 'read the value from a file', { completes: 'file' }),
    value: text('VALUE', 'the value itself'),
    description: text('TEXT', 'what it is for; empty takes it away'),
    expires: text('TIME', 'when it ends: a date, RFC 3339, or how far ahead such as 90d'),
    clear_expires: flag('it never ends'),
    restrict_tags: text('SELECTOR', 'only agents whose tags match may have it; empty allows every tag'),
    restrict_nodes: text('NODE,…', 'only these agents may have it; empty allows every agent'),
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
    const before = await find(api, name, context.signal);
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
        : await api.call('updateSecret', { params: { name }, body: { value, ...details }, signal });
    const nameOf = await operatorNames(context, api);
    const done = before === null ? `Created ${name}.` : `Changed ${name}.`;
    return { body: secret, names: [name], view: stack(lines(done), secretFields(secret, nameOf)) };
  },
});

async function find(api: ApiClient, name: string, signal: AbortSignal): Promise<Secret | null> {
  try {
    return await api.call('getSecret', { params: { name }, signal });
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

/** The part that is not given stays. */
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
  const isNobody = ids === null || ids.length === 0;
  return { restriction: isNobody && selector === null ? null : { node_ids: isNobody ? null : ids, tags: selector } };
}
