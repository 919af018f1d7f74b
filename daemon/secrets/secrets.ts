/** The secrets of an orchestrator: service, lender, vaults, usage and rotation, wired together. */
import type { SecretUsage } from '../../src/contract/secrets.js';
import type { Core } from '../core/core.js';
import { ChannelVault } from './channel-vault.js';
import { KeyRotation } from './key-rotation.js';
import type { Keyring } from './keyring.js';
import { OutputVault } from './output-vault.js';
import { SecretLender } from './secret-lender.js';
import { SecretService } from './secret-service.js';
import { secretUsage } from './secret-usage.js';

export interface SecretsOptions extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'logger' | 'newId' | 'uow'> {
  readonly keyring: Keyring;
}

export interface Secrets {
  readonly service: SecretService;
  readonly lender: SecretLender;
  readonly vault: OutputVault;
  readonly channels: ChannelVault;
  readonly rotation: KeyRotation;
  /** Throws `secret_not_found`. */
  usage(name: string): Promise<SecretUsage>;
}

export function createSecrets(options: SecretsOptions): Secrets {
  const vault = new OutputVault(options);
  const channels = new ChannelVault(options);
  return {
    service: new SecretService(options),
    lender: new SecretLender(options),
    vault,
    channels,
    rotation: new KeyRotation({ ...options, vault, channels }),
    usage: (name) => secretUsage(options, name),
  };
}
