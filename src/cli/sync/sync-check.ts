/** Checks a sync: assignments must find their modules, and the modules of each agent must be compatible. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { Fault } from '../../kernel/fault.js';
import { finish } from '../../kernel/steps.js';
import type { Diagnostic } from '../../language/diagnostic.js';
import { checkSet } from '../../language/inputs/check-set.js';
import {
  type AssignedValues,
  type NamedSet,
  valuesOfSets,
  withAssignments,
} from '../../language/inputs/fleet-values.js';
import { modulesSetBy, parseValueSet } from '../../language/inputs/value-set.js';
import { matches, scopedSelector } from '../../language/selector.js';
import type { Context } from '../context.js';
import { agentHandle, count } from '../format.js';
import { type CheckedAgent, type Conflict, checkTogether } from '../modules/check-together.js';
import { refuseInvalid, storedModules } from '../modules/read-modules.js';
import { withFiles } from '../modules/value-files.js';
import type { SourceAssignment, SyncSource } from './sync-files.js';
import type { Stored, SyncPlan } from './sync-plan.js';

/** Throws `invalid_module` with each place where an assignment names a missing module. */
export function refuseMissingModules({ modules, assignments }: SyncSource, stored: Stored, prune: boolean): void {
  const brought = new Set(modules.map(({ name }) => name));
  const there = new Set(stored.moduleNames);
  const missing = (name: string): string | null => {
    if (brought.has(name)) return null;
    if (!there.has(name)) return `there is no module "${name}", neither among the files nor on the orchestrator`;
    return prune ? `module "${name}" is not among the files, so that --prune would delete it` : null;
  };
  refuseInvalid(
    assignments.flatMap((assignment) => {
      const diagnostics = assignment.modules.flatMap((name, index) => {
        const message = missing(name);
        return message === null ? [] : [unknownModule(message, assignment, index)];
      });
      return diagnostics.length === 0 ? [] : [{ ...assignment.file, valid: false, diagnostics }];
    }),
  );
}

function unknownModule(message: string, { modules, locateModule }: SourceAssignment, index: number): Diagnostic {
  const { line, column } = locateModule(index);
  const endColumn = column + (modules[index]?.length ?? 0);
  return { severity: 'error', code: 'unknown_module', message, path: `/modules/${index}`, line, column, endColumn };
}

/** Throws `invalid_values` with each value that does not fit its input. Warns about modules that do not exist. */
export async function refuseWrongValues(context: Context, api: ApiClient, source: SyncSource): Promise<void> {
  const { values, modules } = source;
  const brought = new Map(modules.map((module) => [module.name, module.compiled]));
  const named = [...modulesSetBy(values.flatMap(({ parsed }) => parsed.set?.entries ?? []))];
  const others = named.filter((name) => !brought.has(name));
  const stored = others.length === 0 ? [] : await storedModules(api, others, context.signal);
  const known = new Map([...stored.map(({ name, compiled }) => [name, compiled] as const), ...brought]);
  refuseInvalid(
    values.flatMap((file) => {
      const problems = file.parsed.set === null ? [] : finish(checkSet(file.parsed.set, known));
      for (const { severity, line, message } of problems) {
        if (severity === 'warning') context.warn(`${file.path}:${line}: ${message}`);
      }
      const errors = problems.filter(({ severity }) => severity === 'error');
      const diagnostics = errors.map(
        ({ message, path }): Diagnostic => ({
          ...{ severity: 'error', code: 'input_invalid', message, path },
          ...file.parsed.locate(path),
        }),
      );
      return diagnostics.length === 0 ? [] : [{ ...file, valid: false, diagnostics }];
    }),
    'invalid_values',
  );
}

interface FleetCheck {
  readonly source: SyncSource;
  readonly stored: Stored;
  readonly plan: SyncPlan;
  readonly agents: readonly Agent[];
}

/**
 * Resolves the modules of each agent that the sync affects. Throws `module_conflict` with all conflicts;
 * warns about expressions that cannot be evaluated yet, because the tag may be set later.
 */
