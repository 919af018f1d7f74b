/** Resolves address, trust and key of a connection: flag, then variable, then profile, then default. */

import { parseFingerprint } from '../identity/fingerprint.js';
import { Fault } from '../kernel/fault.js';
import { API_PORT } from '../kernel/ports.js';
import { booleanVariable, type Environment, expandHome, standardKeyPath } from './operator-files.js';
import type { Profile } from './profile-file.js';
import { type Profiles, requireProfile } from './profiles.js';
import { parseServerUrl, sameServer } from './server-url.js';

const STANDARD_URL = `https://127.0.0.1:${API_PORT}`;

/** Flags of the command line. */
export interface ConnectionFlags {
  readonly url?: string | undefined;
  readonly profile?: string | undefined;
  readonly tlsFingerprint?: string | undefined;
  readonly ca?: string | undefined;
  readonly keyFile?: string | undefined;
  /** A key of the ssh-agent: its public key or comment, or empty for the only one. */
  readonly sshAgent?: string | undefined;
  readonly allowUnboundLogin?: boolean | undefined;
  readonly allowPlainHttp?: boolean | undefined;
}

interface ConnectionSources {
  readonly flags: ConnectionFlags;
  readonly env: Environment;
  readonly profiles: Profiles;
}

/** Source of the operator's private key. `from` names the flag, variable or profile, for messages. */
export type KeySource =
  | { readonly kind: 'file'; readonly path: string; readonly from: string }
  | { readonly kind: 'pem'; readonly pem: string; readonly from: string }
  /** `wanted` is the public key or the comment of a key in the ssh-agent; null for its only one. */
  | { readonly kind: 'agent'; readonly wanted: string | null; readonly from: string };

export interface Connection {
  /** URL without a trailing slash. */
  readonly url: URL;
  /** Name of the profile with these settings, or null. */
  readonly profile: string | null;
  /** SHA-256 of the SPKI of the pinned certificate, as 64 lower-case hex digits; null without a pin. */
  readonly pin: string | null;
  /** Path of the CA to verify with, or null. With a pin and a CA, both checks must pass. */
  readonly ca: string | null;
  readonly key: KeySource;
  /** Session token from `ORCH_TOKEN`, or null. With one, the client neither logs in nor uses the cache. */
  readonly token: string | null;
  readonly allowUnboundLogin: boolean;
  readonly allowPlainHttp: boolean;
  /** Environment, for `HTTPS_PROXY`, `NO_PROXY` and the state directory. */
  readonly env: Environment;
}

/** Throws `usage`, `invalid_config` or `profile_not_found` that names the wrong flag, variable or profile. */
export const resolveConnection = (sources: ConnectionSources): Connection => explainConnection(sources).connection;

/** Where each member of a connection comes from: a flag, a variable, a profile, or `default`. */
export interface ConnectionOrigins {
  readonly url: string;
  readonly profile: string;
  readonly trust: string;
  readonly key: string;
  readonly token: string;
  readonly allowUnboundLogin: string;
  readonly allowPlainHttp: string;
}

/** Resolves a connection, and says where each of its members comes from. Throws like `resolveConnection`. */
export function explainConnection(sources: ConnectionSources): {
  readonly connection: Connection;
  readonly origins: ConnectionOrigins;
} {
  const { flags, env } = sources;
  const url = chooseUrl(sources);
  const chosen = chooseProfile(sources, url?.value ?? null);
  const { name, profile } = chosen;
  const ofProfile = name === null ? DEFAULT : `profile ${name}`;
  const trust = chooseTrust(sources, profile, name);
  const key = chooseKey(sources, profile, name);
  const choose = (flag: keyof typeof SWITCHES): Sourced<boolean> => {
    const { flag: spelled, variable, member } = SWITCHES[flag];
    if (flags[flag] !== undefined) return { value: flags[flag], from: spelled };
    const given = booleanVariable(env, variable);
    if (given !== undefined) return { value: given, from: variable };
    const stored = profile?.[member];
    return stored === undefined ? { value: false, from: DEFAULT } : { value: stored, from: ofProfile };
  };
  const unbound = choose('allowUnboundLogin');
  const plain = choose('allowPlainHttp');
  return {
    connection: {
      url: url?.value ?? parseServerUrl(profile?.url ?? STANDARD_URL, name === null ? 'the default' : ofProfile),
      profile: name,
      ...trust.value,
      key,
      token: env.ORCH_TOKEN || null,
      allowUnboundLogin: unbound.value,
      allowPlainHttp: plain.value,
      env,
    },
    origins: {
      url: url?.from ?? ofProfile,
      profile: chosen.from,
      trust: trust.from,
      key: key.from === 'the default' ? DEFAULT : key.from,
      token: env.ORCH_TOKEN ? 'ORCH_TOKEN' : DEFAULT,
      allowUnboundLogin: unbound.from,
      allowPlainHttp: plain.from,
    },
  };
}

const DEFAULT = 'default';

