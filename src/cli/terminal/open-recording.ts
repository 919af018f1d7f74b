/** Opens a recording that a person names: a session of the orchestrator, or a file. */
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { ApiClient } from '../../client/api-client.js';
import { Fault, messageOf } from '../../kernel/fault.js';
import { openCastFile } from '../../terminal/recording/read-cast.js';
import { findSession } from '../commands/term/find-session.js';

export interface Download {
  readonly sessionId: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** False when it is not what the audit log says; null when that says nothing yet, or not all was read. */
  isAsRecorded(): boolean | null;
}

/** @throws Fault `terminal_not_found`, `transcript_not_found` */
export async function downloadRecording(api: ApiClient, given: string, signal: AbortSignal): Promise<Download> {
  const session_id = await findSession(api, given, signal);
  const { transcript_sha256: sha256 } = await api.call('getTerminal', { params: { session_id }, signal });
  const body = await api.download('getTranscript', { params: { session_id }, signal });
  const hash = createHash('sha256');
  let isRead = false;
  return {
    sessionId: session_id,
    chunks: hashed(),
    isAsRecorded: () => (sha256 === null || !isRead ? null : hash.copy().digest('hex') === sha256),
  };

  async function* hashed(): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      hash.update(chunk);
      yield chunk;
    }
    isRead = true;
  }
}

/** To be called at the end. @throws Fault `transcript_invalid` when it is not what the audit log says */
export function requireAsRecorded({ isAsRecorded, sessionId }: Download): void {
  if (isAsRecorded() !== false) return;
  throw new Fault(
    'transcript_invalid',
    `this is not what was recorded: its SHA-256 is not the one that "orch term show ${sessionId}" gives`,
    { hint: 'keep the file on the orchestrator, and see who could write there' },
  );
}

/** What is no file's name is null. @throws Fault `usage` */
export async function openRecordingFile(path: string): Promise<AsyncIterable<Uint8Array> | null> {
  const found = await stat(path).catch(() => null);
  if (found === null && !/[/.]/.test(path)) return null;
  if (found === null)
    throw new Fault('usage', `${path} does not exist`, { hint: 'see the sessions: orch term list --all' });
  if (found.isDirectory()) throw new Fault('usage', `${path} is a directory`);
  try {
    return await openCastFile(path);
  } catch (cause) {
    throw new Fault('usage', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
}
