/** Lists, creates, reads, changes and deletes assignments. */
import { isDeepStrictEqual } from 'node:util';
import type { Assignment, AssignmentDetail, ReviewReason } from '../../../src/contract/assignments.js';
import type { AssignmentMode } from '../../../src/kernel/assignment-modes.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { Fault } from '../../../src/kernel/fault.js';
import { isModuleName } from '../../../src/kernel/ids.js';
import { LookAlikes } from '../../../src/kernel/look-alikes.js';
import { entryOfAssignment } from '../../../src/language/inputs/fleet-values.js';
import { parseSelector } from '../../../src/language/selector.js';
import { currentIdOf } from '../../auth/operator-store.js';
import type { Core } from '../../core/core.js';
import { eventOfRequest, type Party, type RequestContext } from '../../core/domain-event.js';
import { requireMatch } from '../../core/entity-tag.js';
import { ALL_RIGHTS, NO_RIGHTS, notGranted, type Rights } from '../../core/rights.js';
import type { Queryable } from '../../database/schema.js';
import type { Machines } from '../../fleet/machines.js';
import type { CurrentModules } from '../modules/current-modules.js';
import { findModuleHeads } from '../modules/module-store.js';
import { listModules } from '../operations/apply-events.js';
import { checkValues, invalidValues } from '../values/check-values.js';
import {
  type AssignmentRow,
  deleteAssignment,
  findAssignment,
  type InputValues,
  insertAssignment,
  listAssignments,
  recountAssignment,
  resumeHeldAssignment,
  selectedAgents,
  selectorOf,
  setAssignmentsRevision,
  stopOf,
  updateAssignment,
} from './assignment-store.js';

interface AssignmentsOptions extends Pick<Core, 'clock' | 'db' | 'newId' | 'uow'> {
  readonly current: CurrentModules;
  readonly machines: Pick<Machines, 'all'>;
  /** Returns what a party may do now; null for everything. */
  readonly rightsOf: (db: Queryable, party: Party) => Promise<Rights | null>;
}

interface NewAssignment {
  readonly name: string;
  readonly modules: readonly string[];
  readonly selector: string;
  readonly description: string | null;
  readonly mode?: AssignmentMode;
  readonly values?: InputValues | null;
}

/** A change of an assignment: null keeps a field, an empty description removes the description, and no values the values. */
interface AssignmentChange {
  readonly modules: readonly string[] | null;
  readonly selector: string | null;
  readonly description: string | null;
  readonly mode?: AssignmentMode | null;
  readonly values?: InputValues | null;
}

export class Assignments {
  private readonly options: AssignmentsOptions;

  constructor(options: AssignmentsOptions) {
    this.options = options;
  }

  /** Returns all assignments, by name. */
  async list(): Promise<Assignment[]> {
    const { db } = this.options;
    const rows = await listAssignments(db);
    const reviews = await this.reviewsOf(db, rows);
    return rows.map((row) => assignmentView(row, reviews.get(row.name)));
  }

  /** Returns why assignments should be looked at, by name. */
  private async reviewsOf(db: Queryable, rows: readonly AssignmentRow[]): Promise<ReadonlyMap<string, ReviewReason>> {
    const scoped = rows.filter(({ scope }) => scope !== null);
    const makers = new Map<string, Rights | null>();
    for (const id of new Set(scoped.map(({ created_by }) => created_by))) {
      const current = await currentIdOf(db, id);
      makers.set(id, await this.options.rightsOf(db, { id: current, name: '', type: 'operator' }));
    }
    const reviews = new Map<string, ReviewReason>();
    for (const row of scoped) {
      const rights = makers.get(row.created_by) ?? null;
      if (rights === NO_RIGHTS) reviews.set(row.name, 'maker_left');
      else if (rights !== null && !isBacked(rights, row)) reviews.set(row.name, 'maker_lost_rights');
    }
    return reviews;
  }

