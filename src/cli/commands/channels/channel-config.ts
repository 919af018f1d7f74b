/** The configuration of a channel as the command line gives it. */
import type { ChannelType } from '../../../contract/channels.js';
import { Fault, messageOf } from '../../../kernel/fault.js';
import type { Context } from '../../context.js';
import { flagOf, integer, text } from '../../option.js';
import { readTextFile } from '../../read-text.js';

export const configOptions = {
  to: text('URL', "where to send: the webhook's address; of ntfy the server, when it is not the public one"),
  secret: text('TEXT', 'webhook: signs each delivery'),
  topic: text('TOPIC', 'ntfy: the topic'),
  token: text('TOKEN', 'ntfy: access token'),
  priority: integer('N', 'ntfy: 1 to 5, instead of that of the severity', 1),
  config: text('FILE', 'the whole configuration as JSON; - for standard input', { completes: 'file' }),
};

export interface ConfigInput {
  readonly to: string | undefined;
  readonly secret: string | undefined;
  readonly topic: string | undefined;
  readonly token: string | undefined;
  readonly priority: number | undefined;
  readonly config: string | undefined;
}

type Part = Exclude<keyof ConfigInput, 'config'>;

/** The member that an option is in the configuration of a type. */
const MEMBERS: Readonly<Record<ChannelType, Readonly<Partial<Record<Part, string>>>>> = {
  webhook: { to: 'url', secret: 'secret' },
  discord: { to: 'webhook_url' },
  slack: { to: 'webhook_url' },
  ntfy: { to: 'url', topic: 'topic', token: 'token', priority: 'priority' },
};

const PARTS: readonly Part[] = ['to', 'secret', 'topic', 'token', 'priority'];

/**
 * The members that were given; an empty text takes one away. Null when nothing was given.
 * Throws `usage` for an option that the type does not have.
 */
export async function givenConfig(
  context: Context,
  type: ChannelType,
  input: ConfigInput,
): Promise<Readonly<Record<string, unknown>> | null> {
  const given = PARTS.filter((part) => input[part] !== undefined);
  if (input.config !== undefined) {
    if (given.length > 0) throw new Fault('usage', '--config and the options for single values exclude each other');
    return readConfigFile(context, input.config);
  }
  const config: Record<string, unknown> = {};
  for (const part of given) {
    const member = MEMBERS[type][part];
    if (member === undefined) throw new Fault('usage', `${flagOf(part)} is not for channels of the type ${type}`);
    config[member] = input[part] === '' ? null : input[part];
  }
  return given.length === 0 ? null : config;
}

/** Asks for the one thing that Discord and Slack need and that is secret as a whole. */
export async function askedConfig(context: Context, type: ChannelType): Promise<Readonly<Record<string, unknown>>> {
  if (MEMBERS[type].to !== 'webhook_url') {
    const needed = type === 'ntfy' ? '--topic' : '--to';
    throw new Fault('usage', `a channel of the type ${type} needs ${needed}`, {
      hint: 'orch channels add --help shows an example of each type',
    });
  }
  const webhook_url = await context.prompt.secret(`Webhook URL of ${type}:`, 'give it with --to or --config');
  return { webhook_url };
}

async function readConfigFile(context: Context, file: string): Promise<Readonly<Record<string, unknown>>> {
  const source = file === '-' ? await context.readInput() : readTextFile(file);
  try {
    const config: unknown = JSON.parse(source);
    if (typeof config === 'object' && config !== null && !Array.isArray(config)) return { ...config };
  } catch (cause) {
    throw new Fault('usage', `--config ${file} does not hold JSON: ${messageOf(cause)}`, { cause });
  }
  throw new Fault('usage', `--config ${file} must hold a JSON object`);
}
