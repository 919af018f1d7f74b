/** The dependency graph of one module, independent of agents. */

import { stableOrder } from '../kernel/order.js';
import type { Body, TriggerField } from '../resources/kind.js';
import { keyInFamily } from '../resources/resource-key.js';
import { choicesOf, membersOf, positionsById, type WrittenMember } from './compile-module.js';
import { type KindSet, type KnownKind, settledBody } from './kind-set.js';
import { type ModuleDefinition, type SingleEntry, STANDARD_KINDS } from './schema.js';

/**
 * Reason why one resource follows another. Two reasons are implicit: `lies in` for a path below a directory that is declared
 * earlier, and `needs` for a required resource, such as the group of a user.
 */
type LinkReason = 'depends_on' | TriggerField | 'lies in' | 'needs';

interface DependencyLink {
  /** Position of the preceding node in the graph. */
  readonly to: number;
  readonly reasons: readonly LinkReason[];
}

/** A resource of the module with all its variants. */
export interface DependencyNode {
  readonly id: string | null;
  readonly name: string | null;
  /** JSON pointer of the entry. */
  readonly path: string;
  /** Kinds of all variants, without duplicates. */
  readonly kinds: readonly string[];
  readonly identities: readonly string[];
  readonly after: readonly DependencyLink[];
}

/** Returns the resources of a valid module in the order of application within this module. */
export function dependencyGraph(
  { name, resources }: ModuleDefinition,
  kinds: KindSet = STANDARD_KINDS,
): readonly DependencyNode[] {
  const members = membersOf({ resources });
  const entries = members.map(({ entry }) => readEntry(entry, kinds));
  const links = linksOf(name, entries, members);
  // Only an error in validation leaves a cycle; the declaration order serves then.
  const order = stableOrder(links.map((reasons) => [...reasons.keys()])) ?? [...entries.keys()];
  const turns = new Map(order.map((position, turn) => [position, turn]));
  return order.flatMap((position) => {
    const entry = entries[position];
    if (entry === undefined) return [];
    const after = [...(links[position] ?? [])].map(([to, reasons]) => ({
      to: turns.get(to) ?? 0,
      reasons: [...reasons],
    }));
    after.sort((a, b) => a.to - b.to);
    return [{ ...labelsOf(entry), path: members[position]?.path ?? '', after }];
  });
}

interface Entry {
  readonly entry: SingleEntry;
  readonly options: readonly { readonly kind: KnownKind; readonly body: Body }[];
}

function readEntry(entry: SingleEntry, kinds: KindSet): Entry {
  const options = choicesOf(entry).flatMap(({ choice }) =>
    Object.entries(choice).flatMap(([name, body]) => {
      const kind = kinds.get(name);
      return kind === undefined ? [] : [{ kind, body: settledBody(kind, body) }];
    }),
  );
  return { entry, options };
}

/** Reasons by the position of the preceding entry. */
type Links = Map<number, Set<LinkReason>>;

function linksOf(module: string, entries: readonly Entry[], members: readonly WrittenMember[]): readonly Links[] {
  const positions = positionsById(members);
  const holders = new Map<string, number>();
  return entries.map(({ entry, options }, at) => {
    const links: Links = new Map();
    const add = (to: number | undefined, reason: LinkReason) => {
      if (to !== undefined && to !== at) links.set(to, (links.get(to) ?? new Set()).add(reason));
    };
    const named = (id: string, reason: LinkReason) => {
      for (const to of positions.get(id) ?? []) add(to, reason);
    };
    for (const id of [...(members[at]?.group?.depends_on ?? []), ...(entry.depends_on ?? [])]) named(id, 'depends_on');
    for (const { kind, body } of options) {
      for (const field of kind.triggers) for (const id of idsOf(body[field])) named(id, field);
      for (const { family, identity } of kind.kind.requires(body)) {
        add(holders.get(keyInFamily(family, identity, module)), family === 'path' ? 'lies in' : 'needs');
      }
    }
    for (const { kind, body } of options) {
      const key = keyInFamily(kind.kind.family, kind.kind.identity(body, entry.id ?? null), module);
      if (!holders.has(key)) holders.set(key, at);
    }
    return links;
  });
}

const idsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((id) => typeof id === 'string') : [];

function labelsOf({ entry, options }: Entry) {
  const identities = options.map(({ kind, body }) => kind.kind.identity(body, entry.id ?? null));
  return {
    id: entry.id ?? null,
    name: entry.name ?? null,
    kinds: [...new Set(options.map(({ kind }) => kind.kind.kind))],
    identities: [...new Set(identities)],
  };
}
