/** The desired state of this machine by module files, its removals, and the removal guard. */
import type { RunResult } from '../../contract/runs.js';
import type { PackageVersions } from '../../kernel/facts.js';
import type { FaultCode } from '../../kernel/fault.js';
import { Fault, isFault } from '../../kernel/fault.js';
import { finish } from '../../kernel/steps.js';
import type { CompiledModule } from '../../language/compile-module.js';
import type { AgentFacts } from '../../language/evaluate.js';
import { factsRead } from '../../language/facts-read.js';
import { NO_VALUES } from '../../language/inputs/choose.js';
import { type CompiledRequest, resolveCompiled } from '../../language/resolve.js';
import { reviveRemovals } from '../../language/revive.js';
import type { LocalContent } from '../../programs/local.js';
import { isAbsence } from '../../resources/absence-name.js';
import { noLongerDesired } from '../../resources/believed-state.js';
import type { DesiredCheck } from '../../resources/checks/check.js';
import type { ResourceAddress } from '../../resources/kind.js';
import { withRemovalTriggers } from '../../resources/listeners.js';
import { guardReason, MAX_UNASKED, removalGuardFault, removesSomething } from '../../resources/removal-guard.js';
import { resourceKey } from '../../resources/resource-key.js';
import type { ResourceResult } from '../../resources/result.js';
import { refuseLargeRun } from '../../resources/run-size.js';
import type { Context } from '../context.js';
import { readModuleFiles } from '../modules/find-modules.js';
import type { Applied } from './believed-state-schema.js';
import { findResolution, type KeptResolution, keepResolution } from './kept-modules.js';
import { allParsed, type LocalModule, localModules } from './local-modules.js';
import type { LocalChoice } from './local-options.js';
import type { LocalSession } from './local-session.js';
import { type LocalTexts, readLocalTexts } from './local-texts.js';
import type { LocalValues } from './local-values.js';

export interface LocalDesired extends LocalContent {
  readonly modules: readonly string[];
  /** Applied resources that are no longer desired. */
  readonly removed: readonly Applied[];
  /** Results of removals that fail because a secret they need is not given. */
  readonly failures: readonly ResourceResult[];
  readonly warnings: RunResult['warnings'];
  /** Remarks about the values. */
  readonly notes: readonly string[];
  /** Files beside the modules that have some, by the path of the module; absent for none. */
  readonly beside?: KeptResolution['beside'];
}

/**
 * Resolves module files for this machine, and prints the warnings of their validation. Throws `usage` without files,
 * `bad_request` for a run that is too large, and the faults of validation and resolution.
 */
export async function localDesired(
  session: LocalSession,
  choice: Pick<LocalChoice, 'file' | 'values' | 'set'>,
  warn: Context['warn'],
): Promise<LocalDesired> {
  if (choice.file.length === 0) {
    throw new Fault('usage', '--local needs module files', { hint: 'name them with -f FILE' });
  }
  const { secret, state } = session;
  const { modules, resources, verify, warnings, notes, beside } = await resolveFiles(session, choice, warn);
  const removed = finish(noLongerDesired(state.applied, resourceKey, resources));
  refuseLargeRun(
    { resources, removals: removed },
    'declare fewer resources; what an earlier apply declared is removed and counts too',
  );
  const revived = reviveRemovals(
    removed.map(({ operation_id: _operation, listeners: _listeners, ...removal }) => removal),
    (name) => secret(name) ?? { refused: 'is not given with --secret-file' },
  );
  const listeners = new Map(removed.map((one) => [resourceKey(one), one.listeners ?? []]));
  return {
    modules,
    resources: withRemovalTriggers(resources, revived.removals, (one) => listeners.get(resourceKey(one)) ?? []),
    ...(verify.length > 0 && { verify }),
    removed,
    ...revived,
    warnings,
    notes,
    ...(beside !== undefined && { beside }),
  };
}

interface ResolvedFiles extends KeptResolution {
  readonly verify: readonly DesiredCheck[];
  readonly warnings: RunResult['warnings'];
  readonly notes: readonly string[];
}

