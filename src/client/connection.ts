/** Resolves address, trust and key of a connection: flag, then variable, then profile, then default. */

import { parseFingerprint } from '../identity/fingerprint.js';
import { Fault } from '../kernel/fault.js';
import { API_PORT } from '../kernel/ports.js';
import { type Environment, expandHome, standardKeyPath } from './operator-files.js';
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
  | { readonly kind: 'pem'; readonly pem: string; readonly from: string };

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
export function resolveConnection(sources: ConnectionSources): Connection {
  const { flags, env } = sources;
  const url = chooseUrl(sources);
  const { name, profile } = chooseProfile(sources, url);
  return {
    url: url ?? parseServerUrl(profile?.url ?? STANDARD_URL, name === null ? 'the default' : `profile ${name}`),
    profile: name,
    ...chooseTrust(sources, profile, name),
    key: chooseKey(sources, profile, name),
    token: env.ORCH_TOKEN || null,
    allowUnboundLogin:
      choose(flags.allowUnboundLogin, env, 'ORCH_ALLOW_UNBOUND_LOGIN') ?? profile?.allow_unbound_login ?? false,
    allowPlainHttp: choose(flags.allowPlainHttp, env, 'ORCH_ALLOW_PLAIN_HTTP') ?? profile?.allow_plain_http ?? false,
    env,
  };
}

function chooseUrl({ flags, env }: ConnectionSources): URL | null {
  if (flags.url !== undefined) return parseServerUrl(flags.url, '--url');
  return env.ORCH_URL ? parseServerUrl(env.ORCH_URL, 'ORCH_URL') : null;
}

interface Chosen {
  readonly name: string | null;
  readonly profile: Profile | null;
}

/** A named profile also applies to another URL; the default profile applies only to its own URL. */
function chooseProfile({ flags, env, profiles }: ConnectionSources, url: URL | null): Chosen {
  const named = flags.profile ?? (env.ORCH_PROFILE || undefined);
  if (named !== undefined) {
    const from = flags.profile === undefined ? 'ORCH_PROFILE' : '--profile';
    return { name: named, profile: requireProfile(profiles, named, from) };
  }
  const { standard } = profiles;
  if (standard === null) return { name: null, profile: null };
  const profile = requireProfile(profiles, standard, `"default" in ${profiles.path}`);
  if (url !== null && !sameServer(url, parseServerUrl(profile.url, `profile ${standard}`))) {
    return { name: null, profile: null };
  }
  return { name: standard, profile };
}

type Trust = Pick<Connection, 'pin' | 'ca'>;

/** The first source with a pin or a CA decides both. */
function chooseTrust({ flags, env }: ConnectionSources, profile: Profile | null, name: string | null): Trust {
  if (flags.tlsFingerprint !== undefined || flags.ca !== undefined) {
    return { pin: pinOf(flags.tlsFingerprint, '--tls-fingerprint', 'usage'), ca: flags.ca ?? null };
  }
  if (env.ORCH_TLS_FINGERPRINT || env.ORCH_CA) {
    return { pin: pinOf(env.ORCH_TLS_FINGERPRINT, 'ORCH_TLS_FINGERPRINT', 'usage'), ca: env.ORCH_CA || null };
  }
  const pin = pinOf(profile?.tls_fingerprint, `tls_fingerprint of profile ${name}`, 'invalid_config');
  return { pin, ca: profile?.ca === undefined ? null : expandHome(env, profile.ca) };
}

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
  if (env.ORCH_KEY) return { kind: 'pem', pem: env.ORCH_KEY, from: 'ORCH_KEY' };
  if (env.ORCH_KEY_FILE) return { kind: 'file', path: env.ORCH_KEY_FILE, from: 'ORCH_KEY_FILE' };
  if (profile?.key_file) return { kind: 'file', path: expandHome(env, profile.key_file), from: `profile ${name}` };
  return { kind: 'file', path: standardKeyPath(env), from: 'the default' };
}

function choose(flag: boolean | undefined, env: Environment, variable: string): boolean | undefined {
  if (flag !== undefined) return flag;
  const given = env[variable];
  if (!given) return undefined;
  if (/^(1|true|yes)$/i.test(given)) return true;
  if (/^(0|false|no)$/i.test(given)) return false;
  throw new Fault('usage', `${variable} is ${JSON.stringify(given)}, which is neither true nor false`);
}
