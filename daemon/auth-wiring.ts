/** Joins the room of logins and operators with the settings and the certificate of the API; decides nothing. */
import { spkiFingerprint } from '../src/identity/fingerprint.js';
import type { ApiCertificate } from './api-certificate.js';
import { type Auth, createAuth } from './auth/auth.js';
import type { Core } from './core/core.js';

export interface AuthWiringOptions extends Pick<Core, 'clock' | 'db' | 'logger' | 'randomBytes' | 'settings' | 'uow'> {
  /** Of the API; null without TLS. */
  readonly certificate: ApiCertificate | null;
}

export function wireAuth({ db, uow, settings, clock, randomBytes, logger, certificate }: AuthWiringOptions): Auth {
  const { api_spki: proxySpki } = settings();
  const spki = proxySpki !== '' ? proxySpki : certificate === null ? null : spkiFingerprint(certificate.cert);
  const bound = spki === null ? null : Buffer.from(spki, 'hex');
  return createAuth({
    db,
    uow,
    clock,
    randomBytes: randomBytes,
    logger,
    sessionLifetimeMs: () => settings().session_token_expiry_secs * 1000,
    loginsPerMinute: settings()['limits.login_per_minute'],
    failedLoginsPerMinute: settings()['limits.failed_login_per_minute'],
    serverSpki: () => bound,
  });
}
