/** Uploads, lists, reads and deletes value sets, and explains the values of agents. */

import type { Warning } from '../../../src/contract/modules.js';
import { NO_REVISION } from '../../../src/contract/run-targets.js';
import type {
  ExplainedModule,
  ReachedAgent,
  StoredValueSet,
  ValueSetEntry,
  ValueSetRevisionEntry,
  valueRoutes,
} from '../../../src/contract/values.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { Fault } from '../../../src/kernel/fault.js';
import { isModuleName } from '../../../src/kernel/ids.js';
import { LookAlikes } from '../../../src/kernel/look-alikes.js';
import { fileOf, valuesOfSets } from '../../../src/language/inputs/fleet-values.js';
import { modulesSetBy, type ValueSet } from '../../../src/language/inputs/value-set.js';
import type { Core } from '../../core/core.js';
import { eventOfRequest, type Party, type RequestContext } from '../../core/domain-event.js';
import { requireMatch, tagged } from '../../core/entity-tag.js';
import type { Rights } from '../../core/rights.js';
import type { Queryable } from '../../database/schema.js';
import { tagsByAgent } from '../../fleet/tag-store.js';
import type { HandlersFor } from '../../http/handler.js';
import { type CurrentAssignments, listAssignments } from '../assignments/assignment-store.js';
import { recountAssignmentsOfModule } from '../assignments/assignments.js';
import type { CurrentModules } from '../modules/current-modules.js';
import { digestOf, type TextParser } from '../modules/text-parser.js';
import { agentWithInputs, refuseUnapproved } from '../runs/agent-gate.js';
import type { RunContents } from '../runs/run-contents.js';
import { checkValues, invalidValues } from './check-values.js';
import type { CurrentValues } from './current-values.js';
import { explainValues } from './explain-values.js';
import { valueReach } from './value-reach.js';
import { refuseBeyond } from './value-rights.js';
import {
  addValueSetRevision,
  deleteValueSet,
  findValueSet,
  findValueSetRevision,
  listValueSetRevisions,
  listValueSets,
  nextRevision,
  putValueSet,
  setValuesRevision,
  type ValueSetRow,
} from './value-store.js';

interface ValueServiceOptions extends Pick<Core, 'clock' | 'db' | 'newId' | 'uow'> {
  readonly parser: TextParser;
  readonly assignments: CurrentAssignments;
  readonly current: CurrentModules;
  readonly contents: RunContents;
  readonly values: CurrentValues;
}

interface Upload {
  readonly name: string;
  readonly content: string;
  /** SHA-256 of the revision to replace, or `NO_REVISION`; null or absent for whatever is current. */
  readonly replaces?: string | null | undefined;
}

interface SetChange {
  readonly name: string;
  /** In the place of the stored one; null without it. */
  readonly set: ValueSet | null;
  readonly rights: Rights;
}

interface Checked {
  readonly set: ValueSet;
  readonly sha256: string;
  readonly warnings: Warning[];
}

interface Preview {
  readonly sha256: string | null;
  readonly changed: boolean;
  readonly warnings: Warning[];
  readonly agents: ReachedAgent[];
}

export class ValueService {
  private readonly options: ValueServiceOptions;

  constructor(options: ValueServiceOptions) {
    this.options = options;
  }

  /** Returns all value sets, by name. */
  async list(): Promise<ValueSetEntry[]> {
    return (await listValueSets(this.options.db)).map(entryOf);
  }

  /** Returns the current revision, or an older one that is still kept, also of a removed set. Throws `values_not_found`. */
  async get(name: string, revision: number | null, operatorId: string): Promise<StoredValueSet> {
    const { db, parser } = this.options;
    const current = await findValueSet(db, name);
    if (current !== null && (revision === null || revision === current.revision))
      return { ...entryOf(current), content: current.content };
    if (revision === null) throw await valuesNotFound(db, name);
    const row = await findValueSetRevision(db, name, revision);
    if (row === null) throw await valuesNotFound(db, name, revision);
    const { content, sha256, uploaded_at, uploaded_by } = row;
    if (content === null || sha256 === null) throw removedRevision(name, revision);
    const { set } = await parser.parseValues(content, operatorId);
    return { ...entryOf({ name, revision, sha256, set, uploaded_at, uploaded_by }), content };
  }

