/** Follows the stream of a run to its result. */
import type { RunEvent, RunResult } from '../../contract/runs.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { ResourceResult } from '../../resources/result.js';

export interface Follower {
  started?(operationId: string): void;
  resource(resource: ResourceResult): void;
}

/** Throws the stream's own fault; one of a lost connection or an ended session tells how to go on watching. */
export async function followRun(
  stream: AsyncIterable<Exclude<RunEvent, { readonly event: 'error' }>>,
  follower: Follower,
): Promise<RunResult> {
  let operation: string | null = null;
  try {
    for await (const line of stream) {
      if (line.event === 'result') return line.result;
      if (line.event === 'resource') follower.resource(line.resource);
      else if (line.operation_id !== null) {
        operation = line.operation_id;
        follower.started?.(operation);
      }
    }
  } catch (error) {
    throw operation !== null && isFault(error, 'unreachable', 'unauthenticated') ? lost(operation, error) : error;
  }
  throw operation === null ? new Fault('unreachable', 'the orchestrator ended the answer too early') : lost(operation);
}

/** @param cause `unauthenticated` when the session is over, and otherwise whatever broke the connection */
function lost(operation: string, cause?: Fault): Fault {
  const isOver = isFault(cause, 'unauthenticated');
  const what = isOver ? 'the session ended' : 'the connection broke';
  return new Fault(
    isOver ? 'unauthenticated' : 'unreachable',
    `${what} while operation ${operation} was running; it goes on without it`,
    { hint: `watch it with: orch ops watch ${operation}`, cause, data: { operation_id: operation } },
  );
}
