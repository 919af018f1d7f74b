/** Makes a stream of outcomes from work that hands them over one by one. */
import type { Outcome } from '../outcome.js';

/** Resolves when the outcome is printed. */
export type Hand = (outcome: Outcome) => Promise<void>;

/**
 * @param work gives the last outcome; it has begun when this returns
 * @param finish called at the end, whatever it was
 * @param onLeft called when nobody wants more of them; the stream waits for it
 */
export async function* handOver(
  work: (hand: Hand) => Promise<Outcome>,
  finish: () => void,
  onLeft: () => Promise<void>,
): AsyncGenerator<Outcome> {
  const waiting: { readonly outcome: Outcome; readonly printed: () => void }[] = [];
  let wake = () => {};
  let end: { readonly outcome: Outcome } | { readonly error: unknown } | null = null;
  const hand: Hand = (outcome) =>
    new Promise((resolve) => {
      waiting.push({ outcome, printed: resolve });
      wake();
    });
  void work(hand)
    .then(
      (outcome) => {
        end = { outcome };
      },
      (error: unknown) => {
        end = { error };
      },
    )
    .then(() => wake());
  const ended = () => end;
  let isLeft = true;
  try {
    for (;;) {
      const next = waiting.shift();
      if (next !== undefined) {
        yield next.outcome;
        next.printed();
        continue;
      }
      const last = ended();
      if (last !== null) {
        isLeft = false;
        if ('error' in last) throw last.error;
        yield last.outcome;
        return;
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    if (isLeft) await onLeft();
    finish();
  }
}
