/** The store's side of sessions: each change of one and its audit events, in one transaction. */
import type { Clock } from '../../src/kernel/clock.js';
import { isFault } from '../../src/kernel/fault.js';
import { type Exit, endedStatus } from '../../src/terminal/exit.js';
import type { Party, RequestContext } from '../core/domain-event.js';
import type { UnitOfWork } from '../core/unit-of-work.js';
import type { NewRow } from '../database/schema.js';
import type { SessionFacts } from './session/session-facts.js';
import {
  type AttachDetails,
  attachedEvent,
  endedEvent,
  openedEvent,
  type Refusal,
  refusedEvent,
} from './session-events.js';
import { insertTerminal, type TerminalRow, updateTerminal } from './session-store.js';

export interface SessionBookOptions {
  readonly uow: UnitOfWork;
  readonly clock: Clock;
}

export interface SessionEnd {
  readonly exit: Exit;
  readonly bytes: number;
  readonly size: { readonly cols: number; readonly rows: number };
  readonly recording: TerminalRow['recording'];
  readonly transcriptSha256: string | null;
  /** Who ended it; null for its program, its agent or the orchestrator. */
  readonly by: RequestContext | null;
}

/** The secret with which the one who writes comes back. */
export interface ResumeKey {
  readonly hash: string;
  readonly operatorId: string;
}

/** An end, with the time at which the session ended. */
interface StoredEnd {
  readonly facts: SessionFacts;
  readonly end: SessionEnd;
  readonly closedAt: number;
}

/** Pause between two tries to store ends that the store did not take, in milliseconds. */
const RETRY_MS = 2_000;

export class SessionBook {
  private readonly options: SessionBookOptions;
  /** Ends that the store did not take, oldest first. */
  private readonly unstored: StoredEnd[] = [];
  private retry: NodeJS.Timeout | undefined;
  private isRetrying = false;

  constructor(options: SessionBookOptions) {
    this.options = options;
  }

  async opened(facts: SessionFacts, row: NewRow<'terminal_sessions'>, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      await insertTerminal(tx, row);
      const { user = null, shell = null, recording } = row;
      emit(openedEvent(facts, { user, shell, recording }, context));
    });
  }

  /** @param key of the new writer; null for a viewer */
  async attached(facts: SessionFacts, key: ResumeKey | null, details: AttachDetails | null): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      if (key !== null) {
        await updateTerminal(tx, facts.id, { resume_hash: key.hash, resume_operator_id: key.operatorId });
      }
      if (details !== null) emit(attachedEvent(facts, details));
    });
  }

  async recordingStopped(facts: SessionFacts, recording: TerminalRow['recording']): Promise<void> {
    await this.options.uow.write((tx) => updateTerminal(tx, facts.id, { recording }));
  }

  /**
   * Stores the end of a session. When the store cannot be written, as on a full disk, this throws `store_unavailable`, and the
   * end is stored as soon as it can be: no session that is over stays active in the list.
   */
  async ended(facts: SessionFacts, end: SessionEnd): Promise<void> {
    const ended: StoredEnd = { facts, end, closedAt: this.options.clock.now() };
    try {
      await this.storeEnd(ended);
    } catch (error) {
      if (isFault(error, 'store_unavailable')) this.storeLater(ended);
      throw error;
    }
  }

  private storeLater(ended: StoredEnd): void {
    this.unstored.push(ended);
    this.retry ??= setInterval(() => void this.storeUnstored(), RETRY_MS).unref();
  }

  private async storeUnstored(): Promise<void> {
    if (this.isRetrying) return;
    this.isRetrying = true;
    try {
      for (let next = this.unstored[0]; next !== undefined; next = this.unstored[0]) {
        await this.storeEnd(next);
        this.unstored.shift();
      }
      clearInterval(this.retry);
      this.retry = undefined;
    } catch {
      // The store still cannot be written. A restart finds the rest: their agents do not know these sessions.
    } finally {
      this.isRetrying = false;
    }
  }

  private async storeEnd({ facts, end, closedAt }: StoredEnd): Promise<void> {
    const { exit, bytes, size, recording, transcriptSha256, by } = end;
    await this.options.uow.write(async (tx, emit) => {
      await updateTerminal(tx, facts.id, {
        status: endedStatus(exit.reason),
        reason: exit.reason,
        exit_code: exit.code,
        exit_signal: exit.signal,
        closed_at: closedAt,
        cols: size.cols,
        rows: size.rows,
        recording,
        transcript_sha256: transcriptSha256,
        output_bytes: bytes,
        resume_hash: null,
        resume_operator_id: null,
      });
      emit(endedEvent(facts, { exit, bytes, recording, transcriptSha256, by }));
    });
  }

  async refused(facts: Parameters<typeof refusedEvent>[0], refusal: Refusal): Promise<void> {
    await this.options.uow.write(async (_, emit) => emit(refusedEvent(facts, refusal)));
  }
}

export const operatorParty = ({
  operator_id: id,
  username: name,
}: {
  readonly operator_id: string;
  readonly username: string;
}): Party => ({ id, name, type: 'operator' });
