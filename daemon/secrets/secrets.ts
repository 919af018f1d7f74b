/** Wires the secrets of an orchestrator: service, resolver, ciphers, usage and key rotation. */
import type { SecretUsage } from '../../src/contract/secrets.js';
import type { Core } from '../core/core.js';
import { ChannelCipher, OutputCipher } from './ciphers.js';
import { KeyRotation } from './key-rotation.js';
import type { Keyring } from './keyring.js';
import { SecretResolver } from './secret-resolver.js';
import { SecretService } from './secret-service.js';
import { secretUsage } from './secret-usage.js';

export interface Secrets {
  readonly service: SecretService;
  readonly resolver: SecretResolver;
  readonly outputCipher: OutputCipher;
  readonly channelCipher: ChannelCipher;
  readonly rotation: KeyRotation;
  /** Returns the usage of a secret. Throws `secret_not_found`. */
  usage(name: string): Promise<SecretUsage>;
}

export function createSecrets(
  core: Pick<Core, 'ageTime' | 'clock' | 'db' | 'logger' | 'newId' | 'uow'>,
  { keyring }: { readonly keyring: Keyring },
): Secrets {
  const tools = { ...core, keyring };
  const outputCipher = new OutputCipher(tools);
  const channelCipher = new ChannelCipher(tools);
  return {
    service: new SecretService(tools),
    resolver: new SecretResolver(tools),
    outputCipher,
    channelCipher,
    rotation: new KeyRotation({ ...tools, outputCipher, channelCipher }),
    usage: (name) => secretUsage(tools, name),
  };
}
