/** No two resources of a module are the same thing on one agent, and each comes after what holds it. */

import { stableOrder } from '../../kernel/order.js';
import { type Choice, canApplyTogether, choicesAmong, type SupportedAgents } from '../clause.js';
import type { Place } from '../diagnostic.js';
import { parseText, referencesIn, secretNames } from '../expression.js';
import { type Scope, typeOfExpression } from '../expression-types.js';
import type { OutlineOption } from '../kind-choice.js';
import type { KnownKind } from '../kind-set.js';
import type { OutlineEntry, RuleContext } from '../outline.js';
import { OPEN } from '../parse-expression.js';
import { namesApart, quoted } from '../printable.js';
import { holdsSecret } from '../values.js';
import { dependenciesOf } from './references.js';

/** A possible resource on an agent. */
interface Candidate {
  readonly entry: number;
  /** `OutlineEntry.loop` */
  readonly loop: string | null;
  /** `OutlineEntry.isConditional` */
  readonly isConditional: boolean;
  readonly option: OutlineOption;
  readonly identity: string;
  readonly choice: Choice;
  readonly place: Place;
  readonly path: string;
  readonly scope: Scope;
}

/** Returns what comes with a resource from a directory beside the module: kinds, and paths in the directory. */
type InsideOf = (option: OutlineOption) => readonly { readonly kind: KnownKind; readonly path: string }[];

export function checkIdentities(context: RuleContext, reach: SupportedAgents, insideOf: InsideOf): void {
  const candidates = context.outline.entries.flatMap((entry, index) => candidatesOf(entry, index, context, insideOf));
  const byKey = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    const { option, identity, loop } = candidate;
    const key = keyOf(option.kind.kind.family, identity, loop);
    const same = byKey.get(key);
    if (same) same.push(candidate);
    else byKey.set(key, [candidate]);
  }
  for (const same of byKey.values()) checkDoubled(same, context, reach);
  checkHolders(candidates, byKey, context, reach);
}

/** Expression for the key of an element, as a part of identities in loops. */
const EACH_KEY = `${OPEN} each.key }}`;

const namesElement = (identity: string): boolean => referencesIn(identity).some(({ from }) => from === 'each');

/** Returns the key of an identity. The elements of different loops make the same text different identities. */
const keyOf = (family: string, identity: string, loop: string | null): string =>
  `${family}\0${identity}\0${loop !== null && namesElement(identity) ? loop : ''}`;

function candidatesOf(
  entry: OutlineEntry,
  index: number,
  context: RuleContext,
  insideOf: InsideOf,
): readonly Candidate[] {
  const choices = choicesAmong(entry.options.map(({ when }) => when ?? {}));
  return entry.options.flatMap((option, position) => {
    const choice = choices[position];
    if (option.body === null || choice === undefined) return [];
    const label = entry.id === null || entry.loop === null ? (entry.id?.text ?? null) : `${entry.id.text}[${EACH_KEY}]`;
    const identity = option.kind.kind.identity(option.body, label);
    const { loop, isConditional, scope } = entry;
    const candidate = {
      entry: index,
      loop,
      isConditional,
      option,
      identity,
      choice,
      scope,
      ...placeOf(identity, entry, option),
    };
    if (!isIdentified(candidate, context)) return [];
    const inside = insideOf(option).map(({ kind, path }): Candidate => {
      const at = `${identity}/${path}`;
      return { ...candidate, option: { ...option, kind, body: { path: at } }, identity: at };
    });
    return [candidate, ...inside];
  });
}

/** Returns the place of the identity: a member of the body, or the id. */
function placeOf(
  identity: string,
  { id }: OutlineEntry,
  { node, path }: OutlineOption,
): Pick<Candidate, 'place' | 'path'> {
  const scalars = [...node.members].filter(([, { value }]) => value.type === 'scalar');
  const [name, member] =
    scalars.find(([, { value }]) => value.type === 'scalar' && value.value === identity) ??
    // The identity may differ from the text in the file.
    scalars.find(([key]) => key === 'path' || key === 'name') ??
    [];
  if (name !== undefined && member !== undefined) return { place: member.value, path: `${path}/${name}` };
  return id?.text === identity ? { place: id, path: id.path } : { place: node, path };
}

