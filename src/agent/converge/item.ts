/** One entry of a run: a desired resource or a removal, with its kind looked up. */
import { CATALOGUE } from '../../resources/catalogue.js';
import type { DesiredResource, Removal } from '../../resources/desired.js';
import type { Accounts, Host } from '../../resources/host.js';
import type { Body, PlanContext, ResourceKind } from '../../resources/kind.js';
import type { RunContent } from '../../wire/parts.js';

interface Common {
  /** Position in the run: desired resources first, then removals. */
  readonly index: number;
  /** null when this agent does not know the kind or cannot apply it on this platform. */
  readonly kind: ResourceKind | null;
  readonly body: Body;
}

export type Item = Common &
  (
    | { readonly purpose: 'desire'; readonly resource: DesiredResource }
    | { readonly purpose: 'removal'; readonly resource: Removal }
  );

/** Every item in the order in which it is worked on: desired resources, then removals backwards. */
export function itemsOf(content: RunContent, host: Host): readonly Item[] {
  const kindOf = (name: string) => {
    const kind = CATALOGUE.get(name);
    return kind?.platforms.includes(host.platform) ? kind : null;
  };
  const desires = content.resources.map(
    (resource, index): Item => ({
      purpose: 'desire',
      index,
      kind: kindOf(resource.kind),
      body: resource.body,
      resource,
    }),
  );
  const removals = content.removals.map((resource, position): Item => {
    const index = content.resources.length + position;
    return { purpose: 'removal', index, kind: kindOf(resource.kind), body: resource.body, resource };
  });
  return [...desires, ...removals.reverse()];
}

/** True when the resource holds a secret. */
export const isSensitive = (item: Item): boolean =>
  item.purpose === 'desire' && Object.values(item.resource.taint ?? {}).some((spans) => spans.length > 0);

/** What each item may know of the others: who comes before it, and what is removed before it. */
export class Neighbours {
  /** Family and identity -> position in the order of work. */
  private readonly desired = new Map<string, number>();
  private readonly removed = new Map<string, number>();
  private readonly order = new Map<Item, number>();

  constructor(items: readonly Item[]) {
    items.forEach((item, position) => {
      this.order.set(item, position);
      if (item.kind === null) return;
      const target = item.purpose === 'desire' ? this.desired : this.removed;
      const key = keyOf(item.kind.family, item.resource.identity);
      if (!target.has(key)) target.set(key, position);
    });
  }

  contextOf(item: Item, accounts: Accounts): PlanContext {
    const position = this.order.get(item) ?? 0;
    const isBefore = (found: number | undefined) => found !== undefined && found < position;
    return {
      accounts,
      declares: (family, identity) => isBefore(this.desired.get(keyOf(family, identity))),
      removes: (family, identity) => isBefore(this.removed.get(keyOf(family, identity))),
      sensitive: isSensitive(item),
    };
  }
}

const keyOf = (family: string, identity: string): string => `${family}\0${identity}`;
