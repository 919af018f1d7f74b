/** Stores changes of sessions together with their audit events, each in one transaction. */

import type { Updateable } from 'kysely';
import { isFault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { type Exit, endedStatus } from '../../src/terminal/exit.js';
import type { Core } from '../core/core.js';
import { type DomainEvent, type Party, type RequestContext, SYSTEM } from '../core/domain-event.js';
import { type Decoded, jsonColumns } from '../database/json-columns.js';
import type { NewRow, Queryable, Row, TerminalSessionTable } from '../database/schema.js';
import { isReadable, type Readable } from '../fleet/machines.js';
import { nodeLabel, type SessionFacts } from './session/session-core.js';

type SessionStoreOptions = Pick<Core, 'clock' | 'uow'>;

interface SessionEnd {
  readonly exit: Exit;
  readonly bytes: number;
  readonly size: { readonly cols: number; readonly rows: number };
  readonly recording: TerminalRow['recording'];
  readonly transcriptSha256: string | null;
  /** Request that ended the session; null when its program, its agent or the orchestrator did. */
  readonly by: RequestContext | null;
}

/** Hash of the secret with which the writer resumes, and its operator. */
export interface ResumeKey {
  readonly hash: string;
  readonly operatorId: string;
}

/** The end of a session with its time in Unix milliseconds. */
interface StoredEnd {
  readonly facts: SessionFacts;
  readonly end: SessionEnd;
  readonly closedAt: number;
}

/** Milliseconds between two attempts to store ends that failed. */
const RETRY_MS = 2_000;

export class SessionStore {
  private readonly options: SessionStoreOptions;
  /** Ends that could not be stored yet, oldest first. */
  private readonly unstored: StoredEnd[] = [];
  private retry: NodeJS.Timeout | undefined;
  private isRetrying = false;

  constructor(options: SessionStoreOptions) {
    this.options = options;
  }

  async opened(facts: SessionFacts, row: NewTerminalRow, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      await insertTerminal(tx, row);
      const { user = null, shell = null, recording } = row;
      emit(openedEvent(facts, { user, shell, recording }, context));
    });
  }

  /** Stores an attachment. @param key resume key of a new writer; null for a viewer */
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
   * Stores the end of a session. Throws `store_unavailable` when the store cannot be written, as on a full disk. The end is then
   * stored later, so that no ended session stays active in the list.
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
      // The store still fails. After a restart the rest are closed, because their agents do not know these sessions.
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

const agentParty = ({ nodeId, nodeName }: SessionFacts): Party => ({
  id: nodeId,
  name: nodeName ?? nodeId,
  type: 'agent',
});

const metadataOf = (facts: SessionFacts, more: JsonObject): JsonObject => ({
  session_id: facts.id,
  node_id: facts.nodeId,
  kind: facts.kind,
  ...(facts.command === null ? {} : { command: [...facts.command] }),
  ...more,
});

const requested = ({ requestId }: RequestContext): JsonObject => ({ request_id: requestId });

/** Returns the kind of the session in words. */
const noun = ({ kind }: Pick<SessionFacts, 'kind'>): string => (kind === 'shell' ? 'a terminal' : 'a command');

function openedEvent(facts: SessionFacts, more: JsonObject, context: RequestContext): DomainEvent {
  const summary = `${facts.operator} ${facts.kind === 'shell' ? 'opened' : 'started'} ${noun(facts)} on ${nodeLabel(facts)}`;
  const metadata = metadataOf(facts, { ...more, ...requested(context) });
  return { type: 'terminal.opened', actor: context.actor, target: agentParty(facts), summary, metadata };
}

interface EndDetails {
  readonly exit: Exit;
  readonly bytes: number;
  readonly recording: string;
  readonly transcriptSha256: string | null;
  /** Request that ended the session; null when its program, its agent or the orchestrator did. */
  readonly by: RequestContext | null;
}

