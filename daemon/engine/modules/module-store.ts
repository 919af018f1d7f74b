/** Stores modules and their revisions. */
import type { ModuleDefinition } from '../../../src/language/schema.js';
import { type Decoded, jsonColumns } from '../../database/json-columns.js';
import { setMeta } from '../../database/meta.js';
import { preparedQuery } from '../../database/prepared-query.js';
import type { Queryable, Row } from '../../database/schema.js';
import { jsonStrings } from '../../database/sql-json.js';
import { addRevisionFiles } from './module-file-store.js';

type ModuleRow = Row<'modules'>;

interface RevisionValues {
  readonly definition: ModuleDefinition;
}

const columns = jsonColumns<RevisionValues>({ definition: true });

type ModuleRevisionRow = Decoded<Row<'module_revisions'>, RevisionValues>;

interface NewRevision {
  readonly name: string;
  /** `digestOf` the module. */
  readonly sha256: string;
  readonly content: string;
  readonly definition: ModuleDefinition;
  /** Unix milliseconds. */
  readonly uploaded_at: number;
  readonly uploaded_by: string;
}

/** Meta key of the revision of all modules, which changes with every change of the current revision of a module. */
export const MODULES_REVISION = 'modules.revision';

/** Sets the revision. Every transaction that adds or deletes a module's revision must call it with a text that was never used before. */
export const setModulesRevision = (db: Queryable, revision: string): Promise<void> =>
  setMeta(db, MODULES_REVISION, revision);

/** Returns all modules, by name. */
export async function listModules(db: Queryable): Promise<readonly ModuleRow[]> {
  return db.selectFrom('modules').selectAll().orderBy('name').execute();
}

export async function findModule(db: Queryable, name: string): Promise<ModuleRow | null> {
  return (await db.selectFrom('modules').selectAll().where('name', '=', name).executeTakeFirst()) ?? null;
}

/** Returns the given revision of a module, or its current one; null if it does not exist. */
export async function findModuleRevision(
  db: Queryable,
  name: string,
  revision?: number | null,
): Promise<ModuleRevisionRow | null> {
  const query = db
    .selectFrom('module_revisions')
    .selectAll('module_revisions')
    .where('module_revisions.name', '=', name);
  const row =
    typeof revision === 'number'
      ? await query.where('revision', '=', revision).executeTakeFirst()
      : await query
          .innerJoin('modules', (join) =>
            join
              .onRef('modules.name', '=', 'module_revisions.name')
              .onRef('modules.revision', '=', 'module_revisions.revision'),
          )
          .executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Returns the text of a revision; null if it does not exist. */
export async function findModuleText(db: Queryable, name: string, revision: number): Promise<string | null> {
  const query = db.selectFrom('module_revisions').select('content').where('name', '=', name);
  return (await query.where('revision', '=', revision).executeTakeFirst())?.content ?? null;
}

/** A revision without its text and definition. */
export type ModuleHead = Omit<ModuleRevisionRow, 'content' | 'definition'>;

/**
 * Returns the current revisions of the named modules without texts and definitions, in no defined order. Leaves out unknown
 * names.
 */
export async function findModuleHeads(db: Queryable, names: readonly string[]): Promise<readonly ModuleHead[]> {
  return names.length === 0 ? [] : headsOf(db, JSON.stringify(names));
}

const headsOf = preparedQuery((db, names: string) =>
  db
    .selectFrom('modules')
    .innerJoin('module_revisions as current', (join) =>
      join.onRef('modules.name', '=', 'current.name').onRef('modules.revision', '=', 'current.revision'),
    )
    .select(['current.name', 'current.revision', 'current.sha256', 'current.uploaded_at', 'current.uploaded_by'])
    .where('modules.name', 'in', jsonStrings(db, names)),
);

/** Stores a revision, makes it current and returns its number, which is unique while the module exists. */
export async function addModuleRevision(tx: Queryable, revision: NewRevision): Promise<number> {
  const { name, uploaded_at, uploaded_by } = revision;
  const number = ((await findModule(tx, name))?.revision ?? 0) + 1;
  await tx
    .insertInto('modules')
    .values({ name, revision: number, uploaded_at, uploaded_by })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ revision: number, uploaded_at, uploaded_by }))
    .execute();
  await tx
    .insertInto('module_revisions')
    .values(columns.encode({ ...revision, revision: number }))
    .execute();
  await addRevisionFiles(tx, { name, revision: number }, revision.definition.files);
  return number;
}

/** Returns the kept revisions, newest first, without their content. */
export async function listModuleRevisions(db: Queryable, name: string): Promise<readonly ModuleHead[]> {
  return db
    .selectFrom('module_revisions')
    .select(['name', 'revision', 'sha256', 'uploaded_at', 'uploaded_by'])
    .where('name', '=', name)
    .orderBy('revision', 'desc')
    .execute();
}

/** Deletes all but the newest `keep` revisions. */
export async function pruneModuleRevisions(db: Queryable, name: string, keep: number): Promise<void> {
  const oldest = await db
    .selectFrom('module_revisions')
    .select('revision')
    .where('name', '=', name)
    .orderBy('revision', 'desc')
    .limit(1)
    .offset(keep)
    .executeTakeFirst();
  if (!oldest) return;
  await db.deleteFrom('module_revisions').where('name', '=', name).where('revision', '<=', oldest.revision).execute();
}

/** Deletes a module with all its revisions. Returns false when it does not exist. */
export async function deleteModule(db: Queryable, name: string): Promise<boolean> {
  const result = await db.deleteFrom('modules').where('name', '=', name).executeTakeFirst();
  return result.numDeletedRows > 0n;
}
