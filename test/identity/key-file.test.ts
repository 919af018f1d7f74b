import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { generateKey, loadKey, loadOrCreateKey, writeNewKey } from '../../src/identity/private-key.js';
import { faultOf, has, run, temporaryDirectory } from '../support/identity.js';

const isRoot = process.getuid?.() === 0;
const newPath = (): string => join(temporaryDirectory(), 'identity.key');
const modeOf = (path: string): number => statSync(path).mode & 0o7777;

describe('loadOrCreateKey', () => {
  it('makes a key of mode 0600 once, and leaves nothing else behind', () => {
    const path = newPath();
    const key = loadOrCreateKey(path);
    expect(modeOf(path)).toBe(0o600);
    expect(readFileSync(path, 'utf8')).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
    expect(loadOrCreateKey(path).equals(key)).toBe(true);
    expect(loadKey(path).equals(key)).toBe(true);
    expect(readdirSync(join(path, '..'))).toEqual(['identity.key']);
  });

  it('is 0600 whatever the umask', () => {
    const before = process.umask(0);
    try {
      const open = newPath();
      loadOrCreateKey(open);
      process.umask(0o777);
      const closed = newPath();
      chmodSync(join(closed, '..'), 0o700);
      loadOrCreateKey(closed);
      expect([modeOf(open), modeOf(closed)]).toEqual([0o600, 0o600]);
    } finally {
      process.umask(before);
    }
  });

  it('makes P-256 keys for TLS, and does not take one for an identity', () => {
    const path = newPath();
    const key = loadOrCreateKey(path, 'p256');
    expect(loadOrCreateKey(path, 'p256').equals(key)).toBe(true);
    expect(faultOf(() => loadOrCreateKey(path)).message).toBe(`${path} holds an ECDSA P-256 key, not an Ed25519 key`);
  });

  it('gives all processes that come at once the same key', async () => {
    const path = newPath();
    const built = new URL('../../dist/src/identity/', import.meta.url).href;
    const program = `
      const { loadOrCreateKey } = await import('${built}private-key.js');
      const { publicKeyOfKeyObject } = await import('${built}key-object.js');
      process.stdout.write(publicKeyOfKeyObject(loadOrCreateKey(process.argv[1])));`;
    const start = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program, path]);
    const keys = (await Promise.all(Array.from({ length: 6 }, start))).map(({ stdout }) => stdout);
    expect(new Set(keys)).toEqual(new Set([publicKeyOfKeyObject(loadKey(path))]));
    expect(readdirSync(join(path, '..'))).toEqual(['identity.key']);
  });

  it.each(['', 'garbage', '-----BEGIN PRIVATE KEY-----\n'])('never replaces a damaged file (%j)', (content) => {
    const path = newPath();
    writeFileSync(path, content, { mode: 0o600 });
    expect(faultOf(() => loadOrCreateKey(path)).code).toBe('key_invalid');
    expect(readFileSync(path, 'utf8')).toBe(content);
  });

  it('does not follow a dangling link', () => {
    const path = newPath();
    const target = join(path, '..', 'elsewhere');
    symlinkSync(target, path);
    expect(faultOf(() => loadOrCreateKey(path)).code).toBe('key_unreadable');
    expect(existsSync(target)).toBe(false);
  });
});

