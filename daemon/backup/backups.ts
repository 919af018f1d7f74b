/** Backs up the store to a file, of a running or a stopped orchestrator. */
import { rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Fault, isFault } from '../../src/kernel/fault.js';
import { VERSION } from '../../src/kernel/version.js';
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import type { OpenDatabase } from '../database/database.js';
import {
  type BackupReport,
  type BackupTarget,
  checkTarget,
  makeWorkplace,
  notWritable,
  putInPlace,
} from './backup-target.js';
import type { SealedCopy, SealOptions } from './seal-copy.js';
import { keysIn } from './starting-directory.js';

interface BackupsOptions extends Pick<Core, 'clock' | 'uow'> {
  readonly dataDir: string;
  readonly store: Pick<OpenDatabase, 'backup'>;
  /** Public key of the orchestrator, hex. */
  readonly publicKey: string;
  readonly seal: (options: SealOptions) => Promise<SealedCopy>;
}

/** Stores a sealed copy at a place of its own. */
export type Deliver = (copy: string, sealed: SealedCopy) => Promise<void>;

interface Run {
  /** Path of the backup. */
  readonly file: string;
  /** Directory of the copy; removed at the end. */
  readonly workplace: string;
  /** Called with the sealed copy, before the audit event. */
  readonly store: Deliver;
  /** Called after the audit event. */
  readonly finish: (copy: string) => void;
}

export class Backups {
  private readonly options: BackupsOptions;
  private lane: Promise<unknown> = Promise.resolve();

  constructor(options: BackupsOptions) {
    this.options = options;
  }

  /**
   * Makes a backup and returns its report. Backups are queued. The file gets its name only after it is checked, durable
   * and recorded in the audit log. Throws `usage` or `store_unavailable`, and then leaves an existing file unchanged.
   */
  make(target: BackupTarget): Promise<BackupReport> {
    const { dataDir } = this.options;
    const { file } = target;
    return this.inLane(() => {
      checkTarget(target, dataDir);
      return this.run({
        file,
        workplace: makeWorkplace(file),
        store: async () => checkTarget(target, dataDir),
        finish: (copy) => putInPlace(copy, file),
      });
    });
  }

  /**
   * Makes a copy in the data directory, and has `deliver` store it elsewhere before the audit log records the backup.
   * The copy is removed at the end. Returns the report, with `file` as the name of the backup.
   */
  deliver(file: string, deliver: Deliver): Promise<BackupReport> {
    const workplace = () => makeWorkplace(join(this.options.dataDir, 'backup'));
    return this.inLane(() => this.run({ file, workplace: workplace(), store: deliver, finish: () => undefined }));
  }

  private inLane(work: () => Promise<BackupReport>): Promise<BackupReport> {
    const made = this.lane.then(work);
    this.lane = made.catch(() => undefined);
    return made;
  }

  private async run({ file, workplace, store, finish }: Run): Promise<BackupReport> {
    const { dataDir, clock, publicKey, seal } = this.options;
    try {
      const copy = join(workplace, 'orch.db');
      await this.copyTo(copy, file);
      const note = { made_at: clock.now(), version: VERSION, public_key: publicKey };
      const sealed = await seal({ file: copy, note }).catch((error) => {
        throw isFault(error) ? error : notWritable(copy, error);
      });
      await store(copy, sealed);
      await this.recordEvent(file, sealed);
      finish(copy);
      const { bytes, sha256, schema, last } = sealed;
      const end = { last_seq: last?.seq ?? 0, last_hash: last?.hash ?? '' };
      return { file, bytes, sha256, schema, ...end, keys: [...keysIn(dataDir)] };
    } finally {
      rmSync(workplace, { recursive: true, force: true });
    }
  }

  private async copyTo(copy: string, file: string): Promise<void> {
    try {
      await this.options.store.backup(copy);
    } catch (error) {
      throw error instanceof Fault && error.cause !== undefined ? notWritable(file, error.cause) : error;
    }
  }

  /** Emits the event of the backup. Runs before the rename, so that no backup exists without its audit event. */
  private async recordEvent(file: string, { bytes, sha256, last }: SealedCopy): Promise<void> {
    await this.options.uow.write(async (_, emit) => {
      emit({
        type: 'orchestrator.backed_up',
        actor: SYSTEM,
        target: SYSTEM,
        summary: `The store was backed up to ${basename(file)}`,
        metadata: { file, bytes, sha256, last_seq: last?.seq ?? 0 },
      });
    });
  }
}
