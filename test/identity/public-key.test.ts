import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  groupsOfFour,
  keyObjectOf,
  nodeIdOf,
  operatorIdOf,
  publicKeyOfKeyObject,
  rawKeyOf,
} from '../../src/identity/key-object.js';
import { isAcceptableKey, isForgeableKey, parsePublicKey } from '../../src/identity/public-key.js';
import {
  faultOf,
  has,
  NON_CANONICAL_KEYS,
  newIdentity,
  run,
  SMALL_ORDER_KEYS,
  temporaryDirectory,
  withTorsion,
} from '../support/identity.js';

const fixture = (name: string): string => readFileSync(join(import.meta.dirname, 'openssh', name), 'utf8');
const refusal = (text: string): string => {
  const { code, message, hint } = faultOf(() => parsePublicKey(text, '--orchestrator-key'));
  expect(code).toBe('invalid_public_key');
  expect(hint).toContain('64 hex digits');
  return message;
};

/** A line with a blob of these strings in it. */
function sshLine(type: string, ...strings: readonly Buffer[]): string {
  const parts = strings.flatMap((bytes) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return [length, bytes];
  });
  return `${type} ${Buffer.concat(parts).toString('base64')} someone@somewhere`;
}

describe('a public key', () => {
  it('is taken as hex in any case and with white space around it', () => {
    const { publicKey } = newIdentity();
    expect(parsePublicKey(publicKey)).toBe(publicKey);
    expect(parsePublicKey(`  ${publicKey.toUpperCase()}\n`)).toBe(publicKey);
  });

  it('is taken as an OpenSSH line, with and without a comment', () => {
    const line = fixture('ed25519.pub');
    const key = parsePublicKey(line);
    expect(
      Buffer.from(line.split(' ')[1] ?? '', 'base64')
        .subarray(-32)
        .toString('hex'),
    ).toBe(key);
    expect(parsePublicKey(line.split(' ').slice(0, 2).join(' '))).toBe(key);
  });

  it.runIf(has('ssh-keygen', '-V'))('is the one that ssh-keygen shows (needs ssh-keygen)', () => {
    const path = join(temporaryDirectory(), 'key');
    run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'a comment with words', '-f', path);
    const key = parsePublicKey(readFileSync(`${path}.pub`, 'utf8'));
    expect(sshLine('ssh-ed25519', Buffer.from('ssh-ed25519'), rawKeyOf(key)).split(' ')[1]).toBe(
      run('ssh-keygen', '-y', '-f', path).split(' ')[1],
    );
  });

  it.each([
    ['', 'is empty'],
    ['   \n', 'is empty'],
    ['ab'.repeat(31), 'has 62 hex digits, not 64'],
    ['a'.repeat(65), 'has 65 hex digits, not 64'],
    [`${'ab'.repeat(31)}zz`, 'is neither hex nor an OpenSSH public key line'],
    ['hello', 'is neither hex nor an OpenSSH public key line'],
    ['ssh-ed25519', 'has no base64 after "ssh-ed25519"'],
    ['ssh-ed25519 !!!', 'has no base64 after "ssh-ed25519"'],
    ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==', 'is cut short'],
    ['ssh-dss AAAA', 'is a DSA key, not a plain Ed25519 key'],
    ['sk-ssh-ed25519@openssh.com AAAA', 'is held by a security key, whose signatures differ, not a plain Ed25519 key'],
    ['ssh-ed25519-cert-v01@openssh.com AAAA', 'is an OpenSSH certificate, not a plain Ed25519 key'],
    ['-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----', 'is in PEM form'],
    ['x'.repeat(100_000), 'is too long to be a key'],
  ])('%j is refused', (text, why) => {
    expect(refusal(text)).toBe(`--orchestrator-key ${why}`);
  });

  it('of another type is refused by name', () => {
    expect(refusal(fixture('rsa.pub'))).toContain('is an RSA key');
    expect(refusal(fixture('ecdsa.pub'))).toContain('is an ECDSA key');
  });

  it('in a line whose parts disagree is refused', () => {
    const raw = rawKeyOf(newIdentity().publicKey);
    const type = Buffer.from('ssh-ed25519');
    expect(refusal(sshLine('ssh-ed25519', Buffer.from('ssh-rsa'), raw))).toContain('another key type inside');
    expect(refusal(sshLine('ssh-ed25519', type, raw, raw))).toContain('bytes after its end');
    expect(refusal(sshLine('ssh-ed25519', type, raw.subarray(1)))).toContain('is 31 bytes long, not 32');
    expect(refusal(`${fixture('ed25519.pub')}${fixture('ed25519.pub')}`)).toContain('more than one line');
  });

  it('that is a private key by mistake is refused without being repeated', () => {
    const message = refusal(fixture('ed25519'));
    expect(message).toContain('is a private key');
    expect(message).not.toContain('b3BlbnNzaC');
  });

  it.each(SMALL_ORDER_KEYS)('of small order is refused: %s', (key) => {
    expect(refusal(key)).toContain('is of small order');
    expect(isAcceptableKey(Buffer.from(key, 'hex'))).toBe(false);
    expect(isForgeableKey(Buffer.from(key, 'hex'))).toBe(true);
  });

  it.each(NON_CANONICAL_KEYS)('in a non-canonical form is refused: %s', (key) => {
    expect(refusal(key)).toContain('not the canonical form');
    expect(isForgeableKey(Buffer.from(key, 'hex'))).toBe(true);
  });

  it('outside the curve or the prime-order group is refused', () => {
    expect(refusal(`02${'00'.repeat(31)}`)).toContain('not the canonical form of a point');
    expect(refusal(withTorsion(newIdentity().publicKey))).toContain('not in the prime-order group');
  });
});

describe('ids', () => {
  it('are the first half of SHA-256 of the raw key', () => {
    const key = parsePublicKey('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
    expect(nodeIdOf(key)).toBe('21fe31dfa154a261626bf854046fd227');
    expect(operatorIdOf(key)).toBe('21fe31dfa154a261626bf854046fd227');
  });

  it('are read aloud in groups of four', () => {
    expect(groupsOfFour('21fe31dfa154a261626bf854046fd227')).toBe('21fe 31df a154 a261 626b f854 046f d227');
    expect(groupsOfFour('')).toBe('');
  });
});

describe('key objects', () => {
  it('and hex are two forms of the same key (property)', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (seed) => {
        const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
        const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
        const hex = publicKeyOfKeyObject(privateKey);
        expect(parsePublicKey(hex.toUpperCase())).toBe(hex);
        expect(publicKeyOfKeyObject(keyObjectOf(hex))).toBe(hex);
        expect(keyObjectOf(hex).equals(createPublicKey(privateKey))).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it('of another kind are refused', () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expect(faultOf(() => publicKeyOfKeyObject(publicKey)).message).toBe('the key is ec, not Ed25519');
  });
});
