/** Rotates the sealing key online: adds a key, reseals every value, and keeps the old key for older backups. */
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import type { ChannelCipher, OutputCipher } from './ciphers.js';
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
import { sealedRecordOf, updateSecret } from './secret-store.js';

interface KeyRotationOptions extends Pick<Core, 'db' | 'logger' | 'uow'> {
  readonly keyring: Keyring;
  readonly outputCipher: OutputCipher;
  readonly channelCipher: ChannelCipher;
}

interface Rotated {
  readonly key_id: string;
  /** Path of the kept key file with the old key; null when there was no old key. */
  readonly kept: string | null;
  /** Number of secrets that this run resealed. */
  readonly secrets: number;
  /** Number of script outputs that this run resealed. */
  readonly outputs: number;
  /** Number of channel configurations that this run resealed. */
  readonly channels: number;
}

/** Rows per transaction. */
const BATCH = 500;
/** Outputs per transaction; smaller than `BATCH` because outputs are larger than secrets. */
const OUTPUT_BATCH = 20;

/** Rotates the sealing key. An interruption is safe: the key file holds both keys until every row is resealed. */
export class KeyRotation {
  private readonly options: KeyRotationOptions;
  private running: Promise<Rotated> | null = null;

  constructor(options: KeyRotationOptions) {
    this.options = options;
  }

  /**
   * Rotates, or completes an interrupted rotation; a concurrent call shares the running one.
   * Throws `secrets_locked` for a value that cannot be decrypted, and then keeps both keys.
   */
  rotate(): Promise<Rotated> {
    this.running ??= this.run().finally(() => {
      this.running = null;
    });
    return this.running;
  }

  /** Completes a rotation that an earlier process began. */
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
      // A rotation that was interrupted after this commit has already emitted the event.
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
        const record = sealedRecordOf(row);
        await updateSecret(tx, row.secret_id, keyring.seal(keyring.open(row, record), record));
      }
      return rows.length;
    });
  }

  private sealChannelBatch(): Promise<number> {
    const { uow, keyring, channelCipher } = this.options;
    return uow.write(async (tx: Queryable) => {
      const rows = await channelsOfOtherKeys(tx, keyring.currentId, BATCH);
      for (const row of rows) await resealChannel(tx, row.channel_id, channelCipher.seal(channelCipher.open(row), row));
      return rows.length;
    });
  }

  /** Reseals outputs and returns their number. Skips outputs that cannot be decrypted, which are lost with either key. */
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
    const { uow, keyring, outputCipher } = this.options;
    return uow.write(async (tx) => {
      const rows = await outputsOfOtherKeys(tx, keyring.currentId, { after, limit: OUTPUT_BATCH });
      let sealed = 0;
      for (const { output, key_id, ...place } of rows) {
        const text = key_id === null ? null : outputCipher.open({ output, key_id }, place);
        if (text === null) continue;
        await resealOperationOutput(tx, place, outputCipher.seal(text, place));
        sealed += 1;
      }
      return { sealed, last: rows.length < OUTPUT_BATCH ? null : (rows.at(-1) ?? null) };
    });
  }
}

/** Runs `batch` until it is not full. Returns the total count. */
async function inBatches(batch: () => Promise<number>): Promise<number> {
  let all = 0;
  for (let count = BATCH; count === BATCH; all += count) count = await batch();
  return all;
}

interface OutputBatch {
  readonly sealed: number;
  /** Key of the last output, the cursor of the next batch; null after the last batch. */
  readonly last: OperationOutputKey | null;
}