const SWITCHES = {
  allowUnboundLogin: {
    flag: '--allow-unbound-login',
    variable: 'ORCH_ALLOW_UNBOUND_LOGIN',
    member: 'allow_unbound_login',
  },
  allowPlainHttp: { flag: '--allow-plain-http', variable: 'ORCH_ALLOW_PLAIN_HTTP', member: 'allow_plain_http' },
} as const;

/** A value with the flag, variable or profile that gave it. */
interface Sourced<T> {
  readonly value: T;
  readonly from: string;
}

function chooseUrl({ flags, env }: ConnectionSources): Sourced<URL> | null {
  if (flags.url !== undefined) return { value: parseServerUrl(flags.url, '--url'), from: '--url' };
  return env.ORCH_URL ? { value: parseServerUrl(env.ORCH_URL, 'ORCH_URL'), from: 'ORCH_URL' } : null;
}

interface Chosen {
  readonly name: string | null;
  readonly profile: Profile | null;
  readonly from: string;
}

/** A named profile also applies to another URL; the default profile applies only to its own URL. */
function chooseProfile({ flags, env, profiles }: ConnectionSources, url: URL | null): Chosen {
  const named = flags.profile ?? (env.ORCH_PROFILE || undefined);
  if (named !== undefined) {
    const from = flags.profile === undefined ? 'ORCH_PROFILE' : '--profile';
    return { name: named, profile: requireProfile(profiles, named, from), from };
  }
  const { standard } = profiles;
  if (standard === null) return { name: null, profile: null, from: DEFAULT };
  const profile = requireProfile(profiles, standard, `"default" in ${profiles.path}`);
  if (url !== null && !sameServer(url, parseServerUrl(profile.url, `profile ${standard}`))) {
    return { name: null, profile: null, from: DEFAULT };
  }
  return { name: standard, profile, from: `"default" in ${profiles.path}` };
}

type Trust = Pick<Connection, 'pin' | 'ca'>;

/** The first source with a pin or a CA decides both. */
function chooseTrust({ flags, env }: ConnectionSources, profile: Profile | null, name: string | null): Sourced<Trust> {
  if (flags.tlsFingerprint !== undefined || flags.ca !== undefined) {
    const value = { pin: pinOf(flags.tlsFingerprint, '--tls-fingerprint', 'usage'), ca: flags.ca ?? null };
    return { value, from: given({ '--tls-fingerprint': flags.tlsFingerprint, '--ca': flags.ca }) };
  }
  if (env.ORCH_TLS_FINGERPRINT || env.ORCH_CA) {
    const value = { pin: pinOf(env.ORCH_TLS_FINGERPRINT, 'ORCH_TLS_FINGERPRINT', 'usage'), ca: env.ORCH_CA || null };
    return { value, from: given({ ORCH_TLS_FINGERPRINT: env.ORCH_TLS_FINGERPRINT, ORCH_CA: env.ORCH_CA }) };
  }
  const pin = pinOf(profile?.tls_fingerprint, `tls_fingerprint of profile ${name}`, 'invalid_config');
  const ca = profile?.ca === undefined ? null : expandHome(env, profile.ca);
  return { value: { pin, ca }, from: pin === null && ca === null ? DEFAULT : `profile ${name}` };
}

const given = (sources: Readonly<Record<string, string | undefined>>): string =>
  Object.keys(sources)
    .filter((name) => sources[name])
    .join(', ');

function pinOf(text: string | undefined, from: string, code: 'usage' | 'invalid_config'): string | null {
  if (!text) return null;
  try {
    return parseFingerprint(text, from);
  } catch (error) {
    throw error instanceof Fault ? new Fault(code, error.message, { hint: error.hint ?? '' }) : error;
  }
}

function chooseKey({ flags, env }: ConnectionSources, profile: Profile | null, name: string | null): KeySource {
  if (flags.keyFile !== undefined) return { kind: 'file', path: flags.keyFile, from: '--key-file' };
  if (flags.sshAgent !== undefined) return agentKey(flags.sshAgent, '--ssh-agent');
  if (env.ORCH_KEY) return { kind: 'pem', pem: env.ORCH_KEY, from: 'ORCH_KEY' };
  if (env.ORCH_SSH_AGENT && !OFF.test(env.ORCH_SSH_AGENT)) return agentKey(env.ORCH_SSH_AGENT, 'ORCH_SSH_AGENT');
  if (env.ORCH_KEY_FILE) return { kind: 'file', path: env.ORCH_KEY_FILE, from: 'ORCH_KEY_FILE' };
  if (profile?.key_file) return { kind: 'file', path: expandHome(env, profile.key_file), from: `profile ${name}` };
  return { kind: 'file', path: standardKeyPath(env), from: 'the default' };
}

const OFF = /^(0|false|no)$/i;

const agentKey = (wanted: string, from: string): KeySource => ({
  kind: 'agent',
  wanted: wanted === '' || /^(1|true|yes)$/i.test(wanted) ? null : wanted,
  from,
});
