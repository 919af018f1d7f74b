/** Triggers of a run: due ones, owed ones of earlier runs, and those that a change makes other resources owe. */
import type { DesiredResource } from '../../resources/desired.js';
import type { TriggerField } from '../../resources/kind.js';
import { TRIGGER_FIELDS } from '../../resources/kind.js';
import type { AnsweredTrigger, OwedTrigger } from './ledger.js';
import { isRemoval, type Target } from './target.js';

/** The due triggers of one resource and their cause. */
export interface Due {
  readonly fields: ReadonlySet<TriggerField>;
  /** The changed resources, or the operation since which a trigger is owed; null when nothing is due. */
  readonly because: string | null;
}

export const NOT_DUE: Due = { fields: new Set(), because: null };

const VERBS: Readonly<Record<TriggerField, string>> = {
  reload_on: 'reload',
  restart_on: 'restart',
  rerun_on: 'rerun',
};

interface TriggersOptions {
  /** The desired resources of the run. */
  readonly desired: readonly Target[];
  readonly owed: readonly OwedTrigger[];
  /** Returns the resource or the removal at a position of the run. */
  at(index: number): Target | undefined;
  /** True when a resource was changed or removed in this run or, in a plan, would be. */
  hasChanged(index: number): boolean;
  /** True in a plan, where changes are only predicted. */
  readonly isPlan: boolean;
}

export class Triggers {
  private readonly options: TriggersOptions;
  private readonly owedBefore = new Map<string, OwedTrigger[]>();
  /** Listening resources, by the position of the resource that they listen to. */
  private readonly listeners = new Map<number, { readonly target: Target; readonly field: TriggerField }[]>();
  /** Positions of resources whose announced changes cause a trigger in this run, by the trigger's name. */
  private readonly causes = new Map<string, Set<number>>();

  constructor(options: TriggersOptions) {
    this.options = options;
    for (const owed of options.owed) push(this.owedBefore, owed.key, owed);
    for (const target of options.desired) {
      for (const [field, indices] of triggersOf(target)) {
        for (const index of indices) push(this.listeners, index, { target, field });
      }
    }
  }

  /** Returns the triggers that are due for a resource at this point of the run. */
  due(target: Target): Due {
    const fields = new Set<TriggerField>();
    const because: string[] = [];
    for (const [field, indices] of triggersOf(target)) {
      const changed = indices.filter((index) => this.options.hasChanged(index));
      if (changed.length === 0) continue;
      fields.add(field);
      because.push(...this.causesNamed(changed));
    }
    for (const { field, run } of this.owedBy(target)) {
      fields.add(field);
      because.push(`${VERBS[field]} owed since operation ${run}`);
    }
    if (fields.size === 0) return NOT_DUE;
    return { fields, because: [...new Set(because)].join('; ') };
  }

  /** Returns those of the removals that one of the resources listens to. */
  listenedTo(removals: readonly Target[], by: readonly Target[]): readonly Target[] {
    const listening = new Set(by);
    return removals.filter(
      ({ index }) => this.listeners.get(index)?.some(({ target }) => listening.has(target)) === true,
    );
  }

  /** Returns the triggers that earlier runs left owed. */
  owedBy(target: Target): readonly OwedTrigger[] {
    return isRemoval(target.source) ? [] : (this.owedBefore.get(target.key) ?? []);
  }

  /** Returns the triggers to store before a resource is changed, without those that are owed already. */
  owedFor(target: Target, own: TriggerField | undefined, run: string): readonly OwedTrigger[] {
    const listening = this.listeners.get(target.index) ?? [];
    const owed = listening.map((one): OwedTrigger => ({ key: one.target.key, field: one.field, run }));
    for (const one of owed) this.causesOf(one).add(target.index);
    if (own !== undefined) owed.push({ key: target.key, field: own, run });
    return owed.filter(({ key, field }) => !this.owedBefore.get(key)?.some((known) => known.field === field));
  }

  /** True when another resource listens to it. */
  hasListeners({ index }: Target): boolean {
    return this.listeners.has(index);
  }

  /** Returns the triggers that become obsolete because the change that would have caused them did not happen. */
  cancelledBy(target: Target): readonly AnsweredTrigger[] {
    const listening = this.listeners.get(target.index) ?? [];
    const answerable = listening.filter(({ target: listener, field }) => !this.due(listener).fields.has(field));
    const paid = answerable.map((one): AnsweredTrigger => ({ key: one.target.key, field: one.field }));
    return paid.filter((one) => {
      const causes = this.causesOf(one);
      causes.delete(target.index);
      // Another resource may have changed before this one failed.
      return causes.size === 0;
    });
  }

  private causesOf({ key, field }: AnsweredTrigger): Set<number> {
    const name = `${field}\0${key}`;
    const known = this.causes.get(name) ?? new Set();
    this.causes.set(name, known);
    return known;
  }

  /** Returns what has happened, one text for changes and one for removals. */
  private causesNamed(indices: readonly number[]): readonly string[] {
    const { isPlan, at } = this.options;
    const sources = indices.flatMap((index) => at(index)?.source ?? []);
    const [changed, removed] = [sources.filter((one) => !isRemoval(one)), sources.filter(isRemoval)];
    const verb = (of: readonly unknown[], [one, many]: readonly [string, string]) => (of.length === 1 ? one : many);
    const happened = isPlan
      ? { change: verb(changed, ['changes', 'change']), removal: verb(removed, ['goes', 'go']) }
      : { change: 'changed', removal: verb(removed, ['is gone', 'are gone']) };
    return [
      ...(changed.length === 0 ? [] : [`${named(changed)} ${happened.change}`]),
      ...(removed.length === 0 ? [] : [`${named(removed)} ${happened.removal}`]),
    ];
  }
}

function named([first, ...others]: readonly Target['source'][]): string {
  const name = `${first?.kind} ${first?.identity}`;
  return others.length === 0 ? name : `${name} and ${others.length} more`;
}

function triggersOf({ source }: Target): readonly (readonly [TriggerField, readonly number[]])[] {
  const { triggers }: Pick<DesiredResource, 'triggers'> = isRemoval(source) ? {} : source;
  if (triggers === undefined) return [];
  return TRIGGER_FIELDS.flatMap((field) => {
    const indices = triggers[field];
    return indices === undefined ? [] : [[field, indices] as const];
  });
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
