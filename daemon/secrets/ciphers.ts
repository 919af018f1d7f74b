/** Seals and opens sensitive values other than secrets: channel configurations and script outputs. */
import { isFault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { Row } from '../database/schema.js';
import type { Keyring, Sealed, SealedRecord } from './keyring.js';
import type { OperationOutputKey } from './sealed-tables.js';

interface ChannelCipherOptions {
  readonly keyring: Keyring;
}

/** Record that a sealed configuration is bound to: a channel and the version of its configuration. */
type ChannelPlace = Pick<Row<'channels'>, 'channel_id' | 'row_version'>;

/** Seals channel configurations: their addresses, tokens and signing secrets. */
export class ChannelCipher {
  private readonly keyring: Keyring;

  constructor({ keyring }: ChannelCipherOptions) {
    this.keyring = keyring;
  }

  seal(config: string, place: ChannelPlace): Sealed {
    return this.keyring.seal(config, channelRecord(place));
  }

  /** Returns the decrypted configuration. Throws `secrets_locked`. */
  open(row: Sealed & ChannelPlace): string {
    return this.keyring.open(row, channelRecord(row));
  }
}

const channelRecord = ({ channel_id, row_version }: ChannelPlace): SealedRecord => ({
  recordId: channel_id,
  name: `the configuration of channel ${channel_id}`,
  version: row_version,
});

interface OutputCipherOptions extends Pick<Core, 'logger'> {
  readonly keyring: Keyring;
}

type SealedOutput = Pick<Row<'operation_outputs'>, 'output'> & { readonly key_id: string };

/** Seals the outputs of scripts that used secrets, each bound to its operation and position. */
export class OutputCipher {
  private readonly options: OutputCipherOptions;

  constructor(options: OutputCipherOptions) {
    this.options = options;
  }

  seal(output: string, place: OperationOutputKey): SealedOutput {
    const { sealed, key_id } = this.options.keyring.seal(output, outputRecord(place));
    return { output: sealed, key_id };
  }

  /** Returns the decrypted output. Logs and returns null when it cannot be decrypted. */
  open({ output, key_id }: SealedOutput, place: OperationOutputKey): string | null {
    const { keyring, logger } = this.options;
    try {
      return keyring.open({ sealed: output, key_id }, outputRecord(place));
    } catch (error) {
      if (!isFault(error, 'secrets_locked')) throw error;
      logger.error('the output of a script cannot be decrypted', { ...placeOf(place), reason: error.message });
      return null;
    }
  }
}

const placeOf = ({ operation_id, position }: OperationOutputKey) => ({ operation_id, position });

const outputRecord = ({ operation_id, position }: OperationOutputKey): SealedRecord => ({
  recordId: operation_id,
  name: `output ${position} of operation ${operation_id}`,
  version: 1,
});
