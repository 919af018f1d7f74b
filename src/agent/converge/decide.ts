/** Observes items, each kind at once, and decides what has to be done about each. */
import { isFault, messageOf } from '../../kernel/fault.js';
import type { Host } from '../../resources/host.js';
import type { Decision, ReadPurpose, ResourceKind } from '../../resources/kind.js';
import type { Item, Neighbours } from './item.js';

export interface Decided {
  readonly item: Item;
  readonly decision: Decision;
  /** Whether it was on the machine; null when that could not be seen. */
  readonly existed: boolean | null;
}

/** One decision per item, in order. Never throws: what goes wrong with an item is its decision. */
export async function decide(items: readonly Item[], host: Host, neighbours: Neighbours): Promise<readonly Decided[]> {
  const observed = await observe(items.filter(needsObservation), host);
  const accounts = host.accounts();
  return items.map((item) => {
    const seen = observed.get(item);
    try {
      return { item, ...decideOne(item, seen, () => neighbours.contextOf(item, accounts)) };
    } catch (error) {
      return { item, decision: failureOf(error), existed: null };
    }
  });
}

/** What an observation gave: the kind's own view of the thing, or why there is none. */
type Seen = { readonly have: unknown } | { readonly failure: Decision };

/** What was there before orch came is released without a look. */
const needsObservation = (item: Item): boolean =>
  item.kind !== null && (item.purpose === 'desire' || item.resource.origin === 'created');

async function observe(items: readonly Item[], host: Host): Promise<ReadonlyMap<Item, Seen>> {
  const seen = new Map<Item, Seen>();
  for (const batch of batchesOf(items)) {
    const haves = await read(batch, host);
    batch.items.forEach((item, index) => {
      seen.set(item, 'failure' in haves ? haves : { have: haves.list[index] });
    });
  }
  return seen;
}

interface Batch {
  readonly kind: ResourceKind;
  readonly purpose: ReadPurpose;
  readonly items: Item[];
}

/** Items of one kind and purpose together, as many as the kind wants to read at once. */
function batchesOf(items: readonly Item[]): readonly Batch[] {
  const batches: Batch[] = [];
  const open = new Map<string, Batch>();
  for (const item of items) {
    if (item.kind === null) continue;
    const purpose = item.purpose === 'desire' ? 'plan' : 'removal';
    const key = `${item.kind.kind} ${purpose}`;
    const current = open.get(key);
    if (current !== undefined && current.items.length < (item.kind.batch ?? Number.POSITIVE_INFINITY)) {
      current.items.push(item);
      continue;
    }
    const batch: Batch = { kind: item.kind, purpose, items: [item] };
    open.set(key, batch);
    batches.push(batch);
  }
  return batches;
}

async function read(
  { kind, purpose, items }: Batch,
  host: Host,
): Promise<{ readonly list: readonly unknown[] } | { readonly failure: Decision }> {
  try {
    const bodies = items.map((item) => item.body);
    return { list: await kind.read(host, bodies, purpose) };
  } catch (error) {
    return { failure: failureOf(error) };
  }
}

function decideOne(
  item: Item,
  seen: Seen | undefined,
  context: () => ReturnType<Neighbours['contextOf']>,
): Pick<Decided, 'decision' | 'existed'> {
  if (item.purpose === 'removal' && item.resource.origin === 'adopted') {
    return { decision: { action: 'release', reason: 'it was there before orch managed it' }, existed: null };
  }
  if (item.kind === null || seen === undefined) return { decision: unsupported(item), existed: null };
  if ('failure' in seen) return { decision: seen.failure, existed: null };
  const { kind, body } = item;
  const plan = item.purpose === 'desire' ? kind.plan : kind.planRemoval;
  return { decision: plan(body, seen.have, context()), existed: kind.exists(seen.have) };
}

const unsupported = (item: Item): Decision => ({
  action: 'fail',
  code: 'unsupported_on_platform',
  message: `this agent cannot manage ${item.resource.kind} resources on this platform`,
});

const failureOf = (error: unknown): Decision => ({
  action: 'fail',
  code: isFault(error) ? error.code : 'observe_failed',
  message: messageOf(error),
});
