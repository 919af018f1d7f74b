/** A hash of what a plan saw and would do: equal as long as an apply would do exactly what the plan showed. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../kernel/json.js';
import type { Examined } from './examined.js';
import { Masking } from './masking.js';

export class Fingerprint {
  private readonly hash = createHash('sha256');

  /** In the order of the run. */
  add(examined: Examined): void {
    this.hash.update(`${canonicalJson('finding' in examined ? seen(examined) : planned(examined))}\n`);
  }

  /** 64 hex digits; nothing can be added after that. */
  digest(): string {
    return this.hash.digest('hex');
  }
}

function seen({ finding }: Extract<Examined, { finding: unknown }>): unknown {
  const { target, action, status, error, existed } = finding;
  return { index: target.index, action, status, code: error?.code, existed };
}

/** With secrets masked: a hash of a short secret would tell it to whoever tries all of them. */
function planned({ pending }: Extract<Examined, { pending: unknown }>): unknown {
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
