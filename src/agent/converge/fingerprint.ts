/** Digests of what a run observed and decided, without secrets. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../kernel/json.js';
import type { Examined } from './examined.js';
import { Masking } from './masking.js';

/** A hash of the observations and decisions of a plan: equal while an apply would do exactly what the plan showed. */
export class Fingerprint {
  private readonly hash = createHash('sha256');

  /** Adds a resource; called in the order of the run. */
  add(examined: Examined): void {
    this.hash.update(`${canonicalJson(digestOf(examined))}\n`);
  }

  /** Returns 64 hex digits; nothing can be added afterwards. */
  digest(): string {
    return this.hash.digest('hex');
  }
}

/** Returns what was observed of a resource and decided about it, as a value of JSON. */
export const digestOf = (examined: Examined): unknown =>
  'finding' in examined ? digestOfFinding(examined) : digestOfPending(examined);

function digestOfFinding({ finding }: Extract<Examined, { finding: unknown }>): unknown {
  const { target, action, status, error, existed } = finding;
  return { index: target.index, action, status, code: error?.code, existed };
}

/** Masks secrets, because the hash of a short secret could be found by trying all values. */
function digestOfPending({ pending }: Extract<Examined, { pending: unknown }>): unknown {
  const { target, change, existed } = pending;
  const masking = new Masking(target);
  return {
    index: target.index,
    action: change.action,
    changes: change.changes.map((one) => masking.change(one)),
    text: change.text && masking.texts(change.text),
    existed,
  };
}
