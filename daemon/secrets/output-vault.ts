/** Seals what scripts with secrets wrote, each output in its place. */
import { isFault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { Row } from '../database/schema.js';
import type { Belonging, Keyring } from './keyring.js';
import type { OperationOutputKey } from './sealed-tables.js';

export interface OutputVaultOptions extends Pick<Core, 'logger'> {
  readonly keyring: Keyring;
}

export type SealedOutput = Pick<Row<'operation_outputs'>, 'output'> & { readonly key_id: string };

export class OutputVault {
  private readonly options: OutputVaultOptions;

  constructor(options: OutputVaultOptions) {
    this.options = options;
  }

  seal(output: string, place: OperationOutputKey): SealedOutput {
    const { sealed, key_id } = this.options.keyring.seal(output, belongingOf(place));
    return { output: sealed, key_id };
  }

  /** Null when it cannot be opened any more, which is logged. */
  open({ output, key_id }: SealedOutput, place: OperationOutputKey): string | null {
    const { keyring, logger } = this.options;
    try {
      return keyring.open({ sealed: output, key_id }, belongingOf(place));
    } catch (error) {
      if (!isFault(error, 'secrets_locked')) throw error;
      logger.error('the output of a script cannot be decrypted', { ...placeOf(place), reason: error.message });
      return null;
    }
  }
}

const placeOf = ({ operation_id, position }: OperationOutputKey) => ({ operation_id, position });

const belongingOf = ({ operation_id, position }: OperationOutputKey): Belonging => ({
  recordId: operation_id,
  name: `output ${position} of operation ${operation_id}`,
  version: 1,
});
