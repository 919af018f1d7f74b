/** What programs are told of a command on an agent. */
import { type ExecResult, exitStatusOfEnd, wordsOfEnd } from './exec-end.js';
import type { KeptOutput } from './kept-output.js';

/** `exit_status` is what `orch exec` of this agent alone would end with. */
export function execBody(result: ExecResult, output: KeptOutput): Readonly<Record<string, unknown>> {
  const { agent, end } = result;
  const exit = end.kind === 'exit' ? end.exit : null;
  return {
    node_id: agent.node_id,
    name: agent.name,
    exit_status: exitStatusOfEnd(end),
    exit_code: exit?.code ?? null,
    signal: exit?.signal ?? null,
    reason: exit?.reason ?? null,
    complete: end.kind === 'exit' && end.complete,
    stdout: output.text('out'),
    stderr: output.text('err'),
    truncated: output.truncated,
    error:
      exit !== null ? null : { code: end.kind === 'fault' ? end.fault.code : 'cancelled', message: wordsOfEnd(end) },
  };
}
