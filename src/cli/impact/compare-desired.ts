/** What a change of modules does to what an agent is to be: the two resolutions side by side. */
import { Fault } from '../../kernel/fault.js';
import { canonicalJson } from '../../kernel/json.js';
import { clauseMatches } from '../../language/clause.js';
import type { AgentFacts } from '../../language/fill.js';
import { keyOf } from '../../language/merge.js';
import { resolveCompiled } from '../../language/resolve.js';
import { CATALOGUE } from '../../resources/catalogue.js';
import type { DesiredResource } from '../../resources/desired.js';
import type { ReadModule } from '../modules/read-modules.js';
import { unknownSecrets } from '../modules/unknown-secrets.js';
import { textDiff } from '../render/text-diff.js';

export interface DesiredChange {
  readonly change: 'added' | 'changed' | 'removed';
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
  /** Of a changed resource, those that differ. */
  readonly fields: readonly string[];
  /** Unified diff of the content; empty when it is not what changes. */
  readonly diff: string;
}

export interface Comparison {
  readonly changes: readonly DesiredChange[];
  /** Why the agent could not be given the changed modules; null when it can. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Throws nothing for what is wrong with the modules. Secrets count as present. */
export function compareDesired(
  agent: AgentFacts,
  { before, after }: { readonly before: readonly ReadModule[]; readonly after: readonly ReadModule[] },
): Comparison {
  const old = resolve(agent, before);
  const young = resolve(agent, after);
  if ('error' in young) return { changes: [], error: young.error };
  return { changes: differences('error' in old ? [] : old.resources, young.resources), error: null };
}

type Resolved =
  | { readonly resources: readonly DesiredResource[] }
  | { readonly error: { readonly code: string; readonly message: string } };

function resolve(agent: AgentFacts, modules: readonly ReadModule[]): Resolved {
  const compiled = modules.map((module) => module.compiled);
  const supporting = compiled.filter(({ supports }) => supports.some((clause) => clauseMatches(clause, agent)));
  try {
    return resolveCompiled({ modules: supporting, agent, secret: unknownSecrets });
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { error: { code: error.code, message: error.message } };
  }
}

function differences(old: readonly DesiredResource[], young: readonly DesiredResource[]): readonly DesiredChange[] {
  const before = new Map(old.map((resource) => [keyOfResource(resource), resource]));
  const after = new Set(young.map(keyOfResource));
  return [
    ...young.flatMap((resource) => changeOf(before.get(keyOfResource(resource)), resource) ?? []),
    ...old.filter((resource) => !after.has(keyOfResource(resource))).map((one) => named('removed', one, [], '')),
  ];
}

function changeOf(before: DesiredResource | undefined, after: DesiredResource): DesiredChange | null {
  if (before === undefined)
    return named('added', after, [], contentDiff(after.identity, undefined, after.body.content));
  const names = [...new Set([...Object.keys(before.body), ...Object.keys(after.body)])];
  const fields = names.filter((name) => canonicalJson(before.body[name]) !== canonicalJson(after.body[name]));
  if (fields.length === 0 && before.kind === after.kind) return null;
  return named('changed', after, fields, contentDiff(after.identity, before.body.content, after.body.content));
}

const named = (
  change: DesiredChange['change'],
  { module, kind, identity }: DesiredResource,
  fields: readonly string[],
  diff: string,
): DesiredChange => ({ change, module, kind, identity, fields, diff });

function contentDiff(identity: string, before: unknown, after: unknown): string {
  const side = (text: unknown, prefix: string) =>
    typeof text === 'string' ? { label: prefix + identity, text } : { label: '/dev/null', text: '' };
  return textDiff(side(before, 'a'), side(after, 'b'));
}

function keyOfResource({ kind, identity, module }: DesiredResource): string {
  const family = CATALOGUE.get(kind)?.family;
  return family === undefined ? `${kind}\0${identity}` : keyOf(family, identity, module);
}
