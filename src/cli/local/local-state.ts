/** The believed state of `--local`, kept in a file. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as Type from 'typebox';
import { writeOwnFile } from '../../client/operator-files.js';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { isSameJson } from '../../kernel/json.js';
import { closed, nullable } from '../../kernel/schema.js';
import { finish } from '../../kernel/steps.js';
import { validator } from '../../kernel/validator.js';
import { believedChange } from '../../resources/believed-state.js';
import { type DesiredResource, type Origin, type Removal, RemovalSchema, SpanSchema } from '../../resources/desired.js';
import { resourceKey } from '../../resources/resource-key.js';
import { maskResource } from '../../resources/tainted-body.js';
import type { LocalContent, LocalItem } from '../programs.js';

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
  /** Resources in the order of application. */
  applied: Type.Array(AppliedSchema),
});
export type BelievedState = Type.Static<typeof BelievedStateSchema>;

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

const damaged = (path: string, why: string, cause?: unknown): Fault =>
  new Fault('data_dir_invalid', `${path} does not hold what was applied: ${why}`, {
    hint: `restore it from a backup, or move it away: existing resources then count as there before`,
    cause,
  });

/** Results of an apply, finished or cut off. */
interface LocalResults {
  readonly operationId: string;
  readonly content: LocalContent;
  readonly items: readonly LocalItem[];
  /** Existence of things before applies touched them first, by resource key. It overrides what the items say. */
  readonly existed: ReadonlyMap<string, boolean>;
}

/** Returns the state after an apply; the same object if the apply changes nothing in it. */
export function stateAfter(
  state: BelievedState,
  { operationId, content, items, existed }: LocalResults,
): BelievedState {
  const applied = new Map(state.applied.map((one) => [resourceKey(one), one]));
  const outcomes = items.map((item) => {
    const source = itemAt(content, item.index);
    const before = source && existed.get(resourceKey(source));
    return { index: item.index, status: item.result.status, existed: before ?? item.existed };
  });
  const { put, remove } = finish(
    believedChange({ operationId, ...content, outcomes }, (item) => applied.get(resourceKey(item))),
  );
  for (const removal of remove) applied.delete(resourceKey(removal));
  for (const { resource, origin } of put) {
    const key = resourceKey(resource);
    const next = appliedOf(resource, origin, operationId);
    const last = applied.get(key);
    if (last === undefined || !isSame(last, next)) applied.set(key, next);
  }
  if (put.length + remove.length === 0) return state;
  const ordered = inOrder([...applied], content.resources.map(resourceKey));
  const isUnchanged =
    ordered.length === state.applied.length && ordered.every((one, place) => one === state.applied[place]);
  return isUnchanged ? state : { ...state, operation_id: operationId, applied: ordered };
}

export const itemAt = ({ resources, removals }: LocalContent, index: number): DesiredResource | Removal | undefined =>
  resources[index] ?? removals[index - resources.length];

function appliedOf(resource: DesiredResource, origin: Origin, operationId: string): Applied {
  const { module, kind, identity, id, name, body, taint } = maskResource(resource);
  const applied = { module, kind, identity, id, name, body, origin, operation_id: operationId };
  return taint === undefined ? applied : { ...applied, taint };
}

/** Compares two applied resources without their operations. */
const isSame = (one: Applied, other: Applied): boolean =>
  isSameJson({ ...one, operation_id: '' }, { ...other, operation_id: '' });

/** Returns the resources outside the order first, then those in it. */
function inOrder(entries: readonly (readonly [string, Applied])[], order: readonly string[]): Applied[] {
  const places = new Map(order.map((key, place) => [key, place]));
  const placeOf = ([key]: readonly [string, Applied]) => places.get(key) ?? -1;
  return [...entries].sort((a, b) => placeOf(a) - placeOf(b)).map(([, applied]) => applied);
}
