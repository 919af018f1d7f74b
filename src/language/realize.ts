/** What one resource of a module becomes on one agent: its variant, its body filled in, its identity. */
import { maskOf, type Span } from '../kernel/tainted.js';
import type { Problem } from '../kernel/validator.js';
import type { Body } from '../resources/kind.js';
import { checkShape } from './check-shape.js';
import { chooseOption } from './choose-option.js';
import type { CompiledModule, CompiledOption, CompiledResource } from './compile-module.js';
import { type AgentFacts, type Filling, type FillProblem, fill, type SecretSource } from './fill.js';
import type { KnownKind } from './kind-set.js';
import { locatedOf } from './located.js';
import { MistakeList } from './mistake.js';
import { quoted } from './printable.js';
import type { ResolutionCode, ResolutionError } from './resolution-error.js';

/** A resource that is settled for the agent, before modules are merged. */
export interface Realized {
  readonly module: CompiledModule;
  readonly resource: CompiledResource;
  readonly option: CompiledOption;
  readonly body: Body;
  readonly taint: ReadonlyMap<string, readonly Span[]>;
  readonly identity: string;
}

export interface RealizeContext {
  readonly agent: AgentFacts;
  readonly secret: SecretSource;
  readonly room: { left: number };
  readonly errors: ResolutionError[];
}

const UNTAINTED: ReadonlyMap<string, readonly Span[]> = new Map();

/** The resource for the agent; null when it has an error, which is reported. */
export function realize(module: CompiledModule, resource: CompiledResource, context: RealizeContext): Realized | null {
  const { agent, errors } = context;
  const failed = (code: ResolutionCode, path: string, message: string): null => {
    errors.push({ code, module: module.name, path, message: `${placeOf(module, resource)}: ${message}` });
    return null;
  };
  const choice = chooseOption(resource.options, agent);
  if (choice.result === 'missing') {
    return failed('variant_missing', `${resource.path}/variants`, `no variant matches agent "${agent.name}"`);
  }
  if (choice.result === 'ambiguous') {
    const [first, second] = choice.tied;
    const message = `variants ${first + 1} and ${second + 1} both match agent "${agent.name}" with ${choice.keys === 1 ? 'one key' : `${choice.keys} keys`}`;
    return failed('variant_ambiguous', `${resource.path}/variants/${second}`, message);
  }
  const { option } = choice;
  const problems: FillProblem[] = [];
  const taint = new Map<string, readonly Span[]>();
  const body = bodyOf(fill(option.body.value, { ...context, problems, taint }));
  if (problems.length === 0 && option.body.unsettled) checkFilled(option, body, { problems, taint });
  const identity = problems.length === 0 ? option.kind.kind.identity(body, resource.id) : '';
  if (problems.length === 0) checkIdentity(identity, { option, id: resource.id, problems, taint, agent });
  for (const { code, path, message } of problems) failed(code, option.path + path, message);
  if (problems.length > 0) return null;
  return { module, resource, option, body, taint: taint.size === 0 ? UNTAINTED : taint, identity };
}

/** `module "web", resource "conf" (line 5)`, as far as it has a label and its place is known; else its pointer. */
export function placeOf(module: CompiledModule, { id, name, path }: CompiledResource): string {
  const label = id ?? name;
  const place = module.placeOf?.(path);
  if (label === null) return `module "${module.name}", ${place ?? path}`;
  return `module "${module.name}", resource ${quoted(label)}${place === undefined ? '' : ` (${place})`}`;
}

/** What validation could not see before the expressions were filled in. Values that hold a secret stay out of messages. */
function checkFilled(
  { kind }: CompiledOption,
  body: Body,
  { problems, taint }: Pick<Filling, 'problems' | 'taint'>,
): void {
  for (const { path, message } of problemsOf(kind, body)) {
    const shown = taint.has(path)
      ? `the value of ${path.slice(1)} is wrong (it holds a secret and is not shown)`
      : message;
    problems.push({ code: 'expression_error', path, message: `with its expressions filled in, ${shown}` });
  }
}

function problemsOf({ kind, resolved }: KnownKind, body: Body): readonly Problem[] {
  if (resolved.check(body)) return kind.check(body);
  const mistakes = new MistakeList();
  checkShape(kind.schema, locatedOf(body), { mistakes, path: '', label: `"${kind.kind}"`, expressions: false });
  return mistakes.failed ? mistakes.found : resolved.problems(body);
}

interface IdentityToCheck extends Pick<Filling, 'problems' | 'taint' | 'agent'> {
  readonly option: CompiledOption;
  readonly id: string | null;
}

/** Identities are shown everywhere, so that no secret may be in one: it is the same with every secret masked. */
function checkIdentity(identity: string, { option, id, problems, taint, agent }: IdentityToCheck): void {
  const report = (message: string) => problems.push({ code: 'expression_error', path: '', message });
  if (identity === '') report('with its expressions filled in, nothing tells the resource apart');
  if (taint.size === 0) return;
  const mask: SecretSource = (secret) => ({ value: maskOf({ secret, tag: '' }), tag: '' });
  const room = { left: Number.POSITIVE_INFINITY };
  const masked = bodyOf(fill(option.body.value, { agent, secret: mask, problems: [], taint: new Map(), room }));
  if (option.kind.kind.identity(masked, id) !== identity)
    report('a secret may not be part of what a resource is told apart by');
}

function bodyOf(value: unknown): Body {
  return isBody(value) ? value : {};
}

const isBody = (value: unknown): value is Body => typeof value === 'object' && value !== null && !Array.isArray(value);
