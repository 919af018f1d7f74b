/** Uploads, lists, reads and deletes modules. */
import type {
  Module,
  ModuleEntry,
  ModuleReach,
  ModuleRevision,
  moduleRoutes,
  Warning,
} from '../../../src/contract/modules.js';
import { NO_REVISION } from '../../../src/contract/run-targets.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { Fault } from '../../../src/kernel/fault.js';
import { LookAlikes } from '../../../src/kernel/look-alikes.js';
import { compileSteps } from '../../../src/language/compile-module.js';
import type { Position } from '../../../src/language/diagnostic.js';
import type { FileDigests } from '../../../src/language/files-beside.js';
import { checkSet } from '../../../src/language/inputs/check-set.js';
import { entryOfAssignment, fileOf } from '../../../src/language/inputs/fleet-values.js';
import type { ModuleDefinition } from '../../../src/language/schema.js';
import type { Core } from '../../core/core.js';
import { eventOfRequest, type RequestContext } from '../../core/domain-event.js';
import { requireMatch, tagged } from '../../core/entity-tag.js';
import { notGranted, type Rights } from '../../core/rights.js';
import type { Queryable } from '../../database/schema.js';
import type { AgentRow } from '../../fleet/agent-store.js';
import type { HandlersFor } from '../../http/handler.js';
import { listAssignments } from '../assignments/assignment-store.js';
import { assignmentsOfModule } from '../assignments/assignments.js';
import { inSlices } from '../slices.js';
import { listValueSets } from '../values/value-store.js';
import { moduleNotFound } from './current-modules.js';
import type { Followers } from './followers.js';
import type { ModuleFiles } from './module-files.js';
import {
  deleteModule,
  findModuleHeads,
  findModuleRevision,
  listModuleRevisions,
  listModules,
  type ModuleHead,
  setModulesRevision,
} from './module-store.js';
import { moduleParty, publishRevision } from './publication.js';
import { mayStore } from './store-rights.js';
import { checkUpload, type TextParser } from './text-parser.js';

interface ModuleServiceOptions extends Pick<Core, 'clock' | 'db' | 'newId' | 'uow'> {
  readonly parser: TextParser;
  readonly followers: Followers;
  readonly files: Pick<ModuleFiles, 'attach'>;
}

interface Upload {
  readonly name: string;
  readonly content: string;
  /** Files beside it; null or absent for none. */
  readonly files?: FileDigests | null | undefined;
  /** SHA-256 of the revision to replace, or `NO_REVISION`; null or absent for whatever is current. */
  readonly replaces?: string | null | undefined;
}

interface Uploaded extends ModuleEntry, Pick<Module, 'revision' | 'sha256'> {
  readonly changed: boolean;
  readonly warnings: Warning[];
}

export class ModuleService {
  private readonly options: ModuleServiceOptions;

  constructor(options: ModuleServiceOptions) {
    this.options = options;
  }

  /** Returns all modules, by name. */
  async list(): Promise<ModuleEntry[]> {
    return (await listModules(this.options.db)).map(entryOf);
  }

  /** Returns the current revision, or an older one that is still kept. Throws `module_not_found`. */
  async get(name: string, revision?: number | null): Promise<Module> {
    const row = await findModuleRevision(this.options.db, name, revision ?? null);
    if (row === null) throw moduleNotFound(name, revision ?? undefined);
    const { sha256, content } = row;
    const { files } = row.definition;
    const own = files === undefined ? {} : { files };
    return { ...entryOf(row), revision: row.revision, sha256, content, ...own, definition: { ...row.definition } };
  }

  /** Returns the kept revisions, newest first. Throws `module_not_found`. */
  async revisions(name: string): Promise<ModuleRevision[]> {
    const rows = await listModuleRevisions(this.options.db, name);
    if (rows.length === 0) throw moduleNotFound(name);
    return rows.map((row) => ({ ...entryOf(row), revision: row.revision, sha256: row.sha256 }));
  }