  /** Returns the assignment with the agents that it matches now and the operator may read. Throws `assignment_not_found`. */
  async get(name: string, rights: Rights): Promise<AssignmentDetail> {
    const { db, machines } = this.options;
    const row = await requireAssignment(db, name);
    const matched = await selectedAgents(db, selectorOf(row));
    const shown = rights.isLimited ? new Set((await machines.all(rights)).map(({ nodeId }) => nodeId)) : null;
    const agents = matched.filter(({ node_id }) => shown?.has(node_id) ?? true);
    const review = (await this.reviewsOf(db, [row])).get(name);
    return {
      ...assignmentView(row, review),
      agents: agents.map(({ node_id, name: agent }) => ({ node_id, name: agent })),
    };
  }

  /**
   * Creates an assignment, which matches within the machines on which its maker may assign and apply. Throws `invalid_name`,
   * `invalid_selector`, `unknown_module`, `assignment_exists`, `invalid_values` or `not_granted`.
   */
  async create(given: NewAssignment, context: RequestContext): Promise<Assignment> {
    const { name, modules, selector, description, mode = 'manual', values = null } = given;
    if (!isModuleName(name)) throw invalidName(name);
    parseSelector(selector);
    const scope = context.rights.scopeOf('assign', 'apply');
    if (scope?.length === 0) throw notGranted('apply', 'the machines of your right assign');
    const row: AssignmentRow = {
      name,
      modules: [...new Set(modules)],
      selector,
      description: description || null,
      created_at: this.options.clock.now(),
      created_by: context.actor.id,
      mode,
      counted_from: this.options.newId(),
      stopped_id: null,
      stopped_reason: null,
      values: orNone(values),
      scope,
    };
    await this.options.uow.write(async (tx, emit) => {
      if ((await findAssignment(tx, name)) !== null) throw assignmentExists(name);
      refuseLookAlike(name, await listAssignments(tx));
      await refuseUnknownModules(tx, modules);
      await this.refuseWrongValues(tx, name, row.values);
      await insertAssignment(tx, row);
      await setAssignmentsRevision(tx, this.options.newId());
      emit(
        eventOfRequest(context, {
          type: 'assignment.created',
          target: assignmentParty(name),
          summary: `${context.actor.name} assigned ${listModules([...new Set(modules)])} to ${selector} as ${name}`,
          metadata: contentOf(row),
        }),
      );
    });
    return assignmentView(row);
  }

  /**
   * Changes an assignment; emits no event when nothing differs. Throws `assignment_not_found`, `invalid_selector`,
   * `unknown_module`, `invalid_values`, `precondition_failed`, or `not_granted` for a change that could reach other machines.
   */
  async update(name: string, change: AssignmentChange, context: RequestContext): Promise<Assignment> {
    if (change.selector !== null) parseSelector(change.selector);
    return this.options.uow.write(async (tx, emit) => {
      const before = await requireAssignment(tx, name);
      refuseBeyond(context.rights, before);
      requireMatch(context, `assignment ${name}`, contentOf(before));
      if (change.modules !== null) await refuseUnknownModules(tx, change.modules);
      if (change.values != null) await this.refuseWrongValues(tx, name, change.values);
      const after = changed(before, change);
      refuseBeyond(context.rights, after);
      const fields = fieldsThatDiffer(before, after);
      if (fields.length === 0) return assignmentView(before);
      const { modules, selector, description, mode, values } = after;
      const counted_from = this.options.newId();
      await updateAssignment(tx, name, { modules, selector, description, mode, values, counted_from });
      await setAssignmentsRevision(tx, this.options.newId());
      emit(
        eventOfRequest(context, {
          type: 'assignment.updated',
          target: assignmentParty(name),
          summary: `${context.actor.name} changed the ${fields.join(' and the ')} of assignment ${name}`,
          metadata: { before: contentOf(before), after: contentOf(after) },
        }),
      );
      return assignmentView({ ...after, counted_from });
    });
  }

