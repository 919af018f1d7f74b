/** Takes up the sessions that were open when the orchestrator ended; their agents come back by themselves. */
import type { Queryable } from '../database/schema.js';
import type { LiveSessions } from './live-sessions.js';
import type { PartsMaker } from './parts-maker.js';
import { factsOfRow } from './session/session-facts.js';
import { isOver } from './session/session-state.js';
import { listActiveTerminals, type TerminalRow } from './session-store.js';

export interface RestoreOptions {
  readonly db: Queryable;
  readonly live: LiveSessions;
  readonly parts: PartsMaker;
}

/** Resolves when all of them are there; `done` resolves when they can be served. */
export async function restoreSessions(options: RestoreOptions): Promise<{ readonly done: Promise<unknown> }> {
  const rows = await listActiveTerminals(options.db);
  return { done: Promise.all(rows.map((row) => restore(row, options))) };
}

async function restore(row: TerminalRow, { live, parts }: RestoreOptions): Promise<void> {
  const { resume_hash: hash, resume_operator_id: operatorId } = row;
  const resume = hash === null || operatorId === null ? null : { hash, operatorId };
  const session = live.add(factsOfRow(row), resume);
  const made = await parts.restore(session, row);
  if (!isOver(session.state)) return session.open(made);
  made.screen?.close();
  await made.recording.release();
}
