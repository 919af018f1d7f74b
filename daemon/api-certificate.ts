/** The certificate and private key of the API: from the settings, or self-signed and kept in the data directory. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { selfSignedP256 } from '../src/identity/certificate.js';
import { spkiFingerprint } from '../src/identity/fingerprint.js';
import { isEncrypted, loadOrCreateKey } from '../src/identity/private-key.js';
import { Fault, messageOf } from '../src/kernel/fault.js';
import { hostProblem } from '../src/settings/advertised-host.js';
import type { Settings } from '../src/settings/serve.js';

/** Both fields are PEM. */
export interface ApiCertificate {
  readonly cert: string;
  readonly key: string;
}

/**
 * Returns the certificate and key to serve with, or null when the API runs without TLS. Throws `invalid_config` when
 * the configured files are unusable.
 * The self-signed key survives restarts, and with it the fingerprint that clients have pinned. The certificate is
 * renewed at each start for the host's current names and addresses, and written to `api.crt` for clients that want it
 * as a CA.
 */
export function apiCertificate(settings: Settings, dataDir: string): ApiCertificate | null {
  if (!settings.tls_enabled) return null;
  if (settings.tls_cert !== '') return given(settings.tls_cert, settings.tls_key);
  const privateKey = loadOrCreateKey(join(dataDir, 'api.key'), 'p256');
  const cert = selfSignedP256({ privateKey, ...namesOfThisHost(settings) });
  writeFileSync(join(dataDir, 'api.crt'), cert, { mode: 0o600 });
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

function given(certFile: string, keyFile: string): ApiCertificate {
  try {
    const given = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
    spkiFingerprint(given.cert);
    requirePair(given);
    return given;
  } catch (error) {
    throw new Fault('invalid_config', `cannot use tls_cert ${certFile} with tls_key ${keyFile}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/**
 * Throws when the key does not belong to the certificate. OpenSSL accepts a key of another type silently and then
 * fails every handshake.
 */
function requirePair({ cert, key }: ApiCertificate): void {
  const privateKey = readKey(key);
  if (!new X509Certificate(cert).checkPrivateKey(privateKey)) throw new Error('the key is not that of the certificate');
  createSecureContext({ cert, key });
}

function readKey(pem: string): KeyObject {
  if (isEncrypted(pem)) throw new Error('the key is encrypted with a passphrase, which a service cannot enter');
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new Error('the key cannot be read', { cause });
  }
}

function namesOfThisHost(settings: Settings): { readonly dnsNames: string[]; readonly addresses: string[] } {
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const stated = [settings.advertised_host, settings.api_host].filter((host) => host !== '');
  const addresses = [
    '127.0.0.1',
    '::1',
    ...own.map(({ address }) => address),
    ...stated.filter((host) => isIP(host) !== 0),
  ];
  // TLS compares names without the dot at the end of a complete one.
  const names = ['localhost', hostname(), ...stated.filter((host) => isIP(host) === 0)].map((name) =>
    name.replace(/\.$/, ''),
  );
  const any = new Set(['0.0.0.0', '::']);
  return {
    dnsNames: [...new Set(names.filter(isDnsName))],
    addresses: [...new Set(addresses.map((address) => address.replace(/%.*$/, '')))].filter(
      (address) => !any.has(address),
    ),
  };
}

/** Excludes names of the host that are no host names, because a certificate cannot hold them. */
const isDnsName = (name: string): boolean => isIP(name) === 0 && hostProblem(name) === null;
