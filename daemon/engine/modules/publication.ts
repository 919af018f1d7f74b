/** Publishes a module: its text becomes the current revision, which every machine that has the module follows. */
import type { Core } from '../../core/core.js';
import type { DomainEvent, Party } from '../../core/domain-event.js';
import type { Emit } from '../../core/unit-of-work.js';
import type { Queryable } from '../../database/schema.js';
import { recountAssignmentsOfModule } from '../assignments/assignments.js';
import { addModuleRevision, pruneModuleRevisions, setModulesRevision } from './module-store.js';
import { type ModuleText, notePublished } from './source-store.js';

/** Number of revisions kept per module. */
const KEPT_REVISIONS = 50;

interface Publication extends ModuleText {
  readonly name: string;
  /** Unix milliseconds. */
  readonly uploaded_at: number;
  /** Operator ID. */
  readonly uploaded_by: string;
}

interface PublicationTools extends Pick<Core, 'newId'> {
  readonly tx: Queryable;
  readonly emit: Emit;
}

/** Stores a revision of a module, and ends the trials of its text. `eventOf` returns the audit event of the revision. */
export async function publishRevision(
  { tx, emit, newId }: PublicationTools,
  module: Publication,
  eventOf: (revision: number) => DomainEvent,
): Promise<number> {
  const { name } = module;
  const revision = await addModuleRevision(tx, module);
  await setModulesRevision(tx, newId());
  await pruneModuleRevisions(tx, name, KEPT_REVISIONS);
  await recountAssignmentsOfModule(tx, name, newId);
  await notePublished(tx, module);
  emit(eventOf(revision));
  return revision;
}

export const moduleParty = (name: string): Party => ({ id: name, name, type: 'module' });
