import { chmodSync, chownSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { importOpensshKey, parseOpensshKey } from '../../src/identity/openssh.js';
import { parsePublicKey } from '../../src/identity/public-key.js';
import { faultOf, has, run, temporaryDirectory } from '../support/identity.js';

const fixture = (name: string): string => readFileSync(join(import.meta.dirname, 'openssh', name), 'utf8');
const refusal = (text: string): { message: string; hint: string | undefined } => {
  const { code, message, hint } = faultOf(() => parseOpensshKey(text, '/home/ann/.ssh/id'));
  expect(code).toBe('key_invalid');
  return { message, hint };
};

/** The fixture with its decoded bytes changed. */
function damaged(change: (bytes: Buffer) => Buffer): string {
  const [, base64 = ''] = /-----\n([^-]+)-----END/.exec(fixture('ed25519')) ?? [];
  const changed = change(Buffer.from(base64, 'base64')).toString('base64');
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${changed}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

describe('an OpenSSH key', () => {
  it('is the private half of the .pub file beside it', () => {
    const key = parseOpensshKey(fixture('ed25519'), 'id');
    expect(publicKeyOfKeyObject(key)).toBe(parsePublicKey(fixture('ed25519.pub')));
  });

  it('is read with Windows line ends', () => {
    const key = parseOpensshKey(fixture('ed25519').replaceAll('\n', '\r\n'), 'id');
    expect(publicKeyOfKeyObject(key)).toBe(parsePublicKey(fixture('ed25519.pub')));
  });

  it('with a passphrase is refused with the command that takes it off a copy', () => {
    const { message, hint } = refusal(fixture('ed25519-passphrase'));
    expect(message).toBe('/home/ann/.ssh/id is protected by a passphrase, in a way that orch cannot open');
    expect(hint).toContain("cp -p /home/ann/.ssh/id COPY && ssh-keygen -p -N '' -f COPY");
  });

  it('of another type is refused by name', () => {
    expect(refusal(fixture('rsa')).message).toContain('is an RSA key, not a plain Ed25519 key');
    expect(refusal(fixture('ecdsa'))).toEqual({
      message: '/home/ann/.ssh/id is an ECDSA key, not a plain Ed25519 key',
      hint: 'make one with: ssh-keygen -t ed25519',
    });
  });

  it('that is something else is refused', () => {
    expect(refusal('').message).toContain('is empty');
    expect(refusal(fixture('ed25519.pub'))).toEqual({
      message: '/home/ann/.ssh/id is a public key',
      hint: 'name the file without .pub',
    });
    expect(refusal('garbage').message).toContain('is not an OpenSSH private key');
    expect(refusal('-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA').message).toContain('is a damaged OpenSSH key');
  });

  it('that is damaged anywhere is refused', () => {
    expect(refusal(damaged((bytes) => bytes.subarray(5))).message).toContain('is a damaged OpenSSH key');
    for (let length = 15; length < 200; length += 1) {
      expect(refusal(damaged((bytes) => bytes.subarray(0, length))).message).toContain('is cut short');
    }
    const flip = (at: number) => (bytes: Buffer) => {
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      return bytes;
    };
    const seedAt = damaged((bytes) => flip(bytes.lastIndexOf(Buffer.from([0, 0, 0, 0x40])) + 4)(bytes));
    expect(refusal(seedAt).message).toContain('its halves do not belong together');
    const checkAt = damaged((bytes) => flip(bytes.indexOf(Buffer.from([0, 0, 0, 0x90])) + 4)(bytes));
    expect(refusal(checkAt).message).toContain('its check numbers differ');
  });
});

describe('importOpensshKey', () => {
  it('refuses a file that others may read, but takes one of another user', () => {
    const path = join(temporaryDirectory(), 'id_ed25519');
    writeFileSync(path, fixture('ed25519'), { mode: 0o644 });
    expect(faultOf(() => importOpensshKey(path)).code).toBe('key_permissions');
    chmodSync(path, 0o600);
    if (process.getuid?.() === 0) chownSync(path, 4711, 4711);
    expect(publicKeyOfKeyObject(importOpensshKey(path))).toBe(parsePublicKey(fixture('ed25519.pub')));
  });

  it.runIf(has('ssh-keygen', '-V'))('takes what ssh-keygen makes, and what its hint makes (needs ssh-keygen)', () => {
    const path = join(temporaryDirectory(), 'id_ed25519');
    run('ssh-keygen', '-q', '-t', 'ed25519', '-N', 'hunter2', '-C', 'with passphrase', '-f', path);
    const publicKey = parsePublicKey(readFileSync(`${path}.pub`, 'utf8'));
    expect(faultOf(() => importOpensshKey(path)).message).toContain('is protected by a passphrase');
    run('cp', '-p', path, `${path}-copy`);
    run('ssh-keygen', '-q', '-p', '-P', 'hunter2', '-N', '', '-f', `${path}-copy`);
    expect(publicKeyOfKeyObject(importOpensshKey(`${path}-copy`))).toBe(publicKey);
  });
});
