/** Secrets from files, in place of those that an orchestrator keeps. */
import { createHmac } from 'node:crypto';
import { Fault } from '../../kernel/fault.js';
import { isSecretName } from '../../kernel/identifiers.js';
import type { SecretSource } from '../../language/fill.js';
import { readTextFile } from '../read-text.js';

/** @param maskKey hex; the tag tells whether a value changed, not what it is */
export function secretsFrom(given: readonly string[], maskKey: string): SecretSource {
  const values = new Map(given.map(readSecret));
  return (name) => {
    const value = values.get(name);
    return value === undefined ? null : { value, tag: tagOf(maskKey, name, value) };
  };
}

function readSecret(word: string): readonly [name: string, value: string] {
  const at = word.indexOf('=');
  const [name, path] = [word.slice(0, at), word.slice(at + 1)];
  if (at > 0 && isSecretName(name) && path !== '') return [name, readTextFile(path)];
  throw new Fault('usage', `--secret-file takes NAME=FILE, not "${word}"`);
}

const tagOf = (maskKey: string, name: string, value: string): string =>
  createHmac('sha256', Buffer.from(maskKey, 'hex')).update(`${name}\0${value}`).digest('hex').slice(0, 4);
