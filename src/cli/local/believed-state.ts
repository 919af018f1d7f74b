/** What applies of `--local` have put on this machine, as it is kept in a file. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as Type from 'typebox';
import { writeOwnFile } from '../../client/operator-files.js';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { closed, nullable } from '../../kernel/schema.js';
import { validator } from '../../kernel/validator.js';
import { keyOf } from '../../language/merge.js';
import { CATALOGUE } from '../../resources/catalogue.js';
import { RemovalSchema, SpanSchema } from '../../resources/desired.js';
import { maskResource } from '../../resources/tainted-body.js';
import type { LocalItem } from '../programs.js';
import type { Announcements } from './journal.js';
import type { LocalDesired } from './local-desired.js';

const AppliedSchema = closed({
  ...RemovalSchema.properties,
  /** Where secrets stood, masked now. */
  taint: Type.Optional(Type.Record(Type.String(), Type.Array(SpanSchema))),
  operation_id: Type.String(),
});
export type Applied = Type.Static<typeof AppliedSchema>;

const BelievedStateSchema = closed({
  version: Type.Literal(1),
  /** Hex; secrets are told apart by a hash under this key. */
  mask_key: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  /** The last apply that put something there; null when none has. */
  operation_id: nullable(Type.String()),
  /** In the order of application. */
  applied: Type.Array(AppliedSchema),
});
export type BelievedState = Type.Static<typeof BelievedStateSchema>;

/** What an apply has changed in it. */
export const ChangesSchema = closed({
  operation_id: Type.String(),
  put: Type.Array(AppliedSchema),
  /** Keys of what was removed or released. */
  gone: Type.Array(Type.String()),
  /** Keys of everything that the apply wants, in the order of application. */
  order: Type.Optional(Type.Array(Type.String())),
});
export type Changes = Type.Static<typeof ChangesSchema>;

const states = validator(BelievedStateSchema);
const FILE = 'state.json';

/** A new one when nothing was ever applied. Throws `data_dir_invalid` for a file that is damaged. */
export function loadState(dataDir: string): BelievedState {
  const path = join(dataDir, FILE);
  const data = readJson(path);
  if (data === undefined) {
    return { version: 1, mask_key: randomBytes(32).toString('hex'), operation_id: null, applied: [] };
  }
  if (states.check(data)) return data;
  const [problem] = states.problems(data);
  throw damaged(path, problem ? `${problem.path || '/'} ${problem.message}` : 'it has another shape');
}

/** Throws `data_dir_invalid` when it cannot be written. */
export function saveState(dataDir: string, state: BelievedState): void {
  const path = join(dataDir, FILE);
  try {
    writeOwnFile(path, `${JSON.stringify(state)}\n`);
  } catch (cause) {
    throw new Fault('data_dir_invalid', `what was applied cannot be written to ${path}: ${messageOf(cause)}`, {
      cause,
      hint: 'make room or give access, and apply again: what is there already is found to be as it should be',
    });
  }
}

/** What makes a resource the same thing on the machine. */
export function resourceKey({ module, kind, identity }: Pick<Applied, 'module' | 'kind' | 'identity'>): string {
  const family = CATALOGUE.get(kind)?.family;
  return family === undefined ? `${kind}\0${identity}` : keyOf(family, identity, module);
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return undefined;
    throw damaged(path, messageOf(cause), cause);
  }
}

export const damaged = (path: string, why: string, cause?: unknown): Fault =>
  new Fault('data_dir_invalid', `${path} does not hold what was applied: ${why}`, {
    hint: `bring it back from a backup, or move it away: what is on the machine then counts as there before`,
    cause,
  });

/** What an apply on this machine changes in what is believed of it, by the rules of an orchestrator. */
export interface Application {
  readonly desired: LocalDesired;
  readonly operationId: string;
  /** What was believed when it began, by resource key. */
  readonly before: ReadonlyMap<string, Applied>;
  readonly announcements: Announcements;
}

/** Resources that succeeded take their new place, removals that succeeded lose theirs; what failed or was skipped keeps what it had. */
export function changesOf(application: Application, items: readonly LocalItem[]): Changes {
  const { desired, operationId } = application;
  const put: Applied[] = [];
  const gone: string[] = [];
  for (const item of items) {
    if (item.result.status !== 'unchanged' && item.result.status !== 'changed') continue;
    const resource = desired.resources[item.index];
    const removal = desired.removals[item.index - desired.resources.length];
    if (resource !== undefined) {
      const { module, kind, identity, id, name, body, taint } = maskResource(resource);
      const origin = originOf(application, resourceKey(resource), item);
      const known = { module, kind, identity, id, name, body, origin, operation_id: operationId };
      put.push(taint === undefined ? known : { ...known, taint });
    } else if (removal !== undefined) gone.push(resourceKey(removal));
  }
  return { operation_id: operationId, put, gone };
}

/** Without what is believed already. */
export function newsOf({ before }: Application, changes: Changes): Changes {
  const asText = (applied: Applied | undefined) => JSON.stringify({ ...applied, operation_id: '' });
  return { ...changes, put: changes.put.filter((one) => asText(before.get(resourceKey(one))) !== asText(one)) };
}

/** Later changes count. What has an order stands in it, behind all that has none. */
export function stateAfter(state: BelievedState, changes: readonly Changes[]): BelievedState {
  return changes.reduce(stateAfterOne, state);
}

function stateAfterOne(state: BelievedState, { operation_id, put, gone, order }: Changes): BelievedState {
  const applied = new Map(state.applied.map((one) => [resourceKey(one), one]));
  for (const key of gone) applied.delete(key);
  for (const one of put) applied.set(resourceKey(one), one);
  return { ...state, operation_id, applied: inOrder([...applied], order ?? []) };
}

function inOrder(entries: readonly (readonly [string, Applied])[], order: readonly string[]): Applied[] {
  const places = new Map(order.map((key, place) => [key, place]));
  const placeOf = ([key]: readonly [string, Applied]) => places.get(key) ?? -1;
  return [...entries].sort((a, b) => placeOf(a) - placeOf(b)).map(([, applied]) => applied);
}

/** What may have been there before is never removed; an apply that died may have told that it was not. */
const originOf = ({ before, announcements }: Application, key: string, { existed }: LocalItem): Applied['origin'] =>
  before.get(key)?.origin ?? ((announcements.existed(key) ?? existed) === false ? 'created' : 'adopted');