  /** Throws `invalid_values` with every value that does not fit its input. */
  private async refuseWrongValues(tx: Queryable, name: string, values: InputValues | null): Promise<void> {
    if (values === null) return;
    const entries = [entryOfAssignment(values)];
    const problems = await checkValues(tx, this.options.current, { entries });
    // Whatever an assignment names exists, so here a module without one is a mistake.
    const errors = problems.map(({ path, message }) => ({ path: path.replace('/values/0/set', '/values'), message }));
    if (errors.length > 0) throw invalidValues(`assignment ${name}`, errors);
  }

  /**
   * Lets automatic applies that have stopped go on; failures and repairs before count no more. Throws `assignment_not_found`,
   * `not_granted`.
   */
  async resume(name: string, context: RequestContext): Promise<Assignment> {
    return this.options.uow.write(async (tx, emit) => {
      const row = await requireAssignment(tx, name);
      refuseBeyond(context.rights, row);
      const counted_from = this.options.newId();
      await recountAssignment(tx, name, counted_from);
      await resumeHeldAssignment(tx, name);
      await setAssignmentsRevision(tx, this.options.newId());
      emit(
        eventOfRequest(context, {
          type: 'enforcement.resumed',
          target: assignmentParty(name),
          summary: `${context.actor.name} resumed the automatic applies of assignment ${name}`,
        }),
      );
      return assignmentView({ ...row, counted_from, stopped_id: null, stopped_reason: null });
    });
  }

  /** Deletes an assignment. Its resources stay on agents until their next apply removes them. Throws `assignment_not_found`, `not_granted`. */
  async remove(name: string, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      const row = await requireAssignment(tx, name);
      refuseBeyond(context.rights, row);
      requireMatch(context, `assignment ${name}`, contentOf(row));
      await deleteAssignment(tx, name);
      await setAssignmentsRevision(tx, this.options.newId());
      emit(
        eventOfRequest(context, {
          type: 'assignment.deleted',
          target: assignmentParty(name),
          summary: `${context.actor.name} deleted assignment ${name}`,
          metadata: { before: contentOf(row) },
        }),
      );
    });
  }
}

/** Returns true if the operator holds the rights to assign and to apply on every machine that the assignment can match. */
function isBacked(rights: Rights, { selector, scope }: AssignmentRow): boolean {
  const parsed = parseSelector(selector);
  return rights.covers('assign', parsed, scope) && rights.covers('apply', parsed, scope);
}

/** Returns true if the operator may apply to every machine that the assignment could ever match. */
const covers = (rights: Rights, { selector, scope }: Pick<AssignmentRow, 'selector' | 'scope'>): boolean =>
  rights.covers('apply', parseSelector(selector), scope);

/** Throws `not_granted` unless the operator may apply to every machine that the assignment could ever match. */
function refuseBeyond(rights: Rights, row: Pick<AssignmentRow, 'name' | 'selector' | 'scope'>): void {
  if (covers(rights, row)) return;
  throw notGranted('apply', `every machine that the assignment ${row.name} can match`);
}

/** Returns true if the operator may apply to every machine that an assignment of the module can match, now and later. */
export async function coversModule(tx: Queryable, rights: Rights, module: string): Promise<boolean> {
  if (!rights.isLimited) return true;
  const rows = (await listAssignments(tx)).filter(({ modules }) => modules.includes(module));
  return rows.every((row) => covers(rights, row));
}

export const assignmentParty = (name: string): Party => ({ id: name, name, type: 'assignment' });

/** Returns the row of an assignment. Throws `assignment_not_found`. */
export async function requireAssignment(db: Queryable, name: string): Promise<AssignmentRow> {
  const row = await findAssignment(db, name);
  if (row !== null) return row;
  throw new Fault('assignment_not_found', `there is no assignment "${name}"`, {
    hint: 'see what there is: orch assignments list',
    data: { assignment: name },
  });
}

/**
 * Lets the failures of automatic applies count anew for each assignment that names the module, because its content changes, and over
 * all of which the operator may apply.
 */
