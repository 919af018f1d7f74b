/** Recordings for operators: read, search, and prune after the retention time. */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { TerminalMatch } from '../../../src/contract/terminal.js';
import { toSeconds, toTimestamp } from '../../../src/kernel/clock.js';
import { Fault, messageOf } from '../../../src/kernel/fault.js';
import { resolveOperatorId } from '../../auth/operator-store.js';
import type { Core } from '../../core/core.js';
import { eventOfRequest, type Party, type RequestContext, SYSTEM } from '../../core/domain-event.js';
import {
  findTerminal,
  listOldRecordings,
  listRecordedTerminals,
  type TerminalRow,
  updateTerminal,
} from '../session-store.js';
import { findRecording, namesOf, openRecording } from './recording-files.js';
import { type SearchOptions, TranscriptSearch } from './transcript-search.js';

export interface TranscriptsOptions extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'logger' | 'uow'> {
  readonly dataDir: string;
  /** Durable size of an active recording; see `RecordingStore`. */
  readonly durableSize: (sessionId: string) => number | null;
  /** Returns the retention time in days. */
  readonly days: () => number;
  /** Time limit of a search in milliseconds. */
  readonly searchWithin?: number;
}

export interface TranscriptSearchQuery {
  readonly pattern: string;
  readonly ignore_case?: boolean | null | undefined;
  /** Unix seconds. */
  readonly since?: number | null | undefined;
  readonly node?: string | null | undefined;
  readonly operator?: string | null | undefined;
  readonly limit: number;
  readonly signal: AbortSignal;
  /** Returns the check whether the searcher may read what was recorded of a machine: asked for before and after the search. */
  readonly readable: () => Promise<(record: { readonly nodeId: string; readonly id: string }) => boolean>;
}

export interface FoundTranscripts {
  readonly matches: TerminalMatch[];
  readonly searched: number;
  readonly truncated: boolean;
  readonly altered: string[];
}

const DAY = 86_400_000;
const SEARCH_WITHIN = 15_000;
const PAGE = 50;

export class Transcripts {
  private readonly options: TranscriptsOptions;
  private readonly searching: TranscriptSearch;

  constructor(options: TranscriptsOptions) {
    this.options = options;
    this.searching = new TranscriptSearch({ logger: options.logger });
  }

  /**
   * Returns the plain recording; of an active one, its durable part. The audit event is stored before the first byte is returned.
   * @throws Fault `terminal_not_found`, `transcript_not_found`
   */
  async open(sessionId: string, context: RequestContext): Promise<Readable> {
    const row = await findTerminal(this.options.db, sessionId);
    if (row === null) throw terminalNotFound(sessionId);
    const path = await this.fileOf(row);
    if (path === null) throw transcriptNotFound(row);
    const stream = await openRecording(path, { length: this.options.durableSize(sessionId) });
    stream.once('error', (error) => {
      this.options.logger.warn('a recording could not be read', { session_id: sessionId, reason: messageOf(error) });
    });
    try {
      await this.options.uow.write(async (_, emit) =>
        emit(
          eventOfRequest(context, {
            type: 'terminal.transcript_read',
            target: partyOf(row),
            summary: `${context.actor.name} read the recording of ${row.operator}'s session on ${row.node_name ?? row.node_id}`,
            metadata: { node_id: row.node_id, address: context.address },
          }),
        ),
      );
    } catch (error) {
      stream.destroy();
      throw error;
    }
    return stream;
  }

  /**
   * Returns lines that match the pattern, newest session first, in order within each.
   * @throws Fault `invalid_query` for an invalid regular expression, `invalid_filter` when several removed operators have the name
   */
  async search(query: TranscriptSearchQuery, context: RequestContext): Promise<FoundTranscripts> {
    const { db, uow, searchWithin = SEARCH_WITHIN } = this.options;
    const operator = query.operator == null ? null : await resolveOperatorId(db, query.operator);
    const mayRead = await query.readable();
    const found = await this.searching.run(this.recordings({ ...query, operator }, mayRead), {
      ...searchOptions(query),
      timeoutMs: searchWithin,
    });
    const stillReadable = await query.readable();
    await uow.write(async (_, emit) =>
      emit(
        eventOfRequest(context, {
          type: 'terminal.transcript_read',
          target: { id: 'recordings', name: 'recordings', type: 'session' },
          summary: `${context.actor.name} searched ${found.opened} recordings of terminals for ${JSON.stringify(query.pattern)}`,
          metadata: {
            recordings: found.opened,
            matches: found.matches.length,
            altered: idsOf(found.altered),
            pattern: query.pattern,
            address: context.address,
          },
        }),
      ),
    );
    const matches = found.matches.flatMap(({ row, at, line }) =>
      stillReadable(recordOf(row)) ? [{ ...placeOf(row), at, line }] : [],
    );
    const altered = idsOf(found.altered.filter((row) => stillReadable(recordOf(row))));
    return { matches, searched: found.searched, truncated: found.truncated, altered };
  }