function endedEvent(facts: SessionFacts, details: EndDetails): DomainEvent {
  const { exit, bytes, recording, transcriptSha256, by } = details;
  const type = endedStatus(exit.reason) === 'closed' ? 'terminal.closed' : 'terminal.interrupted';
  const verb = type === 'terminal.closed' ? 'ended' : 'was interrupted';
  const summary = `${facts.kind === 'shell' ? 'the terminal' : 'the command'} of ${facts.operator} on ${nodeLabel(facts)} ${verb}: ${exit.reason}`;
  const metadata = metadataOf(facts, {
    reason: exit.reason,
    exit_code: exit.code,
    exit_signal: exit.signal,
    output_bytes: bytes,
    recording,
    transcript_sha256: transcriptSha256,
    ...(by === null ? {} : requested(by)),
  });
  return { type, actor: by?.actor ?? SYSTEM, target: agentParty(facts), summary, metadata };
}

interface FoundDetails {
  /** File of the recording, relative to the data directory. */
  readonly file: string;
  /** Hex SHA-256 of the plain file; null when it is damaged. */
  readonly sha256: string | null;
  readonly bytes: number;
}

/** Event for the recording of a session that the store did not know. */
export function foundEvent(facts: SessionFacts, { file, sha256, bytes }: FoundDetails): DomainEvent {
  const summary = `found the recording of ${noun(facts)} of ${facts.operator} on ${nodeLabel(facts)}, which the store did not know`;
  const metadata = metadataOf(facts, { file, transcript_sha256: sha256, output_bytes: bytes });
  return { type: 'terminal.transcript_found', actor: SYSTEM, target: agentParty(facts), summary, metadata };
}

export interface AttachDetails {
  readonly mode: string;
  /** Username of the writer who lost the pen; null without one. */
  readonly takenFrom: string | null;
  /** True when a viewer took a free pen. */
  readonly isUpgrade: boolean;
  readonly by: Party;
  readonly address: string | null;
}

function attachedEvent(facts: SessionFacts, { mode, takenFrom, isUpgrade, by, address }: AttachDetails): DomainEvent {
  const place = `${noun(facts)} of ${facts.operator} on ${nodeLabel(facts)}`;
  const metadata = metadataOf(facts, { mode, address });
  const common = { actor: by, target: agentParty(facts) };
  if (takenFrom === null) {
    const attached = `${by.name} attached to ${place} to ${mode === 'write' ? 'write' : 'watch'}`;
    const summary = isUpgrade ? `${by.name} took the free pen of ${place}` : attached;
    return { ...common, type: 'terminal.attached', summary, metadata };
  }
  const summary = `${by.name} took ${place} from ${takenFrom}`;
  return { ...common, type: 'terminal.taken_over', summary, metadata: { ...metadata, taken_from: takenFrom } };
}

interface Refusal {
  /** Machine-readable reason. */
  readonly reason: string;
  readonly by: Party;
  readonly address: string | null;
  readonly requestId?: string;
}

/** @param facts the session; its ID is null when it is unknown */
function refusedEvent(
  facts: Pick<SessionFacts, 'nodeId' | 'nodeName'> &
    Partial<Pick<SessionFacts, 'kind' | 'command'>> & { readonly id: string | null },
  { reason, by, address, requestId }: Refusal,
): DomainEvent {
  const { kind = 'shell', command = null } = facts;
  const summary = `${by.name === '' ? by.id : by.name} was refused ${noun({ kind })} on ${nodeLabel(facts)}: ${reason}`;
  const target: Party = { id: facts.nodeId, name: facts.nodeName ?? '', type: 'agent' };
  const wanted: JsonObject = command === null ? {} : { command: [...command] };
  const metadata: JsonObject = { session_id: facts.id, node_id: facts.nodeId, ...wanted, reason, address };
  return {
    type: 'terminal.refused',
    actor: by,
    target,
    summary,
    metadata: requestId === undefined ? metadata : { ...metadata, request_id: requestId },
  };
}

/** Terminal sessions and commands. Their IDs sort by the time at which they were opened; times are milliseconds. */
export type TerminalRow = Decoded<Row<'terminal_sessions'>, TerminalValues>;
type NewTerminalRow = Decoded<NewRow<'terminal_sessions'>, TerminalValues>;

interface TerminalValues {
  /** Program and arguments of a command; null for a shell. */
  readonly command: readonly string[] | null;
}

const columns = jsonColumns<TerminalValues>({ command: true });

export async function insertTerminal(db: Queryable, row: NewTerminalRow): Promise<void> {
  await db.insertInto('terminal_sessions').values(columns.encode(row)).execute();
}

