/** How a session ended that was over before its client was back. */
import { Fault } from '../../kernel/fault.js';
import type { Exit } from '../../terminal/exit.js';
import type { ApiClient } from '../api-client.js';
import { exits } from './server-checks.js';

/** Throws what the request fails with, and `unreachable` for a session that is not over or says so in other words. */
export async function lateExit(api: ApiClient, sessionId: string, signal: AbortSignal): Promise<Exit> {
  const session = await api.call('getTerminal', { params: { session_id: sessionId }, signal });
  const { exit_code: code, exit_signal, reason, output_bytes: final_offset } = session;
  const exit = { code, signal: exit_signal, reason, final_offset };
  if (exits.check(exit)) return exit;
  throw new Fault('unreachable', `the orchestrator does not say how terminal ${sessionId} ended`, {
    hint: `see: orch term show ${sessionId}`,
  });
}