  /** Returns whom a new revision of a module would reach among those that the operator may read, also for one that is not stored. */
  async reach(name: string, rights: Rights): Promise<ModuleReach> {
    const { db, followers } = this.options;
    const [head] = await findModuleHeads(db, [name]);
    const fleet = await followers.read(db);
    const mayRead = ({ node_id }: AgentRow) =>
      rights.may('read', { nodeId: node_id, tags: fleet.tags.get(node_id) ?? {} });
    const shown = { ...fleet, agents: fleet.agents.filter(mayRead) };
    const { naming, followers: agents } = await followers.reach(db, name, shown);
    return {
      name,
      sha256: head?.sha256 ?? null,
      ...(rights.has('apply') && !(await mayStore(db, followers, rights, name)) && { may_store: false }),
      assignments: naming.map(({ assignment, agents: matched }) => ({
        name: assignment.name,
        mode: assignment.mode,
        agents: matched,
      })),
      agents: agents.map(({ agent, mode, isOnTrial, hasOwnValues, tried }) => ({
        node_id: agent.node_id,
        name: agent.name,
        mode,
        on_trial: isOnTrial,
        ...(hasOwnValues && { own_values: true }),
        tried,
      })),
    };
  }

  /**
   * Stores a new revision. If the text equals the current revision, changes nothing and returns that one with `changed: false`.
   * Throws `invalid_module` with every mistake, `file_not_found`, `precondition_failed` when the current revision is not the one to
   * replace, and `not_granted` when it could reach other machines than the operator's.
   */
  async upload({ name, content, replaces, ...upload }: Upload, context: RequestContext): Promise<Uploaded> {
    const files = await this.options.files.attach(upload.files ?? {});
    const sent = { name, content, files, operatorId: context.actor.id };
    const { definition, sha256, place, ...checked } = await checkUpload(this.options.parser, sent);
    const uploaded = { uploaded_at: this.options.clock.now(), uploaded_by: context.actor.id };
    const own = [...checked.warnings, ...(await valueWarnings(this.options.db, definition, place))];
    let warnings: readonly Warning[] = own;
    const stored = await this.options.uow.write(async (tx, emit) => {
      const [current] = await findModuleHeads(tx, [name]);
      if (current?.sha256 === sha256) return { ...current, changed: false };
      await this.refuseBeyond(tx, context.rights, name);
      if (replaces != null) refuseOther(name, current, replaces);
      warnings = current === undefined ? await lookAlikeWarnings(tx, name, place, own) : own;
      const revision = await publishRevision(
        { tx, emit, newId: this.options.newId },
        { name, sha256, content, definition, ...uploaded },
        (revision) =>
          eventOfRequest(context, {
            type: 'module.uploaded',
            target: moduleParty(name),
            summary: `${context.actor.name} uploaded revision ${revision} of module ${name}`,
            metadata: {
              revision,
              sha256,
              ...(definition.files && { files: { ...definition.files } }),
              warnings: warnings.length,
            },
          }),
      );
      return { name, revision, sha256, ...uploaded, changed: true };
    });
    const { revision, changed } = stored;
    return { ...entryOf(stored), revision, sha256, changed, warnings: [...warnings] };
  }

  /**
   * Deletes a module. Its resources stay on agents until their next apply removes them. Throws `module_not_found`,
   * `module_in_use`, `precondition_failed` or `not_granted`.
   */
  async remove(name: string, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      await this.refuseBeyond(tx, context.rights, name);
      const [current] = await findModuleHeads(tx, [name]);
      if (current !== undefined) requireMatch(context, `module ${name}`, contentOf(current));
      await refuseInUse(tx, name);
      if (!(await deleteModule(tx, name))) throw moduleNotFound(name);
      await setModulesRevision(tx, this.options.newId());
      emit(
        eventOfRequest(context, {
          type: 'module.deleted',
          target: moduleParty(name),
          summary: `${context.actor.name} deleted module ${name}`,
        }),
      );
    });
  }

  /** Throws `not_granted` for an operator who may not store the module. */
  private async refuseBeyond(tx: Queryable, rights: Rights, name: string): Promise<void> {
    if (await mayStore(tx, this.options.followers, rights, name)) return;
    throw notGranted('apply', `every machine that could get the module ${name}`);
  }
}