export async function findTerminal(db: Queryable, sessionId: string): Promise<TerminalRow | null> {
  const query = db.selectFrom('terminal_sessions').selectAll().where('session_id', '=', sessionId);
  const row = await query.executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Which of these IDs there are; a thousand at most. */
export async function knownTerminals(db: Queryable, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db.selectFrom('terminal_sessions').select('session_id').where('session_id', 'in', ids).execute();
  return new Set(rows.map(({ session_id }) => session_id));
}

type TerminalChange = Decoded<Omit<Updateable<TerminalSessionTable>, 'session_id'>, TerminalValues>;

export async function updateTerminal(db: Queryable, sessionId: string, change: TerminalChange): Promise<void> {
  await db.updateTable('terminal_sessions').set(columns.encode(change)).where('session_id', '=', sessionId).execute();
}

interface TerminalFilter {
  readonly status?: TerminalRow['status'] | null | undefined;
  readonly node?: string | null | undefined;
  /** Name or ID of who opened it. */
  readonly operator?: string | null | undefined;
  readonly kind?: TerminalRow['kind'] | null | undefined;
}

export interface TerminalPage extends TerminalFilter {
  /** Only sessions that may be read; null for all. */
  readonly readable: Readable | null;
  /** Letters and digits with which the ID begins. */
  readonly prefix?: string | null | undefined;
  readonly limit: number;
  readonly offset: number;
}

/** The newest first. */
export async function listTerminals(db: Queryable, page: TerminalPage): Promise<readonly TerminalRow[]> {
  const { status, node, operator, kind, prefix, readable } = page;
  let query = db.selectFrom('terminal_sessions').selectAll();
  if (status != null) query = query.where('status', '=', status);
  if (node != null) query = query.where('node_id', '=', node);
  if (kind != null) query = query.where('kind', '=', kind);
  if (readable !== null) query = query.where(isReadable(db, readable, 'session_id'));
  // As a range, which the primary key answers.
  if (prefix != null) query = query.where('session_id', '>=', prefix).where('session_id', '<', `${prefix}~`);
  if (operator != null) {
    query = query.where((is) => is.or([is('operator_id', '=', operator), is('operator', '=', operator)]));
  }
  const rows = await query.orderBy('session_id', 'desc').limit(page.limit).offset(page.offset).execute();
  return rows.map((row) => columns.decode(row));
}

/** Returns the sessions that have not ended, oldest first. */
export async function listActiveTerminals(db: Queryable): Promise<readonly TerminalRow[]> {
  const query = db.selectFrom('terminal_sessions').selectAll().where('status', '=', 'active');
  return (await query.orderBy('session_id').execute()).map((row) => columns.decode(row));
}

interface RecordedFilter extends Pick<TerminalFilter, 'node' | 'operator'> {
  /** Opened at that time or later. */
  readonly since: number | null;
  /** Older than the session with this ID; null begins with the newest. */
  readonly olderThan: string | null;
  readonly limit: number;
}

/** Returns the sessions that have a recording, complete or not, newest first. */
export async function listRecordedTerminals(db: Queryable, filter: RecordedFilter): Promise<readonly TerminalRow[]> {
  const { node, operator, since, olderThan, limit } = filter;
  let query = db.selectFrom('terminal_sessions').selectAll();
  query = query.where('transcript', 'is not', null).where('recording', 'not in', ['off', 'pruned']);
  if (node != null) query = query.where('node_id', '=', node);
  if (operator != null) {
    query = query.where((is) => is.or([is('operator_id', '=', operator), is('operator', '=', operator)]));
  }
  if (since !== null) query = query.where('opened_at', '>=', since);
  if (olderThan !== null) query = query.where('session_id', '<', olderThan);
  const rows = await query.orderBy('session_id', 'desc').limit(limit).execute();
  return rows.map((row) => columns.decode(row));
}

/** Returns the sessions that ended before that time and have a recording, oldest first. */
export async function listOldRecordings(db: Queryable, before: number, limit: number): Promise<readonly TerminalRow[]> {
  const query = db.selectFrom('terminal_sessions').selectAll().where('status', '!=', 'active');
  const old = query.where('closed_at', '<', before).where('transcript', 'is not', null);
  const recorded = old.where('recording', 'not in', ['off', 'pruned']);
  const rows = await recorded.orderBy('session_id').limit(limit).execute();
  return rows.map((row) => columns.decode(row));
}