/** Checks that a resource has an identity without a secret, because identities are shown everywhere. */
function isIdentified({ identity, loop, option, place, path, scope }: Candidate, { mistakes }: RuleContext): boolean {
  if (identity === '') {
    mistakes.error(
      'identity_missing',
      'this resource needs an "id" or "manages", because nothing else tells it apart',
      option.path,
      option.node,
    );
    return false;
  }
  if (secretNames(identity).size > 0 || insertsSecret(identity, scope)) {
    mistakes.error('secret_in_identity', 'a secret must not be part of the identity of a resource', path, place);
    return false;
  }
  if (loop === null || namesElement(identity) || parseText(identity).problems.length > 0) return true;
  const message = `each element of the loop makes ${quoted(identity)} again; tell them apart with ${EACH_KEY}`;
  mistakes.error('duplicate_resource', message, path, place);
  return false;
}

/** Returns true for a text that inserts a secret input. */
const insertsSecret = (text: string, scope: Scope): boolean =>
  parseText(text).expressions.some(({ expression }) => {
    const typed = typeOfExpression(expression, scope);
    return typeof typed !== 'string' && holdsSecret(typed.type);
  });

function checkDoubled(same: readonly Candidate[], { mistakes, lineOf }: RuleContext, reach: SupportedAgents): void {
  for (const [index, candidate] of same.entries()) {
    const first = same.slice(0, index).find((other) => {
      // Conditions are known only for an agent, where different resources conflict.
      if (other.isConditional || candidate.isConditional) return false;
      if (other.entry === candidate.entry || reach.budget.exhausted) return false;
      return canApplyTogether(other.choice, candidate.choice, reach);
    });
    if (first === undefined) continue;
    const some = candidate.option.when !== null || first.option.when !== null;
    const message = `${quoted(candidate.identity)} is already declared on line ${lineOf(first.place)}`;
    mistakes.error(
      'duplicate_resource',
      some ? `${message}, and some agents get both` : message,
      candidate.path,
      candidate.place,
    );
  }
}

function checkHolders(
  candidates: readonly Candidate[],
  byKey: ReadonlyMap<string, readonly Candidate[]>,
  { outline, mistakes, lineOf }: RuleContext,
  reach: SupportedAgents,
): void {
  const order = stableOrder(dependenciesOf(outline));
  if (order === null) return;
  const turn = new Map(order.map((entry, position) => [entry, position]));
  const comesBefore = (a: Candidate, b: Candidate) => (turn.get(a.entry) ?? 0) < (turn.get(b.entry) ?? 0);
  for (const candidate of candidates) {
    const { option, identity, place, path } = candidate;
    if (option.body === null) continue;
    for (const required of option.kind.kind.requires(option.body)) {
      const meeting = (byKey.get(keyOf(required.family, required.identity, candidate.loop)) ?? []).filter(
        (other) =>
          other.entry !== candidate.entry &&
          !reach.budget.exhausted &&
          canApplyTogether(other.choice, candidate.choice, reach),
      );
      const holder = meeting.find((other) => comesBefore(candidate, other));
      if (holder === undefined || meeting.some((other) => comesBefore(other, candidate))) continue;
      const [early, late] = namesApart(
        { kind: option.kind.kind.kind, identity },
        { kind: holder.option.kind.kind.kind, identity: holder.identity },
      );
      const message = `${early} is declared before ${late} on line ${lineOf(holder.place)}, which has to be there first; move it below`;
      mistakes.warning('declared_before_parent', message, path, place);
    }
  }
}
