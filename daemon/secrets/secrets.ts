/** Wires the secrets of an orchestrator: service, lender, vaults, usage and key rotation. */
import type { SecretUsage } from '../../src/contract/secrets.js';
import type { Core } from '../core/core.js';
import { KeyRotation } from './key-rotation.js';
import type { Keyring } from './keyring.js';
import { SecretLender } from './secret-lender.js';
import { SecretService } from './secret-service.js';
import { secretUsage } from './secret-usage.js';
import { ChannelVault, OutputVault } from './vaults.js';

export interface Secrets {
  readonly service: SecretService;
  readonly lender: SecretLender;
  readonly vault: OutputVault;
  readonly channels: ChannelVault;
  readonly rotation: KeyRotation;
  /** Returns the usage of a secret. Throws `secret_not_found`. */
  usage(name: string): Promise<SecretUsage>;
}

export function createSecrets(
  core: Pick<Core, 'ageTime' | 'clock' | 'db' | 'logger' | 'newId' | 'uow'>,
  { keyring }: { readonly keyring: Keyring },
): Secrets {
  const tools = { ...core, keyring };
  const vault = new OutputVault(tools);
  const channels = new ChannelVault(tools);
  return {
    service: new SecretService(tools),
    lender: new SecretLender(tools),
    vault,
    channels,
    rotation: new KeyRotation({ ...tools, vault, channels }),
    usage: (name) => secretUsage(tools, name),
  };
}