/** Resolves module files. Takes the resolution of an earlier run of the same files and facts unless secrets are in it. */
async function resolveFiles(
  { facts, secret, machine }: LocalSession,
  choice: Pick<LocalChoice, 'file' | 'values' | 'set'>,
  warn: Context['warn'],
): Promise<ResolvedFiles> {
  const files = readModuleFiles(choice.file);
  const texts = readLocalTexts(choice);
  const input = { files, facts, values: texts };
  const kept = findResolution(machine.dataDir, input);
  if (kept !== null) return { ...kept, verify: [], warnings: [], notes: [] };
  const given = await localModules(machine.dataDir, files);
  const remarks = given.flatMap(({ path, diagnostics }) =>
    diagnostics.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`),
  );
  for (const remark of remarks) warn(remark);
  const packages = await packagesOf(given, machine);
  let hasSecrets = false;
  const { read, resources, checks, warnings, notes } = await resolveModules(given, {
    texts,
    agent: packages === null ? facts : withPackages(facts, packages),
    secret: (name) => {
      hasSecrets = true;
      return secret(name);
    },
  });
  const modules = read.map(({ name }) => name);
  // A kept resolution has no health checks, so that its form is that of earlier versions.
  // The versions of packages are known only after the modules were read, so a kept one does not depend on them.
  if (!hasSecrets && packages === null && warnings.length + notes.length + checks.length + remarks.length === 0)
    keepResolution(machine.dataDir, input, { modules, resources, ...besideOf(read) });
  return {
    modules,
    ...besideOf(read),
    resources,
    verify: checks,
    notes,
    warnings: warnings.map(({ module, path, message }) => {
      const place = read.find(({ name }) => name === module)?.locate?.(path) ?? { line: 1, column: 1 };
      return { module, path, message, ...place };
    }),
  };
}

/** Returns the versions of packages that the modules name; null if they name none. */
async function packagesOf(
  modules: readonly LocalModule[],
  machine: LocalSession['machine'],
): Promise<PackageVersions | null> {
  const names = new Set(modules.flatMap(({ compiled }) => factsRead(compiled).packages));
  return names.size === 0 ? null : machine.packageVersions([...names]);
}

function withPackages({ facts, ...agent }: AgentFacts, packages: PackageVersions): AgentFacts {
  return { ...agent, facts: { parts: { ...facts?.parts, packages }, own: facts?.own ?? {} } };
}

/** Returns the files beside the modules that have some; nothing if none has. */
function besideOf(modules: readonly LocalModule[]): Pick<KeptResolution, 'beside'> {
  const beside = modules.flatMap(({ path, files }) => (files === undefined ? [] : [[path, files] as const]));
  return beside.length === 0 ? {} : { beside: Object.fromEntries(beside) };
}

interface LocalRequest extends Omit<CompiledRequest, 'modules' | 'values'> {
  readonly texts: LocalTexts;
}

/** Resolves the modules. Parses kept ones again if a message needs places in them. */
async function resolveModules(read: readonly LocalModule[], { texts, ...request }: LocalRequest) {
  const { values, notes } = await givenValues(texts, read);
  const attempt = (modules: readonly LocalModule[]) => {
    const compiled = modules.map((module) => module.compiled);
    const { warnings, ...resolved } = resolveCompiled({ ...request, modules: compiled, values });
    return { ...resolved, notes, read: modules, warnings: [...warnings, ...compiled.flatMap(unconfirmed)] };
  };
  if (read.some(({ locate }) => locate === null)) {
    try {
      const found = attempt(read);
      if (found.warnings.length === 0) return found;
    } catch (error) {
      if (!isFault(error)) throw error;
    }
  }
  const parsed = await allParsed(read);
  return resolved(() => attempt(parsed));
}

/** Returns the values that are given. Loads the parser only if there are some. */
async function givenValues(texts: LocalTexts, modules: readonly LocalModule[]): Promise<LocalValues> {
  if (texts.files.length + texts.set.length === 0) return { values: NO_VALUES, notes: [] };
  const { localValues } = await import('./local-values.js');
  return localValues(
    texts,
    modules.map(({ compiled }) => compiled),
  );
}

/** Returns a warning for a module that asks for a confirmation, which no orchestrator can give here. */
const unconfirmed = ({ name, confirmSecs }: CompiledModule) =>
  confirmSecs === null
    ? []
    : [
        {
          module: name,
          path: '/confirm',
          message: 'a run with --local has no orchestrator to confirm it, so it is never undone',
        },
      ];

/** Hints for a missing tag or secret, which no orchestrator can supply here. */
const HINTS: Readonly<Partial<Record<FaultCode, string>>> = {
  expression_error:
    'change the expression or what it names; for a missing tag, give it with --tag KEY=VALUE or add a default, such as | default: "none"',
  secret_unavailable: 'give the secret with --secret-file NAME=FILE',
  input_missing: 'give it with --set MODULE:INPUT=VALUE or --values FILE, or give the input a default in the module',
  input_invalid: 'correct the value where it is given',
};

function resolved<T>(resolve: () => T): T {
  try {
    return resolve();
  } catch (error) {
    const hint = isFault(error) ? HINTS[error.code] : undefined;
    if (!isFault(error) || hint === undefined) throw error;
    const { code, message, errors, data } = error;
    throw new Fault(code, message, { hint, ...(errors ? { errors } : {}), ...(data ? { data } : {}), cause: error });
  }
}

/** Applies the removal guard. Without assignments each module counts as named in the request. Throws `removal_guard`. */
export function guardRemovals({ state, agent }: LocalSession, desired: LocalDesired, allowed: number | null): void {
  const named = new Set(desired.modules);
  const failed = new Set(desired.failures.map(resourceKey));
  const removed = desired.removed.filter((one) => !failed.has(resourceKey(one)));
  const reason = guardReason({
    removals: removed.map((one) => ({
      removes: removesSomething(one),
      adHoc: !named.has(one.module),
      emptied: false,
      byFacts: false,
    })),
    managed: state.applied.length,
    limit: MAX_UNASKED,
    allowed,
  });
  if (reason === null) return;
  const absent = new Set(desired.resources.filter(({ kind }) => isAbsence(kind)).map(resourceKey));
  const causeOf = (one: ResourceAddress): string => {
    if (!named.has(one.module)) return `module ${one.module} is not named`;
    return absent.has(resourceKey(one))
      ? `module ${one.module} declares that it is absent`
      : `module ${one.module} does not declare it now`;
  };
  throw removalGuardFault({
    reason,
    agent: agent.name ?? '',
    limit: MAX_UNASKED,
    removals: removed.filter(removesSomething).map(({ module, kind, identity }) => ({
      module,
      kind,
      identity,
      cause: causeOf({ module, kind, identity }),
      isLeftOut: !named.has(module),
    })),
    isLocal: true,
  });
}
