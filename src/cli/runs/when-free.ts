/** `--wait`: waits for an agent that is busy with another operation. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../../client/api-client.js';
import { retryAfterMs } from '../../client/http-messages.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentName, formatDuration } from '../format.js';
import { text } from '../options.js';
import { parseDuration } from '../parse-time.js';
import type { RunAgent } from './agent-run.js';

/** Longest wait of a bare `--wait`. */
const STANDARD = '10m';
/** Seconds that anything is waited for at most. */
const MAXIMUM = 24 * 3600;
/** Milliseconds between two attempts, unless the orchestrator advises another time. */
const PAUSE = 2_000;

export const waitOption = {
  ...text('TIME', `wait for a busy agent, at most this long [${STANDARD}]`),
  bare: STANDARD,
};

/** Returns the seconds of `--wait`; null without it. Throws `usage`. */
export function waitSecsOf(given: string | undefined): number | null {
  if (given === undefined) return null;
  const secs = parseDuration(given, '--wait');
  if (secs <= MAXIMUM) return secs;
  throw new Fault('usage', `--wait ${given} is too long`, { hint: `at most ${MAXIMUM / 3600}h` });
}

interface Waiting {
  readonly agent: RunAgent;
  /** Seconds to wait; null to fail at once. */
  readonly secs: number | null;
}

/**
 * Does the work, again and again while the agent is busy and there is time left. Says once what it waits for. Throws the last
 * `operation_in_progress`, and every other fault at once.
 */
export async function whenFree<T>(
  context: Context,
  api: ApiClient,
  { agent, secs }: Waiting,
  work: () => Promise<T>,
): Promise<T> {
  const { clock, signal, note } = context;
  const end = clock.monotonic() + (secs ?? 0) * 1000;
  let told: string | null = null;
  for (;;) {
    let pause = PAUSE;
    try {
      const done = await work();
      if (secs === null || !wasBusy(done) || clock.monotonic() >= end) return done;
    } catch (error) {
      if (secs === null || !isFault(error, 'operation_in_progress')) throw error;
      if (clock.monotonic() >= end) throw stillBusy(error, secs);
      const what = await describe(api, error, signal);
      if (what !== told) note(`${agentName(agent)} is busy: ${what}. Waiting for at most ${formatDuration(secs)}.`);
      told = what;
      pause = retryAfterMs(error, PAUSE);
    }
    await sleep(Math.max(0, Math.min(pause, end - clock.monotonic())), undefined, { signal });
  }
}

/** Returns whether the agent itself refused, because an earlier operation was still in progress there. */
function wasBusy(done: unknown): boolean {
  const result = typeof done === 'object' && done !== null && 'result' in done ? done.result : done;
  if (typeof result !== 'object' || result === null || !('error' in result)) return false;
  const { error } = result;
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'operation_in_progress';
}

/** Describes what the agent is busy with. */
async function describe(api: ApiClient, busy: Fault, signal: AbortSignal): Promise<string> {
  const id = busy.data?.operation_id;
  if (typeof id !== 'string') return busy.message;
  try {
    const { modules } = await api.call('getOperation', { params: { operation_id: id }, signal });
    return `operation ${id} applies ${modules.join(', ') || 'no modules'}`;
  } catch (error) {
    if (!isFault(error)) throw error;
    return busy.message;
  }
}

const stillBusy = (busy: Fault, secs: number): Fault =>
  new Fault('operation_in_progress', `${busy.message}, also after a wait of ${formatDuration(secs)}`, {
    ...(busy.hint === undefined ? {} : { hint: busy.hint }),
    ...(busy.data === undefined ? {} : { data: busy.data }),
    cause: busy,
  });