export async function recountAssignmentsOfModule(
  tx: Queryable,
  module: string,
  newId: Core['newId'],
  rights: Rights = ALL_RIGHTS,
): Promise<void> {
  const rows = (await listAssignments(tx)).filter(({ modules }) => modules.includes(module));
  const names = rows.filter((row) => covers(rights, row)).map(({ name }) => name);
  for (const name of names) await recountAssignment(tx, name, newId());
  if (names.length > 0) await setAssignmentsRevision(tx, newId());
}

/** Returns the names of the assignments that name a module. */
export async function assignmentsOfModule(db: Queryable, module: string): Promise<readonly string[]> {
  const rows = await listAssignments(db);
  return rows.filter(({ modules }) => modules.includes(module)).map(({ name }) => name);
}

/** Returns what a change of an assignment can replace. */
export const contentOf = (row: Pick<AssignmentRow, 'modules' | 'selector' | 'description' | 'mode' | 'values'>) => ({
  modules: row.modules,
  selector: row.selector,
  description: row.description,
  mode: row.mode,
  values: row.values,
});

/** Values that set nothing count as none. */
const orNone = (values: InputValues | null): InputValues | null =>
  values === null || Object.keys(values).length === 0 ? null : values;

const assignmentView = (row: AssignmentRow, review?: ReviewReason): Assignment => ({
  name: row.name,
  modules: [...row.modules],
  selector: row.selector,
  description: row.description,
  created_at: toSeconds(row.created_at),
  created_by: row.created_by,
  mode: row.mode,
  stopped_reason: stopOf(row),
  values: row.values === null ? null : { ...row.values },
  ...(row.scope !== null && { scope: [...row.scope] }),
  ...(review !== undefined && { review }),
});

const changed = (
  row: AssignmentRow,
  { modules, selector, description, mode, values = null }: AssignmentChange,
): AssignmentRow => ({
  ...row,
  mode: mode ?? row.mode,
  modules: modules === null ? row.modules : [...new Set(modules)],
  selector: selector ?? row.selector,
  description: description === null ? row.description : description || null,
  values: values === null ? row.values : orNone(values),
});

const FIELDS = [
  'modules',
  'selector',
  'description',
  'mode',
  'values',
] as const satisfies readonly (keyof AssignmentRow)[];

const fieldsThatDiffer = (before: AssignmentRow, after: AssignmentRow): readonly string[] =>
  FIELDS.filter((name) => !isDeepStrictEqual(before[name], after[name]));

/** Throws `unknown_module`, with one error for each name without a module. */
async function refuseUnknownModules(db: Queryable, names: readonly string[]): Promise<void> {
  const known = new Set((await findModuleHeads(db, names)).map(({ name }) => name));
  const errors = names.flatMap((name, index) =>
    known.has(name) ? [] : [{ path: `/modules/${index}`, message: `there is no module "${name}"` }],
  );
  const [first, ...more] = errors;
  if (first === undefined) return;
  const rest = more.length > 0 ? `, and ${more.length} more of these modules are missing` : '';
  throw new Fault('unknown_module', `${first.message}${rest}`, {
    errors,
    hint: 'publish it first: orch module publish FILE',
  });
}

const assignmentExists = (name: string): Fault =>
  new Fault('assignment_exists', `there is an assignment "${name}" already`, {
    hint: `change it: orch assignments edit ${name}`,
  });

/** Throws `assignment_exists` for a name that people take for that of another assignment. */
function refuseLookAlike(name: string, others: readonly AssignmentRow[]): void {
  const like = new LookAlikes(others.map((one) => one.name)).like(name);
  if (like === null) return;
  throw new Fault('assignment_exists', `the name "${name}" looks like that of the assignment "${like}"`, {
    hint: 'choose a name that people can tell apart from it',
    data: { name: like },
  });
}

const invalidName = (name: string): Fault =>
  new Fault('invalid_name', `${JSON.stringify(name)} is no name for an assignment`, {
    hint: 'use 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit',
  });
