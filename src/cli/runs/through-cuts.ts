/** Follows work of the orchestrator through lost connections, expired sessions and restarts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { retryAfterMs } from '../../client/http-messages.js';
import { isFault } from '../../kernel/fault.js';

/** Faults of a stream after which the work goes on, or is taken up again by the next start of the orchestrator. */
const LOST = ['unreachable', 'unauthenticated', 'shutting_down', 'store_unavailable'] as const;

/** Milliseconds between two attempts to reach the orchestrator. */
const PAUSE_MS = 1_000;
/** Attempts without any line before it gives up. */
const ATTEMPTS = 300;

interface ThroughCuts<L> {
  /** Opens the stream of the work again, which repeats its lines; null while it is not known what to follow. */
  readonly again: () => (() => AsyncIterable<L>) | null;
  /** Called when the connection is lost, before it is opened again; not for an expired session. */
  readonly onCut: () => void;
  readonly signal: AbortSignal;
}

/**
 * Yields the lines of a stream up to its result, and after a cut those of the next one. Throws the fault of the first
 * cut when the stream cannot be opened again, and returns when it ends again and again without a result.
 */
export async function* throughCuts<L extends { readonly event: string }>(
  first: AsyncIterable<L>,
  { again, onCut, signal }: ThroughCuts<L>,
): AsyncGenerator<L> {
  let stream = first;
  let cut: unknown = null;
  for (let attempts = 1; ; attempts += 1) {
    let isExpired = false;
    let pause = PAUSE_MS;
    try {
      for await (const line of stream) {
        yield line;
        if (line.event === 'result') return;
        attempts = 1;
        cut = null;
      }
    } catch (error) {
      const isLost = isFault(error, ...LOST);
      // The stream before ended without a result and without a fault.
      if (!isLost && stream !== first && cut === null) return;
      cut ??= error;
      if (signal.aborted || !isLost) throw cut;
      isExpired = isFault(error, 'unauthenticated');
      pause = retryAfterMs(error, PAUSE_MS);
    }
    const open = again();
    if (open === null || attempts > (isExpired ? 1 : ATTEMPTS)) {
      if (cut === null) return;
      throw cut;
    }
    // The client logs in again by itself, and the orchestrator is there.
    if (!isExpired) {
      if (attempts === 1) onCut();
      await sleep(pause, undefined, { signal });
    }
    stream = open();
  }
}