/** Returns warnings about stored values that do not fit the inputs of the module: its agents would be refused an apply. */
async function valueWarnings(
  db: Queryable,
  definition: ModuleDefinition,
  place: Position,
): Promise<readonly Warning[]> {
  const { name } = definition;
  const sets = (await listValueSets(db)).flatMap(({ name: set, set: { entries } }) => {
    const concerned = entries.filter((entry) => Object.hasOwn(entry.set, name));
    return concerned.length === 0 ? [] : [{ from: fileOf(set), entries: concerned }];
  });
  const assigned = (await listAssignments(db)).flatMap(({ name: assignment, values }) =>
    values === null || !Object.hasOwn(values, name)
      ? []
      : [{ from: `assignment ${assignment}`, entries: [entryOfAssignment(values)] }],
  );
  if (sets.length + assigned.length === 0) return [];
  const modules = new Map([[name, await inSlices(compileSteps({ name, definition }))]]);
  const warnings: Warning[] = [];
  for (const { from, entries } of [...sets, ...assigned]) {
    const own = entries.map((entry) => ({ ...entry, set: { [name]: entry.set[name] ?? {} } }));
    for (const { message, line } of await inSlices(checkSet({ entries: own }, modules))) {
      const where = from.startsWith('assignment ') ? from : `${from}:${line}`;
      warnings.push({ path: '/inputs', ...place, message: `${where} does not fit: ${message}` });
    }
  }
  return warnings;
}

/** Returns warnings, with one more if people take the name of a new module for that of another. */
async function lookAlikeWarnings(
  db: Queryable,
  name: string,
  place: Position,
  others: readonly Warning[],
): Promise<readonly Warning[]> {
  const like = new LookAlikes((await listModules(db)).map((one) => one.name)).like(name);
  if (like === null) return others;
  return [...others, { path: '/name', ...place, message: `the name looks like that of the module "${like}"` }];
}

/** Returns what a new revision of a module replaces. */
const contentOf = ({ sha256 }: Pick<ModuleHead, 'sha256'>) => ({ sha256 });

/** Throws `precondition_failed` unless the current revision is the one to replace. */
function refuseOther(name: string, current: ModuleHead | undefined, replaces: string): void {
  const found = current?.sha256 ?? NO_REVISION;
  if (found === replaces) return;
  const what =
    current === undefined
      ? `there is no module ${name} any longer`
      : `module ${name} has revision ${current.revision} now`;
  throw new Fault('precondition_failed', `${what}, which is not the one to be replaced`, {
    hint: `compare with what is current: orch module show ${name}`,
    data: { module: name, current: found, replaces },
  });
}

async function refuseInUse(db: Queryable, name: string): Promise<void> {
  const [first, ...more] = await assignmentsOfModule(db, name);
  if (first === undefined) return;
  const rest = more.length > 0 ? ` and ${more.length} more` : '';
  throw new Fault('module_in_use', `module ${name} is named by assignment ${first}${rest}`, {
    hint: `take it out of them first: orch assignments edit ${first}, or orch assignments remove ${first}`,
    data: { assignments: [first, ...more] },
  });
}

const entryOf = (row: { readonly name: string; readonly uploaded_at: number; readonly uploaded_by: string }) => ({
  name: row.name,
  uploaded_at: toSeconds(row.uploaded_at),
  uploaded_by: row.uploaded_by,
});

/** HTTP handlers of modules. */
export const moduleHandlers = (modules: ModuleService): HandlersFor<typeof moduleRoutes> => ({
  listModules: async () => ({ status: 200, body: await modules.list() }),
  uploadModule: async ({ body, context }) => ({
    status: 201,
    body: await modules.upload(body, context),
  }),
  getModule: async ({ params, query }) => {
    const body = await modules.get(params.name, query.revision);
    return { status: 200, ...tagged(body, contentOf(body)) };
  },
  listModuleRevisions: async ({ params }) => ({
    status: 200,
    body: { revisions: await modules.revisions(params.name) },
  }),
  getModuleReach: async ({ params, rights }) => ({ status: 200, body: await modules.reach(params.name, rights) }),
  removeModule: async ({ params, context }) => {
    await modules.remove(params.name, context);
    return { status: 204, body: undefined };
  },
});
