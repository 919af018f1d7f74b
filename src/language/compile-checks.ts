/** Compiles the health checks of a module, and realizes them for an agent. */
import * as Type from 'typebox';
import { mapped, type Steps } from '../kernel/steps.js';
import type { Span } from '../kernel/tainted.js';
import { type DesiredCheck, MAX_CHECKS_CHARACTERS, MAX_RUN_CHECKS } from '../resources/checks/check.js';
import {
  CHECK_KINDS,
  CHECK_SCHEMAS,
  CHECK_VALIDATORS,
  type CheckKind,
  checkPlatforms,
  checkProblems,
  derivedName,
} from '../resources/checks/check-kinds.js';
import { maskResource } from '../resources/tainted-body.js';
import { checkShape } from './check-shape.js';
import { type AgentLabels, clauseMatches } from './clause.js';
import { MistakeList } from './diagnostic.js';
import type { Environment } from './evaluate.js';
import { type CompiledBody, compileValue, fill } from './fill.js';
import type { FillProblem, SecretSource } from './filling.js';
import { locatedOf } from './located.js';
import { quoted } from './printable.js';
import type { ResolutionCode, ResolutionError } from './resolution-error.js';
import { type AttributeClause, CHECK_TIMEOUT, CHECK_WITHIN, type CheckEntry } from './schema.js';
import type { AgentWork } from './work.js';

/** A check of a module, compiled once for all agents. */
export interface CompiledCheck {
  readonly name: string | null;
  readonly when: AttributeClause | null;
  /** JSON pointer of the entry. */
  readonly path: string;
  readonly kind: CheckKind;
  readonly withinSecs: number;
  readonly timeoutSecs: number;
  /** An object with the kind as its only member. */
  readonly body: CompiledBody;
}

/** Schema of a check's kind and its body. */
const BODIES = Type.Object(CHECK_SCHEMAS);

/** Returns the compiled checks; entries without a kind, which validation refuses, are left out. */
export function compileChecks(entries: readonly CheckEntry[]): readonly CompiledCheck[] {
  return entries.flatMap((entry, index) => {
    const kind = CHECK_KINDS.find((name) => entry[name] !== undefined);
    if (kind === undefined) return [];
    const withinSecs = secondsOf(entry.within ?? '') ?? CHECK_WITHIN.standard;
    const timeoutSecs = secondsOf(entry.timeout ?? '') ?? Math.min(CHECK_TIMEOUT.standard, withinSecs);
    return [
      {
        name: entry.name ?? null,
        when: entry.when ?? null,
        path: `/verify/${index}`,
        kind,
        withinSecs,
        timeoutSecs,
        body: compileValue({ [kind]: entry[kind] }, BODIES),
      },
    ];
  });
}

/** Returns the seconds of a duration such as `30s` or `2m`; null for other texts. */
export function secondsOf(duration: string): number | null {
  const [, digits, unit] = /^(\d{1,4})([sm])$/.exec(duration) ?? [];
  return digits === undefined ? null : Number(digits) * (unit === 'm' ? 60 : 1);
}

interface CheckedModule {
  readonly name: string;
  readonly checks: readonly CompiledCheck[];
  readonly placeOf?: (pointer: string) => string;
}

interface ChecksContext extends Omit<Environment, 'each' | 'work'> {
  readonly secret: SecretSource;
  readonly room: { left: number };
  readonly workOfAgent: AgentWork;
  readonly errors: ResolutionError[];
}

/** Returns the checks of a module for an agent, and reports the errors of those that have one. Steps over one at a time. */
export function* realizeChecks(module: CheckedModule, context: ChecksContext): Steps<readonly DesiredCheck[]> {
  const names = new Set<string>();
  const checks = yield* mapped(module.checks, (check): readonly DesiredCheck[] => {
    if (check.when !== null && !clauseMatches(check.when, context.agent)) return [];
    const desired = realizeCheck(module, check, context);
    if (desired === null) return [];
    const name = unique(desired.name, names);
    names.add(name);
    return [{ ...desired, name }];
  });
  return checks.flat();
}

/** Appends a number to a name that an earlier check has. */
function unique(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  for (let number = 2; ; number += 1) {
    const candidate = `${name} (${number})`;
    if (!taken.has(candidate)) return candidate;
  }
}