describe('a key file', () => {
  it.each([0o640, 0o604, 0o660, 0o606, 0o644, 0o666, 0o610, 0o601])('of mode 0%o is refused', (mode) => {
    const path = newPath();
    loadOrCreateKey(path);
    chmodSync(path, mode);
    const { code, message, hint } = faultOf(() => loadKey(path));
    expect(code).toBe('key_permissions');
    expect(message).toContain(`${path} has mode 0${mode.toString(8)}`);
    expect(hint).toContain(`chmod 600 ${path}`);
    expect(faultOf(() => loadOrCreateKey(path)).code).toBe('key_permissions');
  });

  it.each([0o400, 0o600, 0o700])('of mode 0%o is taken', (mode) => {
    const path = newPath();
    const key = loadOrCreateKey(path);
    chmodSync(path, mode);
    expect(loadKey(path).equals(key)).toBe(true);
  });

  it.runIf(isRoot)('of another user is refused (needs root to make one)', () => {
    const path = newPath();
    loadOrCreateKey(path);
    chownSync(path, 4711, 4711);
    const { code, message, hint } = faultOf(() => loadKey(path));
    expect(code).toBe('key_permissions');
    expect(message).toBe(`${path} belongs to user 4711, not to user 0 who runs this`);
    expect(hint).toBe(`if the file is yours: chown 0 ${path} && chmod 600 ${path}`);
  });

  it.runIf(isRoot)('that this user may not read is unreadable (needs root to step down)', async () => {
    const directory = temporaryDirectory();
    chmodSync(directory, 0o755);
    const path = join(directory, 'identity.key');
    loadOrCreateKey(path);
    const before = process.geteuid?.() ?? 0;
    process.seteuid?.(4711);
    try {
      expect(faultOf(() => loadKey(path))).toMatchObject({
        code: 'key_unreadable',
        message: `${path} may not be read by this user`,
      });
      expect(faultOf(() => writeNewKey(join(directory, 'new.key'), generateKey()))).toMatchObject({
        code: 'key_unwritable',
        message: `${join(directory, 'new.key')} cannot be created: this user may not write to its directory`,
      });
    } finally {
      process.seteuid?.(before);
    }
  });

  it('that is not there, or no file, is refused', () => {
    const path = newPath();
    expect(faultOf(() => loadKey(path))).toMatchObject({ code: 'key_unreadable', message: `${path} does not exist` });
    mkdirSync(path);
    expect(faultOf(() => loadKey(path))).toMatchObject({
      code: 'key_invalid',
      message: `${path} is not a regular file`,
    });
  });

  it.runIf(has('mkfifo', '--version'))('that is a FIFO is refused without waiting for a writer (needs mkfifo)', () => {
    const path = newPath();
    run('mkfifo', '-m', '600', path);
    expect(faultOf(() => loadKey(path)).message).toBe(`${path} is not a regular file`);
  });

  it('that is far too large is refused', () => {
    const path = newPath();
    writeFileSync(path, randomBytes(300 * 1024), { mode: 0o600 });
    expect(faultOf(() => loadKey(path)).message).toBe(`${path} is far too large for a key`);
  });

  it('with spaces in its path is quoted in the hint', () => {
    const path = join(temporaryDirectory(), "my key's file");
    loadOrCreateKey(path);
    chmodSync(path, 0o644);
    expect(faultOf(() => loadKey(path)).hint).toContain(`chmod 600 '${path.replace("'", "'\\''")}'`);
  });
});

describe('writeNewKey', () => {
  it('writes with and without a passphrase', () => {
    const key = generateKey();
    const [plain, secret] = [newPath(), newPath()];
    writeNewKey(plain, key);
    writeNewKey(secret, key, { passphrase: 'hunter2' });
    expect(loadKey(plain).equals(key)).toBe(true);
    expect(loadKey(secret, { passphrase: 'hunter2' }).equals(key)).toBe(true);
    expect(faultOf(() => loadKey(secret)).message).toBe(`${secret} is encrypted with a passphrase`);
    expect([modeOf(plain), modeOf(secret)]).toEqual([0o600, 0o600]);
  });

  it('never overwrites, whatever is there', () => {
    const path = newPath();
    writeFileSync(path, '');
    const { code, message, hint } = faultOf(() => writeNewKey(path, generateKey()));
    expect(code).toBe('key_exists');
    expect(message).toBe(`${path} is already there and is not overwritten`);
    expect(hint).toContain(`mv ${path} ${path}.old`);
    expect(readFileSync(path, 'utf8')).toBe('');
    expect(readdirSync(join(path, '..'))).toEqual(['identity.key']);
  });

  it('says which directory is missing', () => {
    const path = join(temporaryDirectory(), 'missing', 'operator.key');
    expect(faultOf(() => writeNewKey(path, generateKey()))).toMatchObject({
      code: 'key_unwritable',
      message: `${path} cannot be created: its directory does not exist`,
    });
  });
});
