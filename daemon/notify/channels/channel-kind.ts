/** Defines a channel type: its configuration schema, its secret members and the request it sends. */
import type { Static, TObject } from 'typebox';
import { MASKED } from '../../../src/contract/channels.js';
import { Fault, type FaultDetail } from '../../../src/kernel/fault.js';
import type { JsonObject, JsonValue } from '../../../src/kernel/json.js';
import { validator } from '../../../src/kernel/validator.js';
import type { Message } from '../message.js';
import type { Reply } from '../response-reader.js';

/** An HTTP request of a channel, with a JSON body. */
export interface Outgoing {
  readonly url: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}

/** A validated channel configuration. */
export interface ReadConfig {
  /** Configuration to store, with secrets. */
  readonly config: JsonObject;
  /** Configuration to show to those who may change it, without secrets. */
  readonly masked: JsonObject;
  /** Configuration to show to others: also without what lets its holder send to the destination or read there. */
  readonly hidden: JsonObject;
  /** URL that it sends to, and the name of the member that holds the URL. */
  readonly destination: { readonly member: string; readonly url: string };
  /**
   * Returns the request for a message.
   * @param now Unix milliseconds of this attempt
   */
  request(message: Message, now: number): Outgoing;
}

export interface ChannelKind {
  /** Returns the milliseconds that a refusal asks to wait, by means of this type's service alone; null for none. */
  readonly pauseOf: (reply: Reply) => number | null;
  /** Members whose value, or whose URL path, is never shown. */
  readonly secretMembers: readonly string[];
  /** Validates a configuration. Throws `invalid_body` with every mistake. */
  read(given: unknown): ReadConfig;
  /** Returns mistakes that only new configurations are refused for; `read` must still accept a stored one with them. */
  newMistakes(config: JsonObject): readonly FaultDetail[];
}

interface ChannelKindSpec<S extends TObject> {
  readonly schema: S;
  /** Members shown as `MASKED`. */
  readonly secrets: readonly (string & keyof Static<S>)[];
  /** Members that hold a URL. */
  readonly urls: readonly (string & keyof Static<S>)[];
  /** Members shown as `MASKED` to those who may not change channels. */
  readonly hidden?: readonly (string & keyof Static<S>)[];
  /** Members that hold the URL of a server, without a path. */
  readonly servers?: readonly (string & keyof Static<S>)[];
  /** Members that hold a URL with a secret path. */
  readonly secretUrls: readonly (string & keyof Static<S>)[];
  /** Destination when no URL is configured. */
  readonly standardUrl?: string;
  /** Returns the mistake in the value of a secret member, or null. */
  readonly secretMistake?: (name: string, value: string) => string | null;
  readonly request: (config: Static<S>, message: Message, now: number) => Outgoing;
  readonly pauseOf?: (reply: Reply) => number | null;
}

/** Maximum bytes of a request body. */
const MOST_BYTES = 20_000;

/** Returns the channel type of a spec. */
export function defineChannel<S extends TObject>(spec: ChannelKindSpec<S>): ChannelKind {
  const { schema, secrets, urls, secretUrls, hidden = [], servers = [], standardUrl = '', secretMistake } = spec;
  const addresses = [...urls, ...servers, ...secretUrls];
  const { check, problems } = validator(schema);
  return {
    pauseOf: spec.pauseOf ?? (() => null),
    secretMembers: [...secrets, ...secretUrls],
    read: (given) => {
      const config = withoutNulls(given);
      const errors: FaultDetail[] = problems(config).map((one) => ({ ...one, path: `/config${one.path}` }));
      for (const name of servers) errors.push(...serverProblems(config[name], `/config/${name}`));
      for (const name of addresses) errors.push(...urlProblems(config[name], `/config/${name}`));
      if (errors.length > 0 || !check(config)) throw invalidConfig(errors);
      return {
        config,
        masked: mask(config, secrets, secretUrls),
        hidden: mask(config, [...secrets, ...hidden], [...secretUrls, ...urls]),
        destination: destinationOf(config, addresses, standardUrl),
        request: (message, now) => bounded(message, (one) => spec.request(config, one, now)),
      };
    },
    newMistakes: (config) =>
      Object.entries(config).flatMap(([name, value]) => {
        if (typeof value !== 'string') return [];
        const message =
          textMistake(value, addresses.includes(name)) ??
          (secrets.includes(name) ? secretMistake?.(name, value) : null);
        return message == null ? [] : [{ path: `/config/${name}`, message }];
      }),
  };
}

/**
 * Returns the mistake in a text, or null. The URL parser silently drops tabs and line breaks, and a header must never
 * contain them, so control characters are refused here.
 */
function textMistake(value: string, isUrl: boolean): string | null {
  if (/[\u0000-\u001f\u007f-\u009f]/.test(value)) return 'must not hold line breaks or other control characters';
  return isUrl && /\s/.test(value) ? 'must not hold white space' : null;
}

function destinationOf(
  config: JsonObject,
  addresses: readonly string[],
  standardUrl: string,
): ReadConfig['destination'] {
  const member = addresses.find((name) => typeof config[name] === 'string') ?? addresses[0] ?? '';
  return { member, url: String(config[member] ?? standardUrl) };
}

/**
 * Returns the fault `invalid_body`.
 * @param errors mistakes, each with a pointer into the request body
 */
export const invalidConfig = (errors: readonly FaultDetail[]): Fault =>
  new Fault(
    'invalid_body',
    `the config is not valid: ${errors.map(({ path, message }) => `${path} ${message}`).join('; ')}`,
    {
      errors,
    },
  );

/** Returns a URL with its secret path and query masked. */
const maskedUrl = (url: string): string => `${new URL(url).origin}/${MASKED}`;

function withoutNulls(given: unknown): Record<string, JsonValue> {
  if (typeof given !== 'object' || given === null) return {};
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

function urlProblems(value: JsonValue | undefined, path: string): readonly FaultDetail[] {
  if (typeof value !== 'string') return [];
  const url = parse(value);
  if (url === null) return [{ path, message: 'must be a URL' }];
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return [{ path, message: 'must be an https URL' }];
  if (url.username !== '' || url.password !== '') return [{ path, message: 'must not hold a user name or password' }];
  return [];
}

function serverProblems(value: JsonValue | undefined, path: string): readonly FaultDetail[] {
  const url = typeof value === 'string' ? parse(value) : null;
  if (url === null || (url.pathname === '/' && url.search === '')) return [];
  return [{ path, message: 'must be the server alone, without a path' }];
}

function parse(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function mask(config: JsonObject, secrets: readonly string[], secretUrls: readonly string[]): JsonObject {
  const masked: Record<string, JsonValue> = { ...config };
  for (const name of secrets) if (name in masked) masked[name] = MASKED;
  for (const name of secretUrls) masked[name] = maskedUrl(String(config[name]));
  return masked;
}

/** Returns the request, without metadata when the body is too long: metadata is the only part that can be large. */
function bounded(message: Message, request: (message: Message) => Outgoing): Outgoing {
  const outgoing = request(message);
  return Buffer.byteLength(outgoing.body) <= MOST_BYTES ? outgoing : request({ ...message, metadata: {} });
}