  /** Returns the kept revisions, newest first. Throws `values_not_found`. */
  async revisions(name: string): Promise<ValueSetRevisionEntry[]> {
    const { db } = this.options;
    const rows = await listValueSetRevisions(db, name);
    if (rows.length === 0) throw await valuesNotFound(db, name);
    return rows.map((row) => ({ ...row, uploaded_at: toSeconds(row.uploaded_at) }));
  }

  /**
   * Returns whom an upload would reach, or for null the removal. Throws `invalid_name`, `invalid_values`,
   * `values_conflict`, `values_not_found` and `not_granted`.
   */
  async preview(name: string, content: string | null, { actor, rights }: RequestContext): Promise<Preview> {
    const { db } = this.options;
    const before = content === null ? await requireValueSet(db, name) : await findValueSet(db, name);
    const checked = content === null ? null : await this.check({ name, content }, actor.id);
    if (checked !== null) await refuseSecondRank(db, name, checked.set);
    refuseBeyond(rights, before?.set ?? null, checked?.set ?? null);
    const agents = await this.reach(db, { name, set: checked?.set ?? null, rights });
    const sha256 = before?.sha256 ?? null;
    return { sha256, changed: checked?.sha256 !== sha256, warnings: checked?.warnings ?? [], agents };
  }

  /**
   * Stores a new revision, and returns whom it reaches. If the text equals the current revision, changes nothing. Throws
   * `invalid_name`, `invalid_values` with every mistake, `values_conflict`, `precondition_failed` when the current revision is not
   * the one to replace, and `not_granted` for an entry that could reach other machines than the operator's.
   */
  async upload(upload: Upload, context: RequestContext): Promise<ValueSetEntry & Omit<Preview, 'sha256'>> {
    const { clock, db, newId, uow } = this.options;
    const { name, content, replaces } = upload;
    const { set, sha256, warnings } = await this.check(upload, context.actor.id);
    const isSame = (await findValueSet(db, name))?.sha256 === sha256;
    const agents = isSame ? [] : await this.reach(db, { name, set, rights: context.rights });
    return uow.write(async (tx, emit) => {
      const current = await findValueSet(tx, name);
      if (current?.sha256 === sha256) return { ...entryOf(current), changed: false, warnings, agents: [] };
      refuseBeyond(context.rights, current?.set ?? null, set);
      if (replaces != null) refuseOther(name, current, replaces);
      await refuseSecondRank(tx, name, set);
      const revision = await nextRevision(tx, name);
      const row = { name, revision, sha256, content, set, uploaded_at: clock.now(), uploaded_by: context.actor.id };
      await putValueSet(tx, row);
      const { set: _, ...text } = row;
      await addValueSetRevision(tx, text);
      await setValuesRevision(tx, newId());
      await recountAssignmentsOf(tx, [...(current === null ? [] : [current.set]), set], {
        newId,
        rights: context.rights,
      });
      emit(
        eventOfRequest(context, {
          type: 'values.uploaded',
          target: valuesParty(name),
          summary: `${context.actor.name} uploaded revision ${revision} of the value set ${name}`,
          metadata: { revision, sha256, before: current?.sha256 ?? null },
        }),
      );
      return { ...entryOf(row), changed: true, warnings, agents };
    });
  }

