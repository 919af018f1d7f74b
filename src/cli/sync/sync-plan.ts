/** Plans a sync: compares the files of a directory with the orchestrator. */
import type { ApiClient } from '../../client/api-client.js';
import type { Assignment } from '../../contract/assignments.js';
import type { Module } from '../../contract/modules.js';
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
  | { readonly kind: 'assignment'; readonly action: 'delete'; readonly name: string; readonly stored: Assignment }
  | { readonly kind: 'module'; readonly action: 'delete'; readonly name: string };

/** Modules and assignments of the orchestrator before the sync. */
export interface Stored {
  readonly moduleNames: readonly string[];
  /** Stored modules whose names are in the files. */
  readonly modules: ReadonlyMap<string, Module>;
  readonly assignments: readonly Assignment[];
}

export interface SyncPlan {
  readonly actions: readonly SyncAction[];
  /** Modules and assignments that exist only on the orchestrator, and stay. */
  readonly extra: readonly { readonly kind: 'assignment' | 'module'; readonly name: string }[];
  /** Number of unchanged modules and assignments. */
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
  return { moduleNames, modules: found, assignments: await api.call('listAssignments', { signal }) };
}

/** Plans the actions: modules first, so that assignments find them, then assignments, then deletions. */
export function planSync(source: SyncSource, stored: Stored, prune: boolean): SyncPlan {
  const modules = source.modules.flatMap((file) => moduleAction(file, stored.modules.get(file.name) ?? null));
  const assignments = source.assignments.flatMap((file) =>
    assignmentAction(file, stored.assignments.find(({ name }) => name === file.name) ?? null),
  );
  const surplus: readonly SyncAction[] = [
    ...withoutFile(stored.assignments, source.assignments).map(
      (one) => ({ kind: 'assignment', action: 'delete', name: one.name, stored: one }) as const,
    ),
    ...withoutFile(
      stored.moduleNames.map((name) => ({ name })),
      source.modules,
    ).map(({ name }) => ({ kind: 'module', action: 'delete', name }) as const),
  ];
  const changes = [...modules, ...assignments];
  return {
    actions: prune ? [...changes, ...surplus] : changes,
    extra: prune ? [] : surplus.map(({ kind, name }) => ({ kind, name })),
    unchanged: source.modules.length + source.assignments.length - changes.length,
  };
}

function moduleAction(file: SourceModule, stored: Module | null): readonly SyncAction[] {
  const { name } = file;
  if (stored === null) return [{ kind: 'module', action: 'create', name, file, stored }];
  return stored.content === file.source ? [] : [{ kind: 'module', action: 'update', name, file, stored }];
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
  readonly field: 'modules' | 'selector' | 'description' | 'mode';
  readonly before: string;
  readonly after: string;
}

/** Returns the differing fields. The order of modules counts, because they are applied in it. */
export function assignmentDifferences(
  file: Pick<SourceAssignment, 'modules' | 'selector' | 'mode'> & { readonly description?: string | null | undefined },
  stored: Assignment,
): readonly Difference[] {
  const before = { ...stored, modules: stored.modules.join(' '), description: stored.description ?? '' };
  const after = { ...file, modules: file.modules.join(' '), description: file.description ?? '', mode: modeOf(file) };
  const fields = ['modules', 'selector', 'description', 'mode'] as const;
  return fields.flatMap((field) =>
    before[field] === after[field] ? [] : [{ field, before: before[field], after: after[field] }],
  );
}

function withoutFile<T extends { readonly name: string }>(
  stored: readonly T[],
  files: readonly { readonly name: string }[],
): readonly T[] {
  const wanted = new Set(files.map(({ name }) => name));
  return stored.filter(({ name }) => !wanted.has(name));
}
