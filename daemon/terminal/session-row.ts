/** A session as the store has it from its start. */

import type { SessionFacts } from './session/session-facts.js';
import type { SessionParts } from './session/session-parts.js';
import type { ResumeKey } from './session-book.js';
import type { TerminalRow } from './session-store.js';

/** @param key of the one who opens it */
export const sessionRow = (
  facts: SessionFacts,
  { program, size, recording }: SessionParts,
  key: ResumeKey,
): TerminalRow => ({
  session_id: facts.id,
  node_id: facts.nodeId,
  node_name: facts.nodeName,
  operator_id: facts.operatorId,
  operator: facts.operator,
  kind: facts.kind,
  user: program.user,
  shell: program.shell,
  command_json: facts.command === null ? null : JSON.stringify(facts.command),
  cols: size.cols,
  rows: size.rows,
  term: facts.term,
  status: 'active',
  reason: null,
  exit_code: null,
  exit_signal: null,
  opened_at: facts.openedAt,
  closed_at: null,
  recording: recording.state,
  transcript: recording.path,
  transcript_sha256: null,
  output_bytes: 0,
  resume_hash: key.hash,
  resume_operator_id: key.operatorId,
});
