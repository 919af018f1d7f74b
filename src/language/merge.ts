/** Merges the resources of all modules into one set. Equal declarations become one resource; different ones conflict. */
import { canonicalJson } from '../kernel/json.js';
import { mapped, type Steps } from '../kernel/steps.js';
import type { Span } from '../kernel/tainted.js';
import { isAbsence, kindOfAbsence } from '../resources/absence-name.js';
import { isWhole } from '../resources/edits/file-edit.js';
import type { Body } from '../resources/kind.js';
import { keyInFamily } from '../resources/resource-key.js';
import { quoted } from './printable.js';
import { placeOfRealized, type Realized } from './realize.js';
import type { ResolutionError } from './resolution-error.js';

/** A resource of the set with its first declaration and all declarations. */
export interface Node {
  /** The first declaration, with the body that fulfils all. */
  first: Realized;
  readonly places: Realized[];
  taint: ReadonlyMap<string, readonly Span[]>;
}

export interface MergedSet {
  readonly nodes: readonly Node[];
  /** Positions of the nodes, in the order of the realized resources. */
  readonly positions: readonly number[];
  /** Position of a node by `keyInFamily`. */
  readonly byKey: ReadonlyMap<string, number>;
}

/** Merges equal declarations at the first one's place and reports different ones. */
export function* merge(realized: readonly Realized[], errors: ResolutionError[]): Steps<MergedSet> {
  const nodes: Node[] = [];
  const byKey = new Map<string, number>();
  const positions = yield* mapped(realized, (one) => {
    const key = keyInFamily(one.option.kind.kind.family, one.identity, one.module.name);
    const known = byKey.get(key);
    const node = known === undefined ? undefined : nodes[known];
    if (known === undefined || node === undefined) {
      byKey.set(key, nodes.length);
      return nodes.push({ first: one, places: [one], taint: one.taint }) - 1;
    }
    const difference = differenceBetween(node.first, one);
    const body = difference === null ? node.first.body : agreedBody(node.first, one);
    if (difference === null || body !== null) {
      if (body !== null && body !== node.first.body) node.first = { ...node.first, body };
      node.places.push(one);
      node.taint = mergeTaint(node.taint, one.taint);
    } else {
      const places = `${placeOfRealized(node.first)} and by ${placeOfRealized(one)}`;
      const message = `${quoted(one.identity)} is declared differently by ${places}: ${difference}`;
      errors.push({ code: 'module_conflict', module: one.module.name, path: one.option.path, message });
    }
    return known;
  });
  yield* checkAbsences(nodes, byKey, errors);
  yield* checkEdits(nodes, byKey, errors);
  yield* checkClashes(nodes, byKey, errors);
  return { nodes, positions, byKey };
}

/** Reports resources that need something absent, such as a file in a directory that is not to be there. */
function* checkAbsences(
  nodes: readonly Node[],
  byKey: ReadonlyMap<string, number>,
  errors: ResolutionError[],
): Steps<void> {
  if (!nodes.some(isAbsent)) return;
  for (const { first } of nodes) {
    yield;
    const { kind } = first.option.kind;
    for (const { family, identity } of [...kind.requires(first.body), ...(kind.above?.(first.body) ?? [])]) {
      const needed = nodes[byKey.get(keyInFamily(family, identity, first.module.name)) ?? -1];
      if (needed === undefined || !isAbsent(needed)) continue;
      const wanted = `${quoted(first.identity)}, declared by ${placeOfRealized(first)}, needs ${quoted(identity)}`;
      const message = `${wanted}, which is absent by ${placeOfRealized(needed.first)}`;
      errors.push({ code: 'module_conflict', module: first.module.name, path: first.option.path, message });
    }
  }
}

/**
 * Reports resources that change a part of a file that another one has as a whole, or that would undo each other. A step
 * compares one with all before it in its file.
 */