  /** Throws `values_not_found`, `precondition_failed` or `not_granted`. */
  async remove(name: string, context: RequestContext): Promise<void> {
    const { clock, newId, uow } = this.options;
    await uow.write(async (tx, emit) => {
      const row = await requireValueSet(tx, name);
      refuseBeyond(context.rights, row.set, null);
      requireMatch(context, `value set ${name}`, contentOf(row));
      await deleteValueSet(tx, name);
      const revision = await nextRevision(tx, name);
      const removed = { uploaded_at: clock.now(), uploaded_by: context.actor.id };
      await addValueSetRevision(tx, { name, revision, sha256: null, content: null, ...removed });
      await setValuesRevision(tx, newId());
      await recountAssignmentsOf(tx, [row.set], { newId, rights: context.rights });
      emit(
        eventOfRequest(context, {
          type: 'values.deleted',
          target: valuesParty(name),
          summary: `${context.actor.name} deleted the value set ${name}`,
          metadata: { revision, sha256: row.sha256 },
        }),
      );
    });
  }

  /** Returns the values of an agent's inputs. Throws `agent_not_found`, `agent_not_approved` and `module_not_found`. */
  async explain(nodeId: string, module: string | null): Promise<ExplainedModule[]> {
    const { db } = this.options;
    return explainValues(db, this.options, refuseUnapproved(await agentWithInputs(db, nodeId)), module);
  }

  private async check({ name, content }: Upload, operatorId: string): Promise<Checked> {
    const { db, current, parser } = this.options;
    if (!isModuleName(name)) throw invalidName(name);
    const { set, diagnostics } = await parser.parseValues(content, operatorId);
    const problems = set === null ? [] : await checkValues(db, current, set);
    const found = [
      ...diagnostics.map(({ severity, path, message, line, column }) => ({
        severity,
        detail: { path, message, line, column },
      })),
      ...problems.map(({ severity, path, message, line }) => ({
        severity,
        detail: { path, message, line, column: 1 },
      })),
    ];
    const errors = found.filter(({ severity }) => severity === 'error').map(({ detail }) => detail);
    if (set === null || errors.length > 0) throw invalidValues(fileOf(name), errors);
    const warnings = found.filter(({ severity }) => severity === 'warning').map(({ detail }) => detail);
    return { set, sha256: digestOf(content), warnings: [...(await lookAlikeWarnings(db, name)), ...warnings] };
  }

  /** Returns whom a change reaches among those that the operator may read. */
  private async reach(db: Queryable, { name, set, rights }: SetChange): Promise<ReachedAgent[]> {
    const sets = await listValueSets(db);
    const others = sets.filter((one) => one.name !== name);
    const after = set === null ? others : [...others, { name, set }];
    const reached = await valueReach(db, this.options, { before: valuesOfSets(sets), after: valuesOfSets(after) });
    if (!rights.isLimited) return reached;
    const tags = await tagsByAgent(db);
    return reached.filter(({ node_id }) => rights.may('read', { nodeId: node_id, tags: tags.get(node_id) ?? {} }));
  }
}

/** Returns a warning if people take the name of a new value set for that of another. */
async function lookAlikeWarnings(db: Queryable, name: string): Promise<readonly Warning[]> {
  const names = (await listValueSets(db)).map((one) => one.name);
  const like = names.includes(name) ? null : new LookAlikes(names).like(name);
  if (like === null) return [];
  return [{ path: '', line: 1, column: 1, message: `the name looks like that of the value set "${like}"` }];
}

/**
 * Lets the failures of automatic applies count anew for each assignment with a module that the value sets concern, and over all of
 * which the operator may apply.
 */
async function recountAssignmentsOf(
  tx: Queryable,
  sets: readonly ValueSet[],
  { newId, rights }: Pick<Core, 'newId'> & Pick<RequestContext, 'rights'>,
): Promise<void> {
  const entries = sets.flatMap((set) => set.entries);
  const isForAll = entries.some(({ shared }) => Object.keys(shared).length > 0);
  const assigned = isForAll ? (await listAssignments(tx)).flatMap(({ modules }) => modules) : [];
  const modules = new Set([...assigned, ...modulesSetBy(entries)]);
  for (const module of modules) await recountAssignmentsOfModule(tx, module, newId, rights);
}

const valuesParty = (name: string): Party => ({ id: name, name, type: 'values' });

async function requireValueSet(db: Queryable, name: string): Promise<ValueSetRow> {
  const row = await findValueSet(db, name);
  if (row !== null) return row;
  throw await valuesNotFound(db, name);
}

