/** Reads and writes `secrets.key`, the private file beside the store with the sealing keys and the hash key of secrets. */
import { readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { renameDurably } from '../../src/disk/durable.js';
import { createPrivateFile, readPrivateFile } from '../../src/identity/private-file.js';
import { Fault, isFault, systemCodeOf } from '../../src/kernel/fault.js';

export interface SealingKey {
  /** 16 hex digits. */
  readonly id: string;
  /** 32 bytes. */
  readonly key: Buffer;
}

export interface SecretKeys {
  /** Key of the hashes of values. It survives rotations, which would otherwise look like changed values. */
  readonly hashKey: Buffer;
  /** At least one key; the last one seals. There are more during a rotation. */
  readonly sealing: readonly SealingKey[];
}

const HEAD = 'orch-secrets-v1';
const KEY_BYTES = 32;

/** Returns the keys; null without a file. Throws `key_unreadable`, `key_permissions` or `key_invalid`. */
export function readKeyFile(file: string): SecretKeys | null {
  try {
    return parse(readPrivateFile(file), file);
  } catch (error) {
    if (isFault(error, 'key_unreadable') && systemCodeOf(error.cause) === 'ENOENT') return null;
    throw error;
  }
}

/** Creates the key file. Throws `key_exists` instead of replacing a file. */
export const createKeyFile = (file: string, keys: SecretKeys): void => createPrivateFile(file, print(keys));

/** Replaces the key file atomically and durably: after a crash it holds either the old or the new keys. */
export function replaceKeyFile(file: string, keys: SecretKeys): void {
  const temporary = `${file}.new`;
  rmSync(temporary, { force: true });
  createPrivateFile(temporary, print(keys));
  renameDurably(temporary, file);
}

/** Returns the paths of kept key files beside the key file (`secrets.key.1`), ascending by number. */
export const keptKeyFiles = (file: string): readonly string[] =>
  readdirSync(dirname(file))
    .map((name) => ({ name, number: Number(/\.([1-9]\d*)$/.exec(name)?.[1]) }))
    .filter(({ name, number }) => name === `${basename(file)}.${number}`)
    .sort((a, b) => a.number - b.number)
    .map(({ name }) => join(dirname(file), name));

/** Returns the path of the next kept key file. */
export function nextKeptFile(file: string): string {
  const last = Number(/\d+$/.exec(keptKeyFiles(file).at(-1) ?? '')?.[0] ?? 0);
  return `${file}.${last + 1}`;
}

/**
 * Saves keys that are about to be dropped to the next kept key file and returns its path. Older backups need them.
 * Reuses a file with the same keys that a crash left behind.
 */
export function keepKeys(file: string, keys: SecretKeys): string {
  const text = print(keys);
  const same = keptKeyFiles(file).find((path) => readPrivateFile(path) === text);
  if (same !== undefined) return same;
  const path = nextKeptFile(file);
  createPrivateFile(path, text);
  return path;
}

export const newSealingKey = (randomBytes: (count: number) => Buffer): SealingKey => ({
  id: randomBytes(8).toString('hex'),
  key: randomBytes(KEY_BYTES),
});

export const newSecretKeys = (randomBytes: (count: number) => Buffer): SecretKeys => ({
  hashKey: randomBytes(KEY_BYTES),
  sealing: [newSealingKey(randomBytes)],
});

function print({ hashKey, sealing }: SecretKeys): string {
  const lines = sealing.map(({ id, key }) => `key ${id} ${key.toString('base64')}`);
  return `${[HEAD, `hash ${hashKey.toString('base64')}`, ...lines].join('\n')}\n`;
}

function parse(text: string, file: string): SecretKeys {
  const [head, hash = '', ...rest] = text.trimEnd().split('\n');
  const hashKey = keyOf(/^hash (\S+)$/.exec(hash)?.[1]);
  const sealing = rest.map((line) => {
    const [, id, key] = /^key ([0-9a-f]{16}) (\S+)$/.exec(line) ?? [];
    return { id: id ?? '', key: keyOf(key) };
  });
  if (head !== HEAD || hashKey === null || sealing.length === 0) throw damaged(file);
  return { hashKey, sealing: sealing.map(({ id, key }) => ({ id, key: key ?? throwing(file) })) };
}

function keyOf(text: string | undefined): Buffer | null {
  const bytes = Buffer.from(text ?? '', 'base64');
  return bytes.length === KEY_BYTES ? bytes : null;
}

function throwing(file: string): never {
  throw damaged(file);
}

const damaged = (file: string): Fault =>
  new Fault('key_invalid', `${file} does not hold the keys of the secrets`, {
    hint: 'restore the former file',
  });
