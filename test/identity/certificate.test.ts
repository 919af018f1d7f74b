import { createHash, createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:https';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ipBytes, selfSignedEd25519, selfSignedP256 } from '../../src/identity/certificate.js';
import { formatFingerprint, parseFingerprint, spkiFingerprint } from '../../src/identity/fingerprint.js';
import { generateKey } from '../../src/identity/private-key.js';
import { faultOf, has, newIdentity, run, temporaryDirectory } from '../support/identity.js';

const withOpenssl = it.runIf(has('openssl', 'version'));

function inFile(pem: string): string {
  const path = join(temporaryDirectory(), 'cert.pem');
  writeFileSync(path, pem);
  return path;
}

describe('the certificate of the agent link', () => {
  it('is the same each time, small, and always valid', () => {
    const { privateKey } = newIdentity();
    const { certDer, certPem } = selfSignedEd25519(privateKey);
    expect(selfSignedEd25519(privateKey)).toEqual({ certDer, certPem });
    expect(certDer.length).toBeLessThan(256);
    const certificate = new X509Certificate(certPem);
    expect(certificate.raw.equals(certDer)).toBe(true);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.publicKey.equals(createPublicKey(privateKey))).toBe(true);
    expect([certificate.validFrom, certificate.validTo]).toEqual([
      'Jan  1 00:00:00 2000 GMT',
      'Dec 31 23:59:59 9999 GMT',
    ]);
  });

  it('is well-formed for every key', () => {
    for (let round = 0; round < 100; round += 1) {
      const certificate = new X509Certificate(selfSignedEd25519(generateKey()).certDer);
      expect(certificate.verify(certificate.publicKey)).toBe(true);
      expect(certificate.serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
    }
  });

  it('is made of an Ed25519 key only', () => {
    expect(faultOf(() => selfSignedEd25519(generateKey('p256'))).message).toBe(
      'a certificate needs an Ed25519 key, not ec',
    );
  });

  withOpenssl('satisfies openssl (needs openssl)', () => {
    const path = inFile(selfSignedEd25519(newIdentity().privateKey).certPem);
    expect(run('openssl', 'x509', '-in', path, '-noout', '-text')).toMatch(/Version: 3[\s\S]*ED25519/);
    expect(run('openssl', 'verify', '-check_ss_sig', '-CAfile', path, path)).toContain('OK');
  });
});

describe('the certificate of the API', () => {
  const options = {
    dnsNames: ['localhost', 'orch.example.net', 'bücher.example', 'localhost'],
    addresses: ['127.0.0.1', '::1', '192.0.2.7', '2001:db8::7', 'fe80::1%eth0', '127.0.0.1'],
  };

  it('names hosts and addresses, each once', () => {
    const privateKey = generateKey('p256');
    const certificate = new X509Certificate(selfSignedP256({ privateKey, ...options }));
    expect(certificate.subjectAltName?.split(', ')).toEqual([
      'DNS:localhost',
      'DNS:orch.example.net',
      'DNS:xn--bcher-kva.example',
      'IP Address:127.0.0.1',
      'IP Address:0:0:0:0:0:0:0:1',
      'IP Address:192.0.2.7',
      'IP Address:2001:DB8:0:0:0:0:0:7',
      'IP Address:FE80:0:0:0:0:0:0:1',
    ]);
    expect(certificate.checkHost('orch.example.net')).toBe('orch.example.net');
    expect(certificate.checkHost('other.example.net')).toBeUndefined();
    expect(certificate.checkIP('2001:db8::7')).toBe('2001:db8::7');
    expect(certificate.ca).toBe(false);
    expect(certificate.verify(createPublicKey(privateKey))).toBe(true);
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  });

  it('has dates and a serial number of the caller when given', () => {
    const certificate = new X509Certificate(
      selfSignedP256({
        privateKey: generateKey('p256'),
        ...options,
        validity: { from: new Date('2049-12-31T23:59:59Z'), to: new Date('2050-01-01T00:00:00Z') },
        serial: Buffer.from('00ff01', 'hex'),
      }),
    );
    expect([certificate.validFrom, certificate.validTo]).toEqual([
      'Dec 31 23:59:59 2049 GMT',
      'Jan  1 00:00:00 2050 GMT',
    ]);
    expect(certificate.serialNumber).toBe('FF01');
  });

  it('has another serial number for other names, so that browsers take both', () => {
    const privateKey = generateKey('p256');
    const serial = (dnsNames: readonly string[]) =>
      new X509Certificate(selfSignedP256({ privateKey, dnsNames, addresses: [] })).serialNumber;
    expect(serial(['a'])).toBe(serial(['a']));
    expect(serial(['a'])).not.toBe(serial(['b']));
  });

  it('refuses what is no name, no address or no P-256 key', () => {
    const privateKey = generateKey('p256');
    const refusal = (call: () => unknown) => faultOf(call).message;
    expect(refusal(() => selfSignedP256({ privateKey, dnsNames: ['a b'], addresses: [] }))).toBe(
      '"a b" is no host name',
    );
    expect(refusal(() => selfSignedP256({ privateKey, dnsNames: [], addresses: ['127.1'] }))).toBe(
      '"127.1" is no IP address',
    );
    const { privateKey: p384 } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
    expect(refusal(() => selfSignedP256({ privateKey: p384, dnsNames: [], addresses: [] }))).toContain(
      'a certificate needs an ECDSA P-256 key',
    );
  });

  it('lets a client that trusts it in, by name and by address', async () => {
    const privateKey = generateKey('p256');
    const cert = selfSignedP256({ privateKey, dnsNames: ['localhost'], addresses: ['127.0.0.1'] });
    const server = createServer({ key: privateKey.export({ type: 'pkcs8', format: 'pem' }), cert }, (_, response) =>
      response.end('hello'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const ask = (servername: string) =>
      new Promise<number | string>((resolve) => {
        get({ host: '127.0.0.1', port, servername, ca: cert, agent: false }, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        }).on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      });
    try {
      expect(await ask('localhost')).toBe(200);
      expect(await ask('')).toBe(200);
      expect(await ask('elsewhere.example')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  withOpenssl('satisfies openssl at its strictest (needs openssl)', () => {
    const path = inFile(selfSignedP256({ privateKey: generateKey('p256'), ...options }));
    const text = run('openssl', 'x509', '-in', path, '-noout', '-text');
    expect(text).toContain('ecdsa-with-SHA256');
    expect(text).toContain('NIST CURVE: P-256');
    expect(text).toMatch(/X509v3 Basic Constraints: critical\s+CA:FALSE/);
    expect(text).toMatch(/X509v3 Key Usage: critical\s+Digital Signature\n/);
    expect(text).toMatch(/X509v3 Extended Key Usage: \s+TLS Web Server Authentication\n/);
    const verify = ['verify', '-x509_strict', '-check_ss_sig', '-purpose', 'sslserver', '-CAfile', path];
    expect(run('openssl', ...verify, '-verify_hostname', 'orch.example.net', path)).toContain('OK');
    expect(run('openssl', ...verify, '-verify_ip', '2001:db8::7', path)).toContain('OK');
    expect(() => run('openssl', ...verify, '-verify_hostname', 'other.example.net', path)).toThrow();
  });
});

describe('ipBytes', () => {
  it.each([
    ['0.0.0.0', '00000000'],
    ['255.1.2.3', 'ff010203'],
    ['::', '00'.repeat(16)],
    ['::1', `${'00'.repeat(15)}01`],
    ['1::', `0001${'00'.repeat(14)}`],
    ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
    ['::ffff:192.0.2.1', '00000000000000000000ffffc0000201'],
    ['64:ff9b::10.0.0.1', '0064ff9b00000000000000000a000001'],
    ['2001:DB8:0:0::A', '20010db800000000000000000000000a'],
  ])('%s', (address, hex) => {
    expect(ipBytes(address)?.toString('hex')).toBe(hex);
  });

  it.each(['', 'localhost', '1.2.3', '1.2.3.4.5', '256.1.1.1', ':::', '1:2', '%eth0'])('%j is none', (address) => {
    expect(ipBytes(address)).toBeNull();
  });

  it('says what URL says of every IPv6 address (property)', () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        const bytes = ipBytes(address);
        const plain = bytes?.toString('hex').replace(/.{4}(?=.)/g, '$&:');
        expect(new URL(`http://[${plain}]`).host).toBe(new URL(`http://[${address}]`).host);
      }),
    );
  });
});

describe('a fingerprint', () => {
  it('is SHA-256 of the public key, however the certificate is given', () => {
    const privateKey = generateKey('p256');
    const pem = selfSignedP256({ privateKey, dnsNames: ['a'], addresses: [] });
    const certificate = new X509Certificate(pem);
    const expected = createHash('sha256')
      .update(createPublicKey(privateKey).export({ type: 'spki', format: 'der' }))
      .digest('hex');
    expect([spkiFingerprint(pem), spkiFingerprint(certificate.raw), spkiFingerprint(certificate)]).toEqual([
      expected,
      expected,
      expected,
    ]);
  });

  it('outlives a renewal with the same key', () => {
    const privateKey = generateKey('p256');
    const of = (dnsNames: readonly string[]) =>
      spkiFingerprint(selfSignedP256({ privateKey, dnsNames, addresses: [] }));
    expect(of(['a'])).toBe(of(['b']));
  });

  withOpenssl('is what openssl computes (needs openssl)', () => {
    const pem = selfSignedP256({ privateKey: generateKey('p256'), dnsNames: ['a'], addresses: [] });
    const path = inFile(pem);
    const [publicKey, der] = [`${path}.pub`, `${path}.der`];
    run('openssl', 'x509', '-in', path, '-noout', '-pubkey', '-out', publicKey);
    run('openssl', 'pkey', '-pubin', '-in', publicKey, '-outform', 'der', '-out', der);
    expect(createHash('sha256').update(readFileSync(der)).digest('hex')).toBe(spkiFingerprint(pem));
  });

  it('is read back in every form that people paste (property)', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const hex = Buffer.from(bytes).toString('hex');
        const forms = [hex, hex.toUpperCase(), formatFingerprint(hex), `sha256:${hex}`, `  SHA256: ${hex}\n`];
        for (const form of forms) expect(parseFingerprint(form)).toBe(hex);
      }),
    );
  });

  it.each(['', 'abcd', 'x'.repeat(64), 'ab:cd'])('%j is none', (text) => {
    expect(faultOf(() => parseFingerprint(text, '--tls-fingerprint'))).toMatchObject({
      code: 'usage',
      message: '--tls-fingerprint is not a SHA-256 fingerprint',
    });
  });

  it('of what is no certificate is refused', () => {
    expect(faultOf(() => spkiFingerprint('garbage')).message).toBe('the certificate cannot be read');
  });
});
