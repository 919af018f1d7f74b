/** The believed state of `--local`: what its applies have put on this machine, kept in a file. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as Type from 'typebox';
import { writeOwnFile } from '../../client/operator-files.js';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { closed, nullable } from '../../kernel/schema.js';
import { validator } from '../../kernel/validator.js';
import { resourceKey } from '../../language/merge.js';
import { RemovalSchema, SpanSchema } from '../../resources/desired.js';
import { maskResource } from '../../resources/tainted-body.js';
import type { LocalItem } from '../programs.js';
import type { Announcements } from './journal.js';
import type { LocalDesired } from './local-desired.js';

const AppliedSchema = closed({
  ...RemovalSchema.properties,
  /** Spans of masked secrets, by path in the body. */
  taint: Type.Optional(Type.Record(Type.String(), Type.Array(SpanSchema))),
  operation_id: Type.String(),
});
export type Applied = Type.Static<typeof AppliedSchema>;

const BelievedStateSchema = closed({
  version: Type.Literal(1),
  /** Hex key of the hash that tells secret values apart. */
  mask_key: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  /** ID of the last apply that changed the state; null if none has. */
  operation_id: nullable(Type.String()),
  /** Resources in order of application. */
  applied: Type.Array(AppliedSchema),
});
export type BelievedState = Type.Static<typeof BelievedStateSchema>;

/** Changes of the state by an apply. */
export const ChangesSchema = closed({
  operation_id: Type.String(),
  put: Type.Array(AppliedSchema),
  /** Keys of removed or released resources. */
  gone: Type.Array(Type.String()),
  /** Keys of all desired resources, in order of application. */
  order: Type.Optional(Type.Array(Type.String())),
});
export type Changes = Type.Static<typeof ChangesSchema>;

const states = validator(BelievedStateSchema);
const FILE = 'state.json';

/** Reads the state; returns a new one if there is no file. Throws `data_dir_invalid` for a damaged file. */
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

/** Writes the state. Throws `data_dir_invalid` on failure. */
export function saveState(dataDir: string, state: BelievedState): void {
  const path = join(dataDir, FILE);
  try {
    writeOwnFile(path, `${JSON.stringify(state)}\n`);
  } catch (cause) {
    throw new Fault('data_dir_invalid', `what was applied cannot be written to ${path}: ${messageOf(cause)}`, {
      cause,
      hint: 'free space or fix the permissions, and apply again: resources that are in place stay unchanged',
    });
  }
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
    hint: `restore it from a backup, or move it away: existing resources then count as there before`,
    cause,
  });

export interface Application {
  readonly desired: LocalDesired;
  readonly operationId: string;
  /** Applied resources at the start, by resource key. */
  readonly before: ReadonlyMap<string, Applied>;
  readonly announcements: Announcements;
}

/** Returns the changes by succeeded resources and removals. Failed and skipped items keep their state. */
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

/** Returns the changes without resources whose state is unchanged. */
export function withoutUnchanged({ before }: Application, changes: Changes): Changes {
  const asText = (applied: Applied | undefined) => JSON.stringify({ ...applied, operation_id: '' });
  return { ...changes, put: changes.put.filter((one) => asText(before.get(resourceKey(one))) !== asText(one)) };
}

/** Applies changes to the state, oldest first. Resources outside the order come first, then those in it. */
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

/** Returns the origin of a resource. It counts as adopted, and is never removed, unless orch is known to have created it. */
const originOf = ({ before, announcements }: Application, key: string, { existed }: LocalItem): Applied['origin'] =>
  before.get(key)?.origin ?? ((announcements.existed(key) ?? existed) === false ? 'created' : 'adopted');