/** Returns the fault of a value set or a revision that does not exist; its hint leads to the revisions that are kept. */
async function valuesNotFound(db: Queryable, name: string, revision?: number): Promise<Fault> {
  const [newest] = await listValueSetRevisions(db, name);
  const which = revision === undefined ? '' : ` with revision ${revision}`;
  const isRemoved = newest !== undefined && newest.sha256 === null;
  const removed = isRemoved && revision === undefined ? '; it was removed' : '';
  return new Fault('values_not_found', `there is no value set "${name}"${which}${removed}`, {
    hint:
      newest === undefined ? 'see what there is: orch values list' : `see what is kept: orch values revisions ${name}`,
    data: { values: name },
  });
}

const removedRevision = (name: string, revision: number): Fault =>
  new Fault('values_not_found', `revision ${revision} of value set "${name}" is its removal, and has no text`, {
    hint: `show the one before: orch values show ${name} --revision ${revision - 1}`,
    data: { values: name },
  });

/** Throws `precondition_failed` unless the current revision is the one to replace. */
function refuseOther(name: string, current: ValueSetRow | null, replaces: string): void {
  const found = current?.sha256 ?? NO_REVISION;
  if (found === replaces) return;
  const what =
    current === null
      ? `there is no value set ${name} any longer`
      : `value set ${name} has revision ${current.revision} now`;
  throw new Fault('precondition_failed', `${what}, which is not the one to be replaced`, {
    hint: `compare with what is current: orch values show ${name}`,
    data: { values: name, current: found, replaces },
  });
}

/** Throws `values_conflict` if a set and another one have a ranking. */
async function refuseSecondRank(db: Queryable, name: string, set: ValueSet): Promise<void> {
  if (set.rank === null) return;
  const other = (await listValueSets(db)).find((one) => one.name !== name && one.set.rank !== null);
  if (other === undefined) return;
  throw new Fault(
    'values_conflict',
    `the value set ${other.name} has "rank" already, and there is one ranking for all`,
    {
      hint: `change it there: orch values edit ${other.name}`,
      data: { values: other.name },
    },
  );
}

const invalidName = (name: string): Fault =>
  new Fault('invalid_name', `${JSON.stringify(name)} is no name for a value set`, {
    hint: 'use 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit',
  });

/** Returns what a new revision of a value set replaces. */
const contentOf = ({ sha256 }: Pick<ValueSetRow, 'sha256'>) => ({ sha256 });

/** A revision with its text as data; null if this version rejects the text. */
type Entry = Omit<ValueSetRow, 'content' | 'set'> & { readonly set: ValueSet | null };

const entryOf = ({ name, revision, sha256, set, uploaded_at, uploaded_by }: Entry): ValueSetEntry => ({
  name,
  revision,
  sha256,
  uploaded_at: toSeconds(uploaded_at),
  uploaded_by,
  modules: [...modulesSetBy(set?.entries ?? [])].sort(),
});

/** HTTP handlers of value sets. */
export const valueHandlers = (values: ValueService): HandlersFor<typeof valueRoutes> => ({
  listValueSets: async () => ({ status: 200, body: await values.list() }),
  uploadValueSet: async ({ body, context }) => ({ status: 201, body: await values.upload(body, context) }),
  previewValueSet: async ({ params, body, context }) => ({
    status: 200,
    body: await values.preview(params.name, body.content, context),
  }),
  getValueSet: async ({ params, query, context }) => {
    const body = await values.get(params.name, query.revision ?? null, context.actor.id);
    return { status: 200, ...tagged(body, contentOf(body)) };
  },
  listValueSetRevisions: async ({ params }) => ({
    status: 200,
    body: { revisions: await values.revisions(params.name) },
  }),
  removeValueSet: async ({ params, context }) => {
    await values.remove(params.name, context);
    return { status: 204, body: undefined };
  },
  explainValues: async ({ params, query }) => ({
    status: 200,
    body: { modules: await values.explain(params.node_id, query.module ?? null) },
  }),
});
