/** The resources of all modules as one set: what is declared twice alike is one resource, what differs is a conflict. */
import { canonicalJson } from '../kernel/json.js';
import { mapped, type Steps } from '../kernel/steps.js';
import type { Span } from '../kernel/tainted.js';
import { type Family, MODULE_FAMILIES } from '../resources/kind.js';
import { quoted } from './printable.js';
import { placeOf, type Realized } from './realize.js';
import type { ResolutionError } from './resolution-error.js';

/** A resource of the set, first declared at `first`; `places` are all that declare it. */
export interface Node {
  readonly first: Realized;
  readonly places: Realized[];
  taint: ReadonlyMap<string, readonly Span[]>;
}

export interface MergedSet {
  readonly nodes: readonly Node[];
  /** For each realized resource, in their order, the position of its node. */
  readonly positions: readonly number[];
  /** Position of a node by `keyOf`. */
  readonly byKey: ReadonlyMap<string, number>;
}

/** What a thing on the machine is known by. Some families are told apart by module too. */
export const keyOf = (family: Family, identity: string, module: string): string =>
  MODULE_FAMILIES.has(family) ? `${family}\0${identity}\0${module}` : `${family}\0${identity}`;

/** Merges equal declarations, the first place keeping its turn; reports those that differ. */
export function* merge(realized: readonly Realized[], errors: ResolutionError[]): Steps<MergedSet> {
  const nodes: Node[] = [];
  const byKey = new Map<string, number>();
  const positions = yield* mapped(realized, (one) => {
    const key = keyOf(one.option.kind.kind.family, one.identity, one.module.name);
    const known = byKey.get(key);
    const node = known === undefined ? undefined : nodes[known];
    if (known === undefined || node === undefined) {
      byKey.set(key, nodes.length);
      return nodes.push({ first: one, places: [one], taint: one.taint }) - 1;
    }
    const difference = differenceBetween(node.first, one);
    if (difference === null) {
      node.places.push(one);
      node.taint = mergeTaint(node.taint, one.taint);
    } else {
      const places = `${placeOf(node.first.module, node.first.resource)} and by ${placeOf(one.module, one.resource)}`;
      const message = `${quoted(one.identity)} is declared differently by ${places}: ${difference}`;
      errors.push({ code: 'module_conflict', module: one.module.name, path: one.option.path, message });
    }
    return known;
  });
  return { nodes, positions, byKey };
}

/** What differs, without values, which may be long or secret; null when nothing does. */
function differenceBetween(a: Realized, b: Realized): string | null {
  const kinds = [a.option.kind.kind.kind, b.option.kind.kind.kind] as const;
  if (kinds[0] !== kinds[1]) return `once as ${kinds[0]} and once as ${kinds[1]}`;
  if (a.body === b.body) return null;
  const names = [...new Set([...Object.keys(a.body), ...Object.keys(b.body)])];
  const different = names.filter((name) => canonicalJson(a.body[name]) !== canonicalJson(b.body[name]));
  return different.length === 0 ? null : `they differ in ${different.join(', ')}`;
}

type Taint = ReadonlyMap<string, readonly Span[]>;

/** A text is secret wherever one of its declarations says so. */
function mergeTaint(a: Taint, b: Taint): Taint {
  if (b.size === 0) return a;
  if (a.size === 0) return b;
  const merged = new Map(a);
  for (const [path, spans] of b) merged.set(path, mergeSpans([...(a.get(path) ?? []), ...spans]));
  return merged;
}

/** Ordered spans without overlap; overlapping ones become one with the name of the first. */
function mergeSpans(spans: readonly Span[]): readonly Span[] {
  const merged: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const last = merged.at(-1);
    if (last === undefined || span.start >= last.end) merged.push(span);
    else if (span.end > last.end) merged[merged.length - 1] = { ...last, end: span.end };
  }
  return merged;
}