export async function refuseConflicts(context: Context, api: ApiClient, check: FleetCheck): Promise<void> {
  const after = assignmentsAfter(check);
  const affected = affectedAgents(check, after);
  const sets = valuesOfSets(setsAfter(check));
  const brought = new Map(check.source.modules.map((module) => [module.name, module]));
  const others = affected.flatMap(({ names }) => names.filter((name) => !brought.has(name)));
  const stored = new Map((await storedModules(api, others, context.signal)).map((module) => [module.name, module]));
  const checked = affected.map(({ agent, names }) => {
    const modules = names.flatMap((name) => brought.get(name) ?? stored.get(name) ?? []);
    const own = after.filter(({ selector, scope }) => matches(scopedSelector(selector, scope), agent));
    return checkTogether({ ...agent, name: agentHandle(agent) }, modules, withAssignments(sets, own));
  });
  const found = distinct(checked);
  for (const one of found.filter(isForLater))
    context.warn(`${placeOf(one.conflict)}: ${one.conflict.message}${on(one)}`);
  const errors = found.filter((one) => !isForLater(one));
  if (errors.length === 0) return;
  const list = errors.map((one) => `${placeOf(one.conflict)}: error: ${one.conflict.message}${on(one)}`);
  throw new Fault(
    'module_conflict',
    `the modules do not go together, ${count(errors.length, 'error')}:\n${list.join('\n')}`,
    {
      hint: 'nothing was done',
      errors: errors.map(({ conflict: { line, column, message } }) => ({ path: '', message, line, column })),
    },
  );
}

interface Affected {
  readonly agent: Agent;
  /** Names of its future modules, in order of application. */
  readonly names: readonly string[];
}

interface FutureAssignment extends Assigning, AssignedValues {}

/** Returns the assignments as they are after the sync, by name. */
function assignmentsAfter({ source, stored, plan }: FleetCheck): readonly FutureAssignment[] {
  const deleted = new Set(
    plan.actions.flatMap(({ kind, action, name }) => (kind === 'assignment' && action === 'delete' ? [name] : [])),
  );
  const declared = new Set(source.assignments.map(({ name }) => name));
  const kept = stored.assignments.filter(({ name }) => !declared.has(name) && !deleted.has(name));
  // A changed assignment keeps its scope.
  const scopes = new Map(stored.assignments.map(({ name, scope }) => [name, scope]));
  return [...kept, ...source.assignments]
    .map((one) => ({ ...one, values: one.values ?? null, scope: scopes.get(one.name) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the value sets as they are after the sync. Those that this version rejects are left out. */
function setsAfter({ source, stored, plan }: FleetCheck): readonly NamedSet[] {
  const deleted = new Set(
    plan.actions.flatMap(({ kind, action, name }) => (kind === 'values' && action === 'delete' ? [name] : [])),
  );
  const kept = stored.values.flatMap(({ name, content }) => {
    const { set } = parseValueSet(content);
    return set === null || deleted.has(name) ? [] : [{ name, set }];
  });
  return withFiles(kept, source.values);
}

/** Returns the agents whose modules or values may change. */
function affectedAgents({ stored, plan, agents }: FleetCheck, after: readonly FutureAssignment[]): readonly Affected[] {
  const changed = new Set(plan.actions.flatMap(({ kind, name }) => (kind === 'module' ? [name] : [])));
  const isValued = plan.actions.some(
    (action) =>
      action.kind === 'values' ||
      (action.kind === 'assignment' && action.action !== 'delete' && action.file.values !== undefined),
  );
  return agents.flatMap((agent) => {
    const before = modulesOf(stored.assignments, agent);
    const names = modulesOf(after, agent);
    const isSame = !isValued && before.join('\0') === names.join('\0') && !names.some((name) => changed.has(name));
    return isSame ? [] : [{ agent, names }];
  });
}

interface Assigning {
  readonly selector: string;
  /** Machines within which it matches; absent for all. */
  readonly scope?: readonly string[] | undefined;
  readonly modules: readonly string[];
}

const modulesOf = (assignments: readonly Assigning[], agent: Agent): readonly string[] => [
  ...new Set(
    assignments.flatMap(({ selector, scope, modules }) =>
      matches(scopedSelector(selector, scope), agent) ? modules : [],
    ),
  ),
];

interface Found {
  readonly conflict: Conflict;
  readonly agents: readonly string[];
}

/** Merges the same conflict on several agents. */
function distinct(checked: readonly CheckedAgent[]): readonly Found[] {
  const found = new Map<string, { readonly conflict: Conflict; readonly agents: string[] }>();
  for (const { name, errors } of checked) {
    for (const conflict of errors) {
      const key = JSON.stringify([placeOf(conflict), conflict.code, conflict.message]);
      const known = found.get(key) ?? { conflict, agents: [] };
      known.agents.push(name);
      found.set(key, known);
    }
  }
  return [...found.values()];
}

const isForLater = ({ conflict }: Found): boolean => conflict.code === 'expression_error';

const placeOf = ({ path, line, column }: Conflict): string => `${path}:${line}:${column}`;

/** Maximum number of listed agents. */
const NAMED = 3;

function on({ agents }: Found): string {
  const more = agents.length > NAMED ? ` and ${agents.length - NAMED} more` : '';
  return ` (on ${agents.slice(0, NAMED).join(', ')}${more})`;
}
