/**
 * Stores the modules that applies and rollouts carry as texts. Each text is stored once by its hash, as long as an apply that
 * has not published it or a rollout refers to it.
 */
import type { SourceStatus } from '../../../src/contract/source-statuses.js';
import type { ModuleDefinition } from '../../../src/language/schema.js';
import { jsonColumns } from '../../database/json-columns.js';
import type { Queryable } from '../../database/schema.js';
import { addTextFiles } from './module-file-store.js';

/** A module that is carried as a text. */
export interface Source {
  readonly name: string;
  /** `digestOf` the module. */
  readonly sha256: string;
  /** SHA-256 of the stored revision that it replaces when it is published; null for none. */
  readonly replaces: string | null;
}

/** A source of an apply, with what became of it at the end of the apply. */
export interface OperationSource extends Source {
  /** `sent` until the apply has changed the machine. */
  readonly status: SourceStatus | 'sent';
  /** Number of other agents that followed the module at the end of the apply. */
  readonly others: number;
}

export interface ModuleText {
  readonly sha256: string;
  readonly content: string;
  readonly definition: ModuleDefinition;
}

const columns = jsonColumns<{ readonly definition: ModuleDefinition }>({ definition: true });

/** Stores texts, except those that are stored already. */
async function putTexts(tx: Queryable, texts: readonly ModuleText[]): Promise<void> {
  for (const { sha256, content, definition } of texts) {
    await tx
      .insertInto('module_texts')
      .values(columns.encode({ sha256, content, definition }))
      .onConflict((conflict) => conflict.column('sha256').doNothing())
      .execute();
    await addTextFiles(tx, sha256, definition.files);
  }
}

/** Returns a stored text, or null. */
export async function findText(db: Queryable, sha256: string): Promise<ModuleText | null> {
  const row = await db.selectFrom('module_texts').selectAll().where('sha256', '=', sha256).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Stores the sources of an apply, and those of their texts that are given. */
export async function addOperationSources(
  tx: Queryable,
  operationId: string,
  { sources, texts }: { readonly sources: readonly Source[]; readonly texts: readonly ModuleText[] },
): Promise<void> {
  await putTexts(tx, texts);
  for (const { name, sha256, replaces } of sources) {
    const row = { operation_id: operationId, name, sha256, replaces, status: 'sent', others: 0 };
    await tx.insertInto('operation_sources').values(row).execute();
  }
}

/** Returns the sources of an apply, by name. */
export async function sourcesOfOperation(db: Queryable, operationId: string): Promise<readonly OperationSource[]> {
  const rows = await db
    .selectFrom('operation_sources')
    .select(['name', 'sha256', 'replaces', 'status', 'others'])
    .where('operation_id', '=', operationId)
    .orderBy('name')
    .execute();
  return rows.map((row) => ({ ...row, status: row.status as OperationSource['status'] }));
}

/** Stores what became of the sources of an apply. */
export async function settleOperationSources(
  tx: Queryable,
  operationId: string,
  sources: readonly Pick<OperationSource, 'name' | 'status' | 'others'>[],
): Promise<void> {
  for (const { name, status, others } of sources) {
    await tx
      .updateTable('operation_sources')
      .set({ status, others })
      .where('operation_id', '=', operationId)
      .where('name', '=', name)
      .execute();
  }
}

/** Deletes the sources of an apply that has changed nothing, with texts that nothing else needs. */
export async function dropOperationSources(tx: Queryable, operationId: string): Promise<void> {
  await tx.deleteFrom('operation_sources').where('operation_id', '=', operationId).execute();
  await deleteUnusedTexts(tx);
}

/** Notes that a text is the current revision of its module: trials of it end. */
export async function notePublished(tx: Queryable, { name, sha256 }: Pick<Source, 'name' | 'sha256'>): Promise<void> {
  await tx
    .updateTable('operation_sources')
    .set({ status: 'published' })
    .where('sha256', '=', sha256)
    .where('name', '=', name)
    .where('status', '=', 'on_trial')
    .execute();
  await deleteUnusedTexts(tx);
}

/** Returns the SHA-256 of the texts that each agent on trial has, by node ID and by module. */
export async function triedTexts(db: Queryable): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  const rows = await db
    .selectFrom('agents')
    .innerJoin('operation_sources', 'operation_sources.operation_id', 'agents.trial_operation_id')
    .select(['agents.node_id', 'operation_sources.name', 'sha256'])
    .where('operation_sources.status', '=', 'on_trial')
    .execute();
  const texts = new Map<string, Map<string, string>>();
  for (const { node_id, name, sha256 } of rows) {
    const own = texts.get(node_id) ?? new Map<string, string>();
    texts.set(node_id, own.set(name, sha256));
  }
  return texts;
}

/** Stores the sources of a rollout with their texts. */
export async function addRolloutSources(
  tx: Queryable,
  rolloutId: string,
  sources: readonly (Source & ModuleText)[],
): Promise<void> {
  await putTexts(tx, sources);
  for (const [position, { name, sha256, replaces }] of sources.entries()) {
    await tx
      .insertInto('rollout_sources')
      .values({ rollout_id: rolloutId, position, name, sha256, replaces })
      .execute();
  }
}

/** Returns the sources of a rollout with their texts, in the order of the request. */
export async function sourcesOfRollout(db: Queryable, rolloutId: string): Promise<readonly (Source & ModuleText)[]> {
  const rows = await db
    .selectFrom('rollout_sources')
    .innerJoin('module_texts', 'module_texts.sha256', 'rollout_sources.sha256')
    .select(['name', 'module_texts.sha256', 'replaces', 'content', 'definition_json'])
    .where('rollout_id', '=', rolloutId)
    .orderBy('position')
    .execute();
  return rows.map((row) => columns.decode(row));
}

/** Deletes the texts that no rollout and no apply refers to, except applies that have published them. */
export async function deleteUnusedTexts(tx: Queryable): Promise<void> {
  await tx
    .deleteFrom('module_texts')
    .where(({ exists, not, selectFrom }) =>
      not(
        exists(
          selectFrom('operation_sources')
            .select('operation_id')
            .whereRef('operation_sources.sha256', '=', 'module_texts.sha256')
            .where('status', 'in', ['sent', 'on_trial']),
        ),
      ),
    )
    .where(({ exists, not, selectFrom }) =>
      not(
        exists(
          selectFrom('rollout_sources')
            .select('rollout_id')
            .whereRef('rollout_sources.sha256', '=', 'module_texts.sha256'),
        ),
      ),
    )
    .execute();
}