  /** Deletes the recordings that exceed the retention time. Returns their number. */
  async prune(): Promise<number> {
    const { db, uow, ageTime, days, dataDir } = this.options;
    const before = ageTime() - days() * DAY;
    let pruned = 0;
    for (;;) {
      const rows = await listOldRecordings(db, before, PAGE);
      if (rows.length === 0) return pruned;
      for (const { transcript } of rows) {
        for (const name of namesOf(transcript ?? '')) await rm(join(dataDir, name), { force: true });
      }
      pruned += rows.length;
      await uow.write(async (tx, emit) => {
        for (const { session_id } of rows) await updateTerminal(tx, session_id, { recording: 'pruned' });
        emit({
          type: 'terminal.transcripts_pruned',
          actor: SYSTEM,
          target: SYSTEM,
          summary: `deleted ${rows.length} recordings of terminals that ended before ${toTimestamp(before)}`,
          metadata: { deleted: rows.length, before: toTimestamp(before) },
        });
      });
    }
  }

  async stop(): Promise<void> {
    await this.searching.stop();
  }

  private async *recordings({ since, node, operator }: TranscriptSearchQuery, mayRead: MayRead) {
    let olderThan: string | null = null;
    for (;;) {
      const from = since == null ? null : since * 1000;
      const rows: readonly TerminalRow[] = await listRecordedTerminals(this.options.db, {
        ...{ since: from, node, operator, olderThan },
        limit: PAGE,
      });
      for (const row of rows) {
        if (!mayRead(recordOf(row))) continue;
        const path = await this.fileOf(row);
        if (path !== null) yield { row, path, length: this.options.durableSize(row.session_id) };
      }
      olderThan = rows.at(-1)?.session_id ?? null;
      if (rows.length < PAGE) return;
    }
  }

  /** Returns the path of the plain file, or null when no recording exists. */
  private async fileOf({ transcript, recording }: TerminalRow): Promise<string | null> {
    if (transcript === null || recording === 'off' || recording === 'pruned') return null;
    const { dataDir } = this.options;
    return (await findRecording(dataDir, transcript)) === null ? null : join(dataDir, transcript);
  }
}

const searchOptions = ({
  pattern,
  ignore_case,
  limit,
  signal,
}: TranscriptSearchQuery): Omit<SearchOptions, 'timeoutMs'> => ({
  pattern,
  ignoreCase: ignore_case === true,
  limit,
  signal,
});

type MayRead = Awaited<ReturnType<TranscriptSearchQuery['readable']>>;

const recordOf = ({ node_id, session_id }: TerminalRow) => ({ nodeId: node_id, id: session_id });

const idsOf = (rows: readonly TerminalRow[]): string[] => rows.map(({ session_id }) => session_id);

const placeOf = ({ session_id, node_id, node_name, operator, opened_at }: TerminalRow) => ({
  session_id,
  node_id,
  node_name,
  operator,
  opened_at: toSeconds(opened_at),
});

const partyOf = ({ session_id, node_name }: TerminalRow): Party => ({
  id: session_id,
  name: node_name ?? '',
  type: 'session',
});

const terminalNotFound = (sessionId: string): Fault =>
  new Fault('terminal_not_found', `there is no terminal session ${sessionId}`, {
    hint: 'see what there is: orch term list --all',
  });

function transcriptNotFound({ session_id, recording }: TerminalRow): Fault {
  const pruned = recording === 'pruned' ? ': it was deleted after retention.transcripts_days' : '';
  return new Fault('transcript_not_found', `the session ${session_id} has no recording${pruned}`, {
    hint: `what is known of it: orch term show ${session_id}`,
  });
}
