import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  generateKey,
  isEncrypted,
  parsePrivateKey,
  privateKeyPem,
  wantsPassphrase,
} from '../../src/identity/private-key.js';
import { faultOf, has, run, temporaryDirectory } from '../support/identity.js';

const source = 'ORCH_KEY';
const pem = (key: ReturnType<typeof generateKey>): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();
const refusal = (text: string, passphrase?: string): string => {
  const { code, message } = faultOf(() => parsePrivateKey(text, { source, passphrase }));
  expect(code).toBe('key_invalid');
  return message;
};

describe('a private key in PEM', () => {
  it('comes back as it was written', () => {
    const key = generateKey();
    expect(parsePrivateKey(privateKeyPem(key), { source }).equals(key)).toBe(true);
    expect(isEncrypted(privateKeyPem(key))).toBe(false);
  });

  it('opens with its passphrase only', () => {
    const key = generateKey();
    const text = privateKeyPem(key, 'grüner Tee, 2 l');
    expect(isEncrypted(text)).toBe(true);
    expect(parsePrivateKey(text, { source, passphrase: 'grüner Tee, 2 l' }).equals(key)).toBe(true);
    expect(refusal(text, 'black tea')).toBe('ORCH_KEY does not open with this passphrase');
    expect(refusal(text)).toBe('ORCH_KEY is encrypted with a passphrase');
    expect(refusal(text, '')).toBe('ORCH_KEY is encrypted with a passphrase');
  });

  it('tells a missing passphrase from everything else', () => {
    const caught = (text: string, passphrase?: string): unknown => {
      try {
        return parsePrivateKey(text, { source, passphrase });
      } catch (error) {
        return error;
      }
    };
    const text = privateKeyPem(generateKey(), 'secret');
    expect(wantsPassphrase(caught(text))).toBe(true);
    expect(wantsPassphrase(caught(text, 'wrong'))).toBe(false);
    expect(caught(text, 'wrong')).toMatchObject({ data: { reason: 'passphrase_wrong' } });
    expect(wantsPassphrase(caught('garbage'))).toBe(false);
  });

  it('that another program encrypted is read too', () => {
    const key = generateKey();
    const text = key.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' }).toString();
    expect(parsePrivateKey(text, { source, passphrase: 'secret' }).equals(key)).toBe(true);
  });

  it.runIf(has('openssl', 'version'))('is read by openssl, encrypted or not (needs openssl)', () => {
    const key = generateKey();
    const path = join(temporaryDirectory(), 'key.pem');
    writeFileSync(path, privateKeyPem(key), { mode: 0o600 });
    expect(run('openssl', 'pkey', '-in', path)).toBe(pem(key));
    writeFileSync(path, privateKeyPem(key, 'secret'), { mode: 0o600 });
    expect(run('openssl', 'pkey', '-in', path, '-passin', 'pass:secret')).toBe(pem(key));
    expect(run('openssl', 'asn1parse', '-in', path)).toMatch(/PBES2[\s\S]*scrypt[\s\S]*aes-256-cbc/);
    expect(() => run('openssl', 'pkey', '-in', path, '-passin', 'pass:wrong')).toThrow();
  });

  it('with a passphrase longer than can be read again is not written', () => {
    expect(faultOf(() => privateKeyPem(generateKey(), 'x'.repeat(1025))).message).toContain('longer than 1024 bytes');
    const key = generateKey();
    const longest = 'x'.repeat(1024);
    expect(parsePrivateKey(privateKeyPem(key, longest), { source, passphrase: longest }).equals(key)).toBe(true);
  });

  it('of the wrong type is refused by name', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    expect(refusal(pem(rsa))).toBe('ORCH_KEY holds a key of type rsa, not an Ed25519 key');
    expect(refusal(pem(generateKey('p256')))).toBe('ORCH_KEY holds an ECDSA P-256 key, not an Ed25519 key');
    expect(faultOf(() => parsePrivateKey(pem(generateKey()), { source, type: 'p256' })).message).toBe(
      'ORCH_KEY holds an Ed25519 key, not an ECDSA P-256 key',
    );
  });

  it.each([
    ['', 'is empty'],
    ['\n\n', 'is empty'],
    ['garbage', 'holds no private key in PEM form'],
    ['-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n', 'holds no private key in PEM form'],
    ['-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n', 'cannot be read as a private key'],
    ['-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n', 'is an OpenSSH key'],
  ])('%j is refused', (text, why) => {
    expect(refusal(text)).toBe(`ORCH_KEY ${why}`);
  });
});
