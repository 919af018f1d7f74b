/** Plan and drift: observe everything, decide, change nothing. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../kernel/json.js';
import type { Host } from '../../resources/host.js';
import type { RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import { type Decided, decide } from './decide.js';
import { itemsOf, Neighbours } from './item.js';
import { present } from './present.js';

export interface SurveyOptions {
  readonly content: RunContent;
  readonly host: Host;
  /** True when the run is to end before the next batch. */
  readonly isCancelled: () => boolean;
  readonly onItems: (items: readonly RunItem[]) => void;
}

export interface Survey {
  readonly cancelled: boolean;
  /** SHA-256 over what was decided, hex: equal exactly when the machine asks for the same changes. */
  readonly observed: string;
}

/** Items that are observed and reported together. */
const BATCH = 1_000;

export async function survey({ content, host, isCancelled, onItems }: SurveyOptions): Promise<Survey> {
  const items = itemsOf(content, host);
  const neighbours = new Neighbours(items);
  const hash = createHash('sha256');
  for (let at = 0; at < items.length; at += BATCH) {
    if (isCancelled()) return { cancelled: true, observed: hash.digest('hex') };
    const started = performance.now();
    const decided = await decide(items.slice(at, at + BATCH), host, neighbours);
    for (const one of decided) hash.update(`${canonicalJson(essence(one))}\n`);
    const each = Math.round((performance.now() - started) / decided.length);
    onItems(decided.map((one) => present(one, { kind: 'shown' }, each)));
    await breathe();
  }
  return { cancelled: false, observed: hash.digest('hex') };
}

/** Lets messages in between batches. */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** What two plans have to agree on; the reasons for people are left out. */
function essence({ item, decision }: Decided): unknown {
  const at = { index: item.index, action: decision.action };
  if (decision.action === 'none' || decision.action === 'release') return at;
  if (decision.action === 'fail') return { ...at, code: decision.code };
  return { ...at, changes: decision.changes, before: decision.text?.before ?? null, steps: decision.steps };
}
