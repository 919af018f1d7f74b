/** What `orch profile create` and `update` take. */
import { resolve } from 'node:path';
import { parseFingerprint } from '../../../identity/fingerprint.js';
import type { Globals } from '../../global-options.js';
import { flag } from '../../option.js';

export const profileOptions = {
  allowPlainHttp: flag('speak plain HTTP to hosts beyond loopback'),
} as const;

/** The members of a profile that the global options, and those above, give. */
export function givenMembers(globals: Globals, { allowPlainHttp }: { readonly allowPlainHttp: boolean }) {
  const { tlsFingerprint, ca, keyFile, allowUnboundLogin } = globals;
  return {
    ...(tlsFingerprint === undefined ? {} : { tls_fingerprint: parseFingerprint(tlsFingerprint, '--tls-fingerprint') }),
    ...(ca === undefined ? {} : { ca: wherever(ca) }),
    ...(keyFile === undefined ? {} : { key_file: wherever(keyFile) }),
    ...(allowUnboundLogin ? { allow_unbound_login: true } : {}),
    ...(allowPlainHttp ? { allow_plain_http: true } : {}),
  };
}

/** A path that means the same file from every directory; `~/` is kept for the reader of the profile. */
const wherever = (path: string): string => (path.startsWith('~/') ? path : resolve(path));
