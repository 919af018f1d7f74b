/** Apply: group by group observe, decide, change, and observe again; removals last and backwards. */
import { messageOf } from '../../kernel/fault.js';
import type { Host, Step, StepOutcome } from '../../resources/host.js';
import type { RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import { type Decided, decide } from './decide.js';
import { groupsOf } from './groups.js';
import { type Item, itemsOf, Neighbours } from './item.js';
import { type Fate, present } from './present.js';
import { breathe } from './survey.js';

/** What the journal has to know. Each call returns when it is on the disk. */
export interface ApplyJournal {
  /** Before the first change of a group: what is about to be changed. */
  intend(intents: readonly Intent[]): void;
  /** After a group: its results. */
  record(items: readonly RunItem[]): void;
}

/** A change that is about to be made. */
export interface Intent {
  readonly index: number;
  readonly existed: boolean | null;
}

export interface ApplyOptions {
  readonly content: RunContent;
  readonly host: Host;
  /** Why no further group is to begin, or null to go on. */
  readonly stopped: () => StopCause | null;
  readonly journal: ApplyJournal;
  /** Called with results that are in the journal. */
  readonly onItems: (items: readonly RunItem[]) => void;
}

/** An operator cancelled the operation, or the agent stops. */
export type StopCause = 'cancelled' | 'interrupted';

export type ApplyEnd = 'succeeded' | 'failed' | StopCause;

export async function apply(options: ApplyOptions): Promise<ApplyEnd> {
  const items = itemsOf(options.content, options.host);
  const neighbours = new Neighbours(items);
  const unfit = new Set<number>();
  let stopped: StopCause | null = null;
  for (const group of groupsOf(items)) {
    await breathe();
    stopped ??= options.stopped();
    const results = stopped
      ? group.map(skippedBy(stopped))
      : await applyGroup(group, { ...options, neighbours, unfit });
    for (const { index, result } of results) {
      if (result.status === 'failed' || result.status === 'skipped') unfit.add(index);
    }
    options.journal.record(results);
    options.onItems(results);
  }
  if (stopped) return stopped;
  return unfit.size > 0 ? 'failed' : 'succeeded';
}

interface GroupOptions extends ApplyOptions {
  readonly neighbours: Neighbours;
  /** Positions of what failed or was skipped. */
  readonly unfit: ReadonlySet<number>;
}

async function applyGroup(group: readonly Item[], options: GroupOptions): Promise<readonly RunItem[]> {
  const started = performance.now();
  const blocked = new Map(group.flatMap((item) => blockedBy(item, options)));
  const decided = await decide(
    group.filter((item) => !blocked.has(item)),
    options.host,
    options.neighbours,
  );
  const fates = await carryOut(decided, options);
  const each = Math.round((performance.now() - started) / group.length);
  const done = decided.map((one) => present(one, fates.get(one.item) ?? { kind: 'done' }, each));
  const skipped = [...blocked].map(([item, fate]) => present(undecided(item), fate));
  return [...done, ...skipped].sort((a, b) => group.findIndex(at(a)) - group.findIndex(at(b)));
}

const at = (result: RunItem) => (item: Item) => item.index === result.index;

/** Why an item is not even looked at: something that it needs did not succeed. */
function blockedBy(item: Item, { content, unfit }: GroupOptions): readonly (readonly [Item, Fate])[] {
  if (item.purpose === 'removal') return [];
  const cause = item.resource.after.find((index) => unfit.has(index));
  if (cause === undefined) return [];
  const needed = content.resources[cause];
  const message = `it needs ${needed?.kind} ${needed?.identity}, which did not succeed`;
  return [[item, { kind: 'skipped', code: 'dependency_failed', message }]];
}

/** Makes the changes of a group and looks again; returns the fates of what was to be changed. */
async function carryOut(decided: readonly Decided[], options: GroupOptions): Promise<ReadonlyMap<Item, Fate>> {
  const changing = decided.filter(({ decision }) => 'steps' in decision);
  if (changing.length === 0) return new Map();
  options.journal.intend(changing.map(({ item, existed }) => ({ index: item.index, existed })));
  const fates = await commit(changing, options.host);
  const again = await decide(
    changing.filter(({ item }) => !fates.has(item)).map(({ item }) => item),
    options.host,
    options.neighbours,
  );
  for (const { item, decision } of again) {
    if (decision.action === 'none') continue;
    fates.set(item, {
      kind: 'failed',
      code: decision.action === 'fail' ? decision.code : 'not_converged',
      message: stillDiffers(decision),
    });
  }
  return fates;
}

/** Hands all steps of a group to the host at once; returns the failures. */
async function commit(changing: readonly Decided[], host: Host): Promise<Map<Item, Fate>> {
  const owners = changing.flatMap(({ item, decision }) => ('steps' in decision ? decision.steps.map(() => item) : []));
  const steps = changing.flatMap(({ decision }) => ('steps' in decision ? decision.steps : []));
  const outcomes = await attempt(host, steps);
  const failures = new Map<Item, Fate>();
  outcomes.forEach((outcome, index) => {
    const item = owners[index];
    if (outcome !== null && item !== undefined && !failures.has(item))
      failures.set(item, { kind: 'failed', ...outcome });
  });
  return failures;
}

async function attempt(host: Host, steps: readonly Step[]): Promise<readonly StepOutcome[]> {
  try {
    return await host.commit(steps);
  } catch (error) {
    return steps.map(() => ({ code: 'apply_failed', message: messageOf(error) }));
  }
}

function stillDiffers(decision: Decided['decision']): string {
  if (decision.action === 'fail') return decision.message;
  if (!('changes' in decision)) return 'it is not as it should be after the change';
  const fields = decision.changes.map(({ field }) => field).join(', ');
  return `it still differs after the change${fields === '' ? '' : `: ${fields}`}`;
}

const undecided = (item: Item): Decided => ({ item, decision: { action: 'none' }, existed: null });

/** The result of an item that is not begun any more. */
export const skippedBy =
  (code: StopCause) =>
  (item: Item): RunItem =>
    present(undecided(item), { kind: 'skipped', code, message: `the operation was ${code} before it` });
