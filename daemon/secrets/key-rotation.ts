/** Changes the key of the secrets while everything runs: a new key, every value sealed anew, the old key kept beside for older backups. */
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import type { Keyring } from './keyring.js';
import { readCanary, writeCanary } from './open-keyring.js';
import {
  channelsOfOtherKeys,
  type OperationOutputKey,
  outputsOfOtherKeys,
  resealChannel,
  resealOperationOutput,
  secretsOfOtherKeys,
} from './sealed-tables.js';
import { belongingOf, updateSecret } from './secret-store.js';
import type { ChannelVault, OutputVault } from './vaults.js';

interface KeyRotationOptions extends Pick<Core, 'db' | 'logger' | 'uow'> {
  readonly keyring: Keyring;
  readonly vault: OutputVault;
  readonly channels: ChannelVault;
}

interface Rotated {
  readonly key_id: string;
  /** The file that keeps the key of before. */
  readonly kept: string | null;
  /** Secrets that this run sealed anew. */
  readonly secrets: number;
  /** Outputs of scripts that this run sealed anew. */
  readonly outputs: number;
  /** Configurations of channels that this run sealed anew. */
  readonly channels: number;
}

const BATCH = 500;
/** Outputs are larger than secrets. */
const OUTPUT_BATCH = 20;

/** Whatever cuts it off, both keys are in the key file until nothing is sealed with the old one. */
export class KeyRotation {
  private readonly options: KeyRotationOptions;
  private running: Promise<Rotated> | null = null;

  constructor(options: KeyRotationOptions) {
    this.options = options;
  }

  /**
   * Rotates, or ends a rotation that was cut off; a second call waits for the first.
   * Throws `secrets_locked` for a value that cannot be opened, and keeps both keys then.
   */
  rotate(): Promise<Rotated> {
    this.running ??= this.run().finally(() => {
      this.running = null;
    });
    return this.running;
  }

  /** Ends a rotation that an earlier process had begun. */
  async resume(): Promise<void> {
    if (this.options.keyring.isRotating) await this.rotate();
  }

  private async run(): Promise<Rotated> {
    const { db, uow, keyring, logger } = this.options;
    keyring.addKey();
    const secrets = await inBatches(() => this.sealBatch());
    const channels = await inBatches(() => this.sealChannelBatch());
    const left = [
      ...(await secretsOfOtherKeys(db, keyring.currentId, 1)),
      ...(await channelsOfOtherKeys(db, keyring.currentId, 1)),
    ];
    if (left.length > 0) {
      throw new Fault('internal', 'secrets are left that the old key has sealed');
    }
    const outputs = await this.sealOutputs();
    await uow.write(async (tx, emit) => {
      // A rotation that was cut off after this has told it already.
      if ((await readCanary(tx))?.key_id === keyring.currentId) return;
      await writeCanary(tx, keyring);
      emit({
        type: 'secret.key_rotated',
        actor: SYSTEM,
        target: SYSTEM,
        summary: 'the key of the secrets was changed',
        metadata: { key_id: keyring.currentId, secrets, outputs, channels },
      });
    });
    const rotated = { key_id: keyring.currentId, kept: keyring.dropOldKeys(), secrets, outputs, channels };
    logger.info('the key of the secrets was changed; older backups need the key that was kept', rotated);
    return rotated;
  }

  private sealBatch(): Promise<number> {
    const { uow, keyring } = this.options;
    return uow.write(async (tx: Queryable) => {
      const rows = await secretsOfOtherKeys(tx, keyring.currentId, BATCH);
      for (const row of rows) {
        const belonging = belongingOf(row);
        await updateSecret(tx, row.secret_id, keyring.seal(keyring.open(row, belonging), belonging));
      }
      return rows.length;
    });
  }

  private sealChannelBatch(): Promise<number> {
    const { uow, keyring, channels } = this.options;
    return uow.write(async (tx: Queryable) => {
      const rows = await channelsOfOtherKeys(tx, keyring.currentId, BATCH);
      for (const row of rows) await resealChannel(tx, row.channel_id, channels.seal(channels.open(row), row));
      return rows.length;
    });
  }

  /** An output that cannot be opened is lost with either key and stays as it is. */
  private async sealOutputs(): Promise<number> {
    let sealed = 0;
    let after: OperationOutputKey | null = null;
    do {
      const batch: OutputBatch = await this.sealOutputBatch(after);
      sealed += batch.sealed;
      after = batch.last;
    } while (after !== null);
    return sealed;
  }

  private sealOutputBatch(after: OperationOutputKey | null): Promise<OutputBatch> {
    const { uow, keyring, vault } = this.options;
    return uow.write(async (tx) => {
      const rows = await outputsOfOtherKeys(tx, keyring.currentId, { after, limit: OUTPUT_BATCH });
      let sealed = 0;
      for (const { output, key_id, ...place } of rows) {
        const text = key_id === null ? null : vault.open({ output, key_id }, place);
        if (text === null) continue;
        await resealOperationOutput(tx, place, vault.seal(text, place));
        sealed += 1;
      }
      return { sealed, last: rows.length < OUTPUT_BATCH ? null : (rows.at(-1) ?? null) };
    });
  }
}

/** Until a batch is not full; returns how many there were in all. */
async function inBatches(batch: () => Promise<number>): Promise<number> {
  let all = 0;
  for (let count = BATCH; count === BATCH; all += count) count = await batch();
  return all;
}

interface OutputBatch {
  readonly sealed: number;
  /** The place of the last one; null when there are no more. */
  readonly last: OperationOutputKey | null;
}
