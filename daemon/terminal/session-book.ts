/** The store's side of sessions: each change of one and its audit events, in one transaction. */
import type { Clock } from '../../src/kernel/clock.js';
import { type Exit, endedStatus } from '../../src/terminal/exit.js';
import type { Party } from '../events/domain-event.js';
import type { RequestContext } from '../events/request-context.js';
import type { UnitOfWork } from '../events/unit-of-work.js';
import type { NewRow } from '../store/schema.js';
import { insertTerminal, type TerminalRow, updateTerminal } from '../store/terminal-sessions.js';
import type { SessionFacts } from './session/session-facts.js';
import {
  type AttachDetails,
  attachedEvent,
  endedEvent,
  openedEvent,
  type Refusal,
  refusedEvent,
} from './session-events.js';

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

export class SessionBook {
  private readonly options: SessionBookOptions;

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

  async ended(facts: SessionFacts, end: SessionEnd): Promise<void> {
    const { exit, bytes, size, recording, transcriptSha256, by } = end;
    await this.options.uow.write(async (tx, emit) => {
      await updateTerminal(tx, facts.id, {
        status: endedStatus(exit.reason),
        reason: exit.reason,
        exit_code: exit.code,
        exit_signal: exit.signal,
        closed_at: this.options.clock.now(),
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