function* checkEdits(
  nodes: readonly Node[],
  byKey: ReadonlyMap<string, number>,
  errors: ResolutionError[],
): Steps<void> {
  const inFiles = new Map<string, Part[]>();
  for (const node of nodes) {
    const { kind } = node.first.option.kind;
    const path = kind.edits?.(node.first.body);
    if (path === undefined) continue;
    yield;
    const report = (message: string) => {
      const { module, option } = node.first;
      errors.push({ code: 'module_conflict', module: module.name, path: option.path, message });
    };
    const whole = nodes[byKey.get(keyInFamily('path', path, node.first.module.name)) ?? -1];
    if (whole !== undefined && isWhole(whole.first.option.kind.kind.kind, whole.first.body) && !isAbsent(whole)) {
      const other = whole.first.option.kind.kind.kind;
      const as = other === 'file-unix' ? 'with its whole content; put it there' : `as ${other}; declare another path`;
      const declared = `${quoted(path)}, which ${placeOfRealized(whole.first)} declares ${as}, or drop one of them`;
      report(`${placeOfRealized(node.first)} changes a part of ${declared}`);
    }
    const part = { kind: kind.kind, body: node.first.body, node, forbids: kind.forbids?.(node.first.body) ?? null };
    const parts = inFiles.get(path) ?? [];
    inFiles.set(path, parts);
    const rival = parts.find((other) => part.forbids?.(other) === true || other.forbids?.(part) === true);
    if (rival !== undefined) {
      const places = `${placeOfRealized(rival.node.first)} and ${placeOfRealized(node.first)}`;
      report(`${places} undo each other in ${quoted(path)}; drop one of them, or make the pattern narrower`);
    }
    parts.push(part);
  }
}

/** A resource that changes a part of a file. */
interface Part {
  readonly kind: string;
  readonly body: Body;
  readonly node: Node;
  readonly forbids: ((other: { readonly kind: string; readonly body: Body }) => boolean) | null;
}

/** Reports resources that contradict one that they require, such as a key of a user whose keys are exclusive. */
function* checkClashes(
  nodes: readonly Node[],
  byKey: ReadonlyMap<string, number>,
  errors: ResolutionError[],
): Steps<void> {
  for (const { first } of nodes) {
    const { kind } = first.option.kind;
    if (kind.clash === undefined) continue;
    yield;
    for (const { family, identity } of kind.requires(first.body)) {
      const holder = nodes[byKey.get(keyInFamily(family, identity, first.module.name)) ?? -1]?.first;
      if (holder === undefined) continue;
      const why = kind.clash(first.body, { kind: holder.option.kind.kind.kind, body: holder.body });
      if (why === null) continue;
      const message = `${quoted(first.identity)}, declared by ${placeOfRealized(first)}, contradicts ${placeOfRealized(holder)}: ${why}`;
      errors.push({ code: 'module_conflict', module: first.module.name, path: first.option.path, message });
    }
  }
}

/** True for the absence of something. */
export const isAbsent = ({ first }: Node): boolean => first.option.kind.kind.absenceOf !== undefined;

const named = (kind: string): string => (isAbsence(kind) ? `absent ${kindOfAbsence(kind)}` : kind);

/** Returns the body that fulfils two different declarations; null if none does. */
function agreedBody(a: Realized, b: Realized): Body | null {
  const { kind } = a.option.kind;
  // A secret in a list would be at another place in the list that fulfils both.
  const isMoved = [...a.taint.keys(), ...b.taint.keys()].some((pointer) => pointer.split('/').length > 2);
  return kind.kind === b.option.kind.kind.kind && !isMoved ? (kind.agreed?.(a.body, b.body) ?? null) : null;
}

/** Describes a difference without values, which may be long or secret; null without one. */
function differenceBetween(a: Realized, b: Realized): string | null {
  const kinds = [a.option.kind.kind.kind, b.option.kind.kind.kind] as const;
  if (kinds[0] !== kinds[1]) return `once as ${named(kinds[0])} and once as ${named(kinds[1])}`;
  if (a.body === b.body) return null;
  const names = [...new Set([...Object.keys(a.body), ...Object.keys(b.body)])];
  const different = names.filter((name) => canonicalJson(a.body[name]) !== canonicalJson(b.body[name]));
  return different.length === 0 ? null : `they differ in ${different.join(', ')}`;
}

type Taint = ReadonlyMap<string, readonly Span[]>;

/** Merges taints: a part is secret when one declaration marks it. */
function mergeTaint(a: Taint, b: Taint): Taint {
  if (b.size === 0) return a;
  if (a.size === 0) return b;
  const merged = new Map(a);
  for (const [path, spans] of b) merged.set(path, mergeSpans([...(a.get(path) ?? []), ...spans]));
  return merged;
}

/** Orders spans and joins overlapping ones under the name of the first. */
function mergeSpans(spans: readonly Span[]): readonly Span[] {
  const merged: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const last = merged.at(-1);
    if (last === undefined || span.start >= last.end) merged.push(span);
    else if (span.end > last.end) merged[merged.length - 1] = { ...last, end: span.end };
  }
  return merged;
}
