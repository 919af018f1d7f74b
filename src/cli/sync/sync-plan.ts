/** Plans a sync: compares the files of a directory with the orchestrator. */
import type { ApiClient } from '../../client/api-client.js';
import type { Assignment } from '../../contract/assignments.js';
import type { Module } from '../../contract/modules.js';
import type { StoredValueSet } from '../../contract/values.js';
import { canonicalJson } from '../../kernel/json.js';
import { digestOf } from '../modules/reach.js';
import { storedValueSets } from '../modules/stored-values.js';
import type { ValuesFile } from '../modules/value-files.js';
import type { SourceAssignment, SourceModule, SyncSource } from './sync-files.js';

/** One action of a sync. */
export type SyncAction =
  | {
      readonly kind: 'module';
      readonly action: 'create' | 'update';
      readonly name: string;
      readonly file: SourceModule;
      /** Stored module; null for a new one. */
      readonly stored: Module | null;
    }
  | {
      readonly kind: 'assignment';
      readonly action: 'create' | 'update';
      readonly name: string;
      readonly file: SourceAssignment;
      readonly stored: Assignment | null;
    }
  | {
      readonly kind: 'values';
      readonly action: 'create' | 'update';
      readonly name: string;
      readonly file: ValuesFile;
      readonly stored: StoredValueSet | null;
    }
  | { readonly kind: 'values'; readonly action: 'delete'; readonly name: string; readonly stored: StoredValueSet }
  | { readonly kind: 'assignment'; readonly action: 'delete'; readonly name: string; readonly stored: Assignment }
  | { readonly kind: 'module'; readonly action: 'delete'; readonly name: string };

/** Modules, value sets and assignments of the orchestrator before the sync. */
export interface Stored {
  readonly moduleNames: readonly string[];
  /** Stored modules whose names are in the files. */
  readonly modules: ReadonlyMap<string, Module>;
  readonly assignments: readonly Assignment[];
  readonly values: readonly StoredValueSet[];
}

export interface SyncPlan {
  readonly actions: readonly SyncAction[];
  /** What exists only on the orchestrator, and stays. */
  readonly extra: readonly { readonly kind: SyncAction['kind']; readonly name: string }[];
  /** Number of unchanged modules, value sets and assignments. */
  readonly unchanged: number;
}

export async function readStored(api: ApiClient, { modules }: SyncSource, signal: AbortSignal): Promise<Stored> {
  const moduleNames = (await api.call('listModules', { signal })).map(({ name }) => name);
  const present = new Set(moduleNames);
  const found = new Map<string, Module>();
  for (const { name } of modules) {
    if (!present.has(name)) continue;
    found.set(name, await api.call('getModule', { params: { name }, query: { revision: null }, signal }));
  }
  const assignments = await api.call('listAssignments', { signal });
  return { moduleNames, modules: found, assignments, values: await storedValueSets(api, signal) };
}

/**
 * Plans the actions: modules first, so that values and assignments find them, then value sets, assignments, and deletions, of which
 * those of modules are last.
 */
export function planSync(source: SyncSource, stored: Stored, prune: boolean): SyncPlan {
  const modules = source.modules.flatMap((file) => moduleAction(file, stored.modules.get(file.name) ?? null));
  const assignments = source.assignments.flatMap((file) =>
    assignmentAction(file, stored.assignments.find(({ name }) => name === file.name) ?? null),
  );
  const values = source.values.flatMap((file) =>
    valuesAction(file, stored.values.find(({ name }) => name === file.name) ?? null),
  );
  const surplus: readonly SyncAction[] = [
    ...withoutFile(stored.values, source.values).map(
      (one) => ({ kind: 'values', action: 'delete', name: one.name, stored: one }) as const,
    ),
    ...withoutFile(stored.assignments, source.assignments).map(
      (one) => ({ kind: 'assignment', action: 'delete', name: one.name, stored: one }) as const,
    ),
    ...withoutFile(
      stored.moduleNames.map((name) => ({ name })),
      source.modules,
    ).map(({ name }) => ({ kind: 'module', action: 'delete', name }) as const),
  ];
  const changes = [...modules, ...values, ...assignments];
  return {
    actions: prune ? [...changes, ...surplus] : changes,
    extra: prune ? [] : surplus.map(({ kind, name }) => ({ kind, name })),
    unchanged: source.modules.length + source.assignments.length + source.values.length - changes.length,
  };
}

function moduleAction(file: SourceModule, stored: Module | null): readonly SyncAction[] {
  const { name } = file;
  if (stored === null) return [{ kind: 'module', action: 'create', name, file, stored }];
  const isSame = stored.sha256 === digestOf(file.source, file.definition.files);
  return isSame ? [] : [{ kind: 'module', action: 'update', name, file, stored }];
}

function valuesAction(file: ValuesFile, stored: StoredValueSet | null): readonly SyncAction[] {
  const { name } = file;
  if (stored === null) return [{ kind: 'values', action: 'create', name, file, stored }];
  return stored.content === file.source ? [] : [{ kind: 'values', action: 'update', name, file, stored }];
}

function assignmentAction(file: SourceAssignment, stored: Assignment | null): readonly SyncAction[] {
  const { name } = file;
  if (stored === null) return [{ kind: 'assignment', action: 'create', name, file, stored }];
  return assignmentDifferences(file, stored).length === 0
    ? []
    : [{ kind: 'assignment', action: 'update', name, file, stored }];
}

/** A file without a mode means the standard one, because a directory is everything that is declared. */
export const modeOf = ({ mode }: Pick<SourceAssignment, 'mode'>) => mode ?? 'manual';

interface Difference {
  readonly field: 'modules' | 'selector' | 'description' | 'mode' | 'values';
  readonly before: string;
  readonly after: string;
}

/** Returns the differing fields. The order of modules counts, because they are applied in it. */
export function assignmentDifferences(
  file: Pick<SourceAssignment, 'modules' | 'selector' | 'mode'> & {
    readonly description?: string | null | undefined;
    readonly values?: SourceAssignment['values'] | null;
  },
  stored: Assignment,
): readonly Difference[] {
  const before = {
    ...stored,
    modules: stored.modules.join(' '),
    description: stored.description ?? '',
    values: textOfValues(stored.values),
  };
  const after = {
    ...file,
    modules: file.modules.join(' '),
    description: file.description ?? '',
    mode: modeOf(file),
    values: textOfValues(file.values),
  };
  const fields = ['modules', 'selector', 'description', 'mode', 'values'] as const;
  return fields.flatMap((field) =>
    before[field] === after[field] ? [] : [{ field, before: before[field], after: after[field] }],
  );
}

const textOfValues = (values: Assignment['values'] | undefined): string =>
  values == null || Object.keys(values).length === 0 ? '' : canonicalJson(values);

function withoutFile<T extends { readonly name: string }>(
  stored: readonly T[],
  files: readonly { readonly name: string }[],
): readonly T[] {
  const wanted = new Set(files.map(({ name }) => name));
  return stored.filter(({ name }) => !wanted.has(name));
}
