/** What the orchestrator says of its certificate: `GET /status` asks each time, and each parse takes a millisecond. */
import { X509Certificate } from 'node:crypto';
import { expect, it } from 'vitest';
import { ServedCertificate } from '../../daemon/served-certificate.js';
import { selfSignedP256 } from '../../src/identity/certificate.js';
import { spkiFingerprint } from '../../src/identity/fingerprint.js';
import { generateKey, privateKeyPem } from '../../src/identity/private-key.js';

function pair() {
  const privateKey = generateKey('p256');
  const cert = selfSignedP256({ privateKey, dnsNames: ['localhost'], addresses: ['127.0.0.1'] });
  return { cert, key: privateKeyPem(privateKey) };
}

it('parses a certificate once, and each renewed one', () => {
  const [first, second] = [pair(), pair()];
  const settings = () => ({ api_spki: '', tls_cert: '', tls_key: '' });
  const served = new ServedCertificate(first, { settings } as never);
  const spki = served.spki();
  expect(Buffer.from(spki ?? []).toString('hex')).toBe(spkiFingerprint(first.cert));
  expect(served.expiresAt()).toBe(Date.parse(new X509Certificate(first.cert).validTo));
  // The very same bytes, so nothing was parsed in between.
  expect(served.spki()).toBe(spki);
  Reflect.set(served, 'current', second);
  expect(Buffer.from(served.spki() ?? []).toString('hex')).toBe(spkiFingerprint(second.cert));
});
