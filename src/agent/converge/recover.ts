/** What became of an apply whose agent died in the middle: what was begun is looked at, the rest was not done. */
import type { Host } from '../../resources/host.js';
import type { RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import { type Intent, skippedBy } from './apply.js';
import { type Decided, decide } from './decide.js';
import { type Item, itemsOf, Neighbours } from './item.js';
import { present } from './present.js';

export interface RecoverOptions {
  readonly content: RunContent;
  readonly host: Host;
  /** By index: changes that were about to be made. */
  readonly intents: ReadonlyMap<number, Intent>;
  /** Indices that have their result. */
  readonly finished: ReadonlySet<number>;
}

/** The results that are missing, in the order of work. Nothing is changed. */
export async function recover({ content, host, intents, finished }: RecoverOptions): Promise<readonly RunItem[]> {
  const items = itemsOf(content, host);
  const missing = items.filter((item) => !finished.has(item.index));
  const begun = missing.filter((item) => intents.has(item.index));
  const decided = await decide(begun, host, new Neighbours(items));
  const found = new Map(decided.map((one) => [one.item, one]));
  return missing.map((item) => {
    const one = found.get(item);
    return one === undefined ? skippedBy('interrupted')(item) : verdict(one, intents.get(item.index)?.existed ?? null);
  });
}

function verdict({ item, decision }: Decided, existed: boolean | null): RunItem {
  if (decision.action !== 'none') {
    const message = 'the agent was interrupted while it was changed, and it is not as it should be';
    return present({ item, decision, existed }, { kind: 'failed', code: 'interrupted', message });
  }
  const done = present({ item, decision, existed }, { kind: 'done' });
  return { ...done, result: { ...done.result, ...asChanged(item, existed) } };
}

function asChanged(item: Item, existed: boolean | null) {
  const action = item.purpose === 'removal' ? 'remove' : existed === false ? 'create' : 'update';
  return { action, status: 'changed', reason: 'it was done just before the agent was interrupted' } as const;
}
