/** The believed state of `--local`, kept in a file. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeOwnFile } from '../../client/operator-files.js';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { isSameJson } from '../../kernel/json.js';
import { finish } from '../../kernel/steps.js';
import { validator } from '../../kernel/validator.js';
import type { LocalContent, LocalItem } from '../../programs/local.js';
import { believedChange } from '../../resources/believed-state.js';
import type { DesiredResource, Origin, Removal } from '../../resources/desired.js';
import { resourceKey } from '../../resources/resource-key.js';
import { maskResource } from '../../resources/tainted-body.js';
import { type Applied, type BelievedState, BelievedStateSchema } from './believed-state-schema.js';
import { stateCheck } from './state-check.js';

const FILE = 'state.json';

/** Reads the state; returns a new one if there is no file. Throws `data_dir_invalid` for a damaged file. */
export function loadState(dataDir: string): BelievedState {
  const path = join(dataDir, FILE);
  const data = readJson(path);
  if (data === undefined) {
    return { version: 1, mask_key: randomBytes(32).toString('hex'), operation_id: null, applied: [] };
  }
  if (stateCheck.check(data)) return data;
  const [problem] = validator(BelievedStateSchema).problems(data);
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
  const keyOf = keysOnce();
  const applied = new Map(state.applied.map((one) => [keyOf(one), one]));
  const outcomes = items.map((item) => {
    const source = itemAt(content, item.index);
    const before = source && existed.get(keyOf(source));
    const { status, action } = item.result;
    const hasLeftNothing = status === 'failed' && item.existed === null;
    return { index: item.index, status, action, existed: hasLeftNothing ? null : (before ?? item.existed) };
  });
  const { put, remove } = finish(
    believedChange({ operationId, ...content, outcomes }, (item) => applied.get(keyOf(item))),
  );
  for (const removal of remove) applied.delete(keyOf(removal));
  for (const { resource, origin, listeners } of put) {
    const key = keyOf(resource);
    const next = { ...appliedOf(resource, origin, operationId), ...(listeners && { listeners: [...listeners] }) };
    const last = applied.get(key);
    if (last === undefined || !isSame(last, next)) applied.set(key, next);
  }
  if (put.length + remove.length === 0) return state;
  const ordered = inOrder([...applied], content.resources.map(keyOf));
  const isUnchanged =
    ordered.length === state.applied.length && ordered.every((one, place) => one === state.applied[place]);
  return isUnchanged ? state : { ...state, operation_id: operationId, applied: ordered };
}

/** Returns `resourceKey` that computes the key of each object once. */
function keysOnce(): typeof resourceKey {
  const known = new Map<object, string>();
  return (one) => {
    const key = known.get(one) ?? resourceKey(one);
    known.set(one, key);
    return key;
  };
}

const itemAt = ({ resources, removals }: LocalContent, index: number): DesiredResource | Removal | undefined =>
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