function realizeCheck(module: CheckedModule, check: CompiledCheck, context: ChecksContext): DesiredCheck | null {
  const { kind, path, name, withinSecs: within_secs, timeoutSecs: timeout_secs } = check;
  const failed = (code: ResolutionCode, at: string, message: string): null => {
    context.errors.push({ code, module: module.name, path: at, message: `${placeOf(module, check)}: ${message}` });
    return null;
  };
  const problems: FillProblem[] = [];
  const taint = new Map<string, readonly Span[]>();
  const filled = fill(check.body.value, {
    ...context,
    each: null,
    work: context.workOfAgent.next(),
    problems,
    taint,
  });
  const value = isObject(filled) ? filled[kind] : undefined;
  if (problems.length === 0 && check.body.unsettled) checkFilled(kind, value, { problems, taint });
  for (const { code, path: at, message } of problems) failed(code, path + at, message);
  if (problems.length > 0) return null;
  const body = isObject(value) ? value : { name: value };
  const refusal = refusalOf(kind, body, context.agent);
  if (refusal !== null) return failed('module_not_supported', `${path}/${kind}`, refusal);
  const marks = Object.fromEntries([...taint].map(([at, spans]) => [pointerInBody(kind, at), [...spans]]));
  const desired: DesiredCheck = {
    module: module.name,
    name: name ?? '',
    kind,
    within_secs,
    timeout_secs,
    body,
    ...(taint.size > 0 && { taint: marks }),
  };
  return name === null ? { ...desired, name: derivedName(kind, maskResource(desired).body) } : desired;
}

/** Converts a pointer below the entry to one in the body of the desired check: a unit's body holds its `name`. */
const pointerInBody = (kind: CheckKind, pointer: string): string =>
  kind === 'unit' ? '/name' : pointer.slice(kind.length + 1);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

interface FilledContext {
  readonly problems: FillProblem[];
  readonly taint: ReadonlyMap<string, readonly Span[]>;
}

/** Validates a body after its expressions are filled in. Messages leave out values that contain a secret. */
function checkFilled(kind: CheckKind, value: unknown, { problems, taint }: FilledContext): void {
  const schema = CHECK_SCHEMAS[kind];
  const mistakes = new MistakeList();
  checkShape(schema, locatedOf(value), { mistakes, path: `/${kind}`, label: `"${kind}"`, expressions: false });
  const missed = mistakes.failed ? [] : [...CHECK_VALIDATORS[kind].problems(value), ...checkProblems(kind, value)];
  const found = [...mistakes.found, ...missed.map(({ path, message }) => ({ path: `/${kind}${path}`, message }))];
  for (const { path, message } of found) {
    const shown = taint.has(path)
      ? `the value of ${path.slice(1)} is wrong (it holds a secret and is not shown)`
      : message;
    problems.push({ code: 'expression_error', path, message: `with its expressions filled in, ${shown}` });
  }
}

/** Returns why the check can never pass on the agent, or null. */
function refusalOf(kind: CheckKind, body: Record<string, unknown>, { attributes }: AgentLabels): string | null {
  const { platform, init_system: init } = attributes;
  const platforms = checkPlatforms(kind, body);
  if (platforms !== null && platform !== undefined && !platforms.includes(platform)) {
    return `scripts of ${body.program} run on ${platforms.join(' and ')}, and the agent runs ${platform}; add a "when" with another platform`;
  }
  if (kind !== 'unit' || platform !== 'linux' || init === undefined || init === 'systemd') return null;
  return `a unit check needs systemd, and the agent has ${init}; use a script check, or add "when: {init_system: systemd}"`;
}

/** Formats a place as `module "web", check "page" (line 5)`. */
function placeOf(module: CheckedModule, { name, path }: CompiledCheck): string {
  const place = module.placeOf?.(path);
  if (name === null) return `module "${module.name}", check ${place ?? path}`;
  return `module "${module.name}", check ${quoted(name)}${place === undefined ? '' : ` (${place})`}`;
}

/** Returns an error when the checks of all modules are too many or too large for one run, or null. */
export function tooManyChecks(checks: readonly DesiredCheck[]): ResolutionError | null {
  const [first] = checks;
  if (first === undefined) return null;
  const error = (message: string): ResolutionError => ({
    code: 'module_conflict',
    module: first.module,
    path: '/verify',
    message,
  });
  if (checks.length > MAX_RUN_CHECKS) {
    return error(
      `the modules of the agent have ${checks.length} health checks, and at most ${MAX_RUN_CHECKS} are allowed`,
    );
  }
  const size = JSON.stringify(checks).length;
  if (size <= MAX_CHECKS_CHARACTERS) return null;
  return error(
    `the health checks of the agent's modules have ${size} characters, and at most ${MAX_CHECKS_CHARACTERS} are allowed; move long scripts into files`,
  );
}
