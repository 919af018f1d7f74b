/** Which orchestrator to speak to, how to trust it and as whom: flag, then variable, then profile, then default. */

import { parseFingerprint } from '../identity/fingerprint.js';
import { Fault } from '../kernel/fault.js';
import { type Environment, expandHome, standardKeyPath } from './directories.js';
import type { Profile } from './profile.js';
import { type Profiles, requireProfile } from './profiles.js';
import { parseServerUrl, sameServer } from './server-url.js';

export const STANDARD_URL = 'https://127.0.0.1:4748';

/** As the command line gave them. */
export interface ConnectionFlags {
  readonly url?: string | undefined;
  readonly profile?: string | undefined;
  readonly tlsFingerprint?: string | undefined;
  readonly ca?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly allowUnboundLogin?: boolean | undefined;
  readonly allowPlainHttp?: boolean | undefined;
}

export interface ConnectionSources {
  readonly flags: ConnectionFlags;
  readonly env: Environment;
  readonly profiles: Profiles;
}

/** Where the operator's private key is. `from` names who said so, for messages. */
export type KeySource =
  | { readonly kind: 'file'; readonly path: string; readonly from: string }
  | { readonly kind: 'pem'; readonly pem: string; readonly from: string };

export interface Connection {
  /** Without a slash at the end of its path. */
  readonly url: URL;
  /** Name of the profile that these settings come from, or null. */
  readonly profile: string | null;
  /** SHA-256 of the SPKI of the certificate to accept, 64 lower-case hex digits; null when there is none. */
  readonly pin: string | null;
  /** File of the CA to verify with, or null. With a pin as well, both have to hold. */
  readonly ca: string | null;
  readonly key: KeySource;
  /** A session token from outside (`ORCH_TOKEN`): there is no login and no cache then. */
  readonly token: string | null;
  readonly allowUnboundLogin: boolean;
  readonly allowPlainHttp: boolean;
  /** The environment, for `HTTPS_PROXY`, `NO_PROXY` and the state directory. */
  readonly env: Environment;
}

/** @throws Fault `usage`, `invalid_config` or `profile_not_found` naming the flag, variable or profile that is wrong */
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

/** A profile that is named holds even for another URL; the default one only for its own. */
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

/** The first place that says anything about trust decides all of it. */
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
