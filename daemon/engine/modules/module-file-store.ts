/** Stores files beside modules in parts, and what names them. */
import type { StoredFile } from '../../../src/contract/files.js';
import type { FileDigests } from '../../../src/language/files-beside.js';
import { chunks } from '../../database/batches.js';
import type { Queryable, Row } from '../../database/schema.js';

export async function findFile(db: Queryable, sha256: string): Promise<Row<'module_files'> | null> {
  const row = await db.selectFrom('module_files').selectAll().where('sha256', '=', sha256).executeTakeFirst();
  return row ?? null;
}

/** Returns the sizes of the complete files among these, in bytes. */
export async function sizesOfFiles(db: Queryable, digests: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for (const part of chunks([...new Set(digests)], 500)) {
    const rows = await db
      .selectFrom('module_files')
      .select(['sha256', 'size'])
      .where('sha256', 'in', part)
      .where('is_complete', '=', 1)
      .execute();
    for (const { sha256, size } of rows) sizes.set(sha256, size);
  }
  return sizes;
}

/** Creates the record of a file unless it exists, and notes that it is named now (Unix milliseconds). */
export async function nameFile(
  tx: Queryable,
  { sha256, size }: Pick<StoredFile, 'sha256' | 'size'>,
  now: number,
): Promise<void> {
  await tx
    .insertInto('module_files')
    .values({ sha256, size, received: 0, is_complete: 0, named_at: now })
    .onConflict((conflict) => conflict.column('sha256').doUpdateSet({ named_at: now }))
    .execute();
}

/** Adds the part that begins where the stored ones end. @param data base64 */
export async function addFilePart(
  tx: Queryable,
  sha256: string,
  part: { readonly position: number; readonly data: string; readonly received: number },
): Promise<void> {
  const { position, data, received } = part;
  await tx.insertInto('module_file_parts').values({ sha256, position, data }).execute();
  await tx.updateTable('module_files').set({ received }).where('sha256', '=', sha256).execute();
}

/** Returns a part; null beyond the end. */
export async function findFilePart(db: Queryable, sha256: string, position: number): Promise<Buffer | null> {
  const row = await db
    .selectFrom('module_file_parts')
    .select('data')
    .where('sha256', '=', sha256)
    .where('position', '=', position)
    .executeTakeFirst();
  return row === undefined ? null : Buffer.from(row.data, 'base64');
}

export async function completeFile(tx: Queryable, sha256: string): Promise<void> {
  await tx.updateTable('module_files').set({ is_complete: 1 }).where('sha256', '=', sha256).execute();
}

/** Deletes a file that is not complete. */
export async function deleteIncompleteFile(tx: Queryable, sha256: string): Promise<void> {
  await tx.deleteFrom('module_files').where('sha256', '=', sha256).where('is_complete', '=', 0).execute();
}

const digestsIn = (files: FileDigests | undefined): readonly string[] => [...new Set(Object.values(files ?? {}))];

/** Notes the files of a revision of a module. */
export async function addRevisionFiles(
  tx: Queryable,
  of: { readonly name: string; readonly revision: number },
  files: FileDigests | undefined,
): Promise<void> {
  for (const sha256 of digestsIn(files))
    await tx
      .insertInto('revision_files')
      .values({ ...of, sha256 })
      .execute();
}

/** Notes the files of a text that an apply or a rollout carries. */
export async function addTextFiles(tx: Queryable, textSha256: string, files: FileDigests | undefined): Promise<void> {
  for (const sha256 of digestsIn(files)) {
    await tx
      .insertInto('text_files')
      .values({ text_sha256: textSha256, sha256 })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/** Deletes files that nothing names, and that no upload has named since `before` (Unix milliseconds). */
export async function deleteUnnamedFiles(tx: Queryable, before: number): Promise<void> {
  await tx
    .deleteFrom('module_files')
    .where('named_at', '<', before)
    .where('sha256', 'not in', (of) => of.selectFrom('revision_files').select('sha256'))
    .where('sha256', 'not in', (of) => of.selectFrom('text_files').select('sha256'))
    .where('sha256', 'not in', (of) => of.selectFrom('content_files').select('sha256'))
    .execute();
}
