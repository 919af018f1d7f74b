/** Realizes one resource of a module for one agent: chooses the variant, fills the body, computes the identity. */
import type { Steps } from '../kernel/steps.js';
import { maskOf, type Span } from '../kernel/tainted.js';
import type { Problem } from '../kernel/validator.js';
import type { Body } from '../resources/kind.js';
import { checkShape } from './check-shape.js';
import { type AgentLabels, clauseMatches } from './clause.js';
import type { CompiledModule, CompiledOption, CompiledResource } from './compile-module.js';
import { MistakeList } from './diagnostic.js';
import type { Element, Environment } from './evaluate.js';
import type { Instance } from './expand.js';
import { fill, fillBody } from './fill.js';
import type { FillContext, SecretSource } from './filling.js';
import type { KnownKind } from './kind-set.js';
import { locatedOf } from './located.js';
import { quoted } from './printable.js';
import type { ResolutionCode, ResolutionError } from './resolution-error.js';
import type { CompiledTemplate } from './templates/template.js';
import { type AgentWork, Work } from './work.js';

/** A resource realized for an agent, before modules are merged. */
export interface Realized extends Instance {
  readonly module: CompiledModule;
  /** Id and label, which name the element of a loop: `site[shop]` and `The site [shop]`. */
  readonly id: string | null;
  readonly name: string | null;
  readonly option: CompiledOption;
  readonly body: Body;
  readonly taint: ReadonlyMap<string, readonly Span[]>;
  readonly identity: string;
}

interface RealizeContext extends Omit<Environment, 'each' | 'work'> {
  readonly secret: SecretSource;
  readonly room: { left: number };
  readonly workOfAgent: AgentWork;
  readonly preRendered: Map<CompiledTemplate, CompiledTemplate>;
  readonly errors: ResolutionError[];
}

const UNTAINTED: ReadonlyMap<string, readonly Span[]> = new Map();

/** Returns an instance of a resource for the agent, in steps. Returns null and reports the error when it has one. */
export function* realize(module: CompiledModule, instance: Instance, context: RealizeContext): Steps<Realized | null> {
  const { agent, inputs, shared, secret, room, errors } = context;
  const { resource, each, loop } = instance;
  const id = withKey(resource.id, each, '');
  const name = withKey(resource.name, each, ' ');
  const failed = (code: ResolutionCode, path: string, message: string): null => {
    const place = placeOf(module, { id, name, path: resource.path });
    errors.push({ code, module: module.name, path, message: `${place}: ${message}` });
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
  // Objects are written out here, because spreading them took most of the time of a resolution.
  const work = context.workOfAgent.next();
  const preRendered = each === null ? undefined : context.preRendered;
  const [problems, taint]: [FillContext['problems'], FillContext['taint']] = [[], new Map()];
  const filling: FillContext = { agent, each, inputs, shared, work, secret, room, problems, taint, preRendered };
  const body = bodyOf(
    option.body.rendersTemplate ? yield* fillBody(option.body, filling) : fill(option.body.value, filling),
  );
  if (problems.length === 0 && option.body.unsettled) checkFilled(option, body, filling);
  const identity = problems.length === 0 ? option.kind.kind.identity(body, id) : '';
  if (problems.length === 0 && (identity === '' || taint.size > 0))
    yield* checkIdentity(identity, { option, id, filling });
  if (problems.length > 0) {
    for (const { code, path, message } of problems) failed(code, option.path + path, message);
    return null;
  }
  const marks = taint.size === 0 ? UNTAINTED : taint;
  return { resource, each, loop, module, id, name, option, body, taint: marks, identity };
}

const withKey = (label: string | null, each: Element | null, space: string): string | null =>
  label === null || each === null ? label : `${label}${space}[${each.key}]`;

/** Formats a place as `module "web", resource "conf" (line 5)`, or with the pointer when label or line are unknown. */
export function placeOf(
  module: CompiledModule,
  { id, name, path }: Pick<CompiledResource, 'id' | 'name' | 'path'>,
): string {
  const label = id ?? name;
  const place = module.placeOf?.(path);
  if (label === null) return `module "${module.name}", ${place ?? path}`;
  return `module "${module.name}", resource ${quoted(label)}${place === undefined ? '' : ` (${place})`}`;
}

/** Formats the place of a realized resource. */
export const placeOfRealized = ({ module, id, name, resource }: Realized): string =>
  placeOf(module, { id, name, path: resource.path });

/** Validates a body after its expressions are filled in. Messages leave out values that contain a secret. */
function checkFilled(
  { kind }: CompiledOption,
  body: Body,
  { problems, taint }: Pick<FillContext, 'problems' | 'taint'>,
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

interface IdentityToCheck {
  readonly option: CompiledOption;
  readonly id: string | null;
  readonly filling: FillContext;
}

/** Refuses an identity that contains a secret, because identities are shown everywhere. It must stay the same when masked. */
function* checkIdentity(identity: string, { option, id, filling }: IdentityToCheck): Steps<void> {
  const report = (message: string) => filling.problems.push({ code: 'expression_error', path: '', message });
  if (identity === '') report('with its expressions filled in, nothing tells the resource apart');
  if (filling.taint.size === 0) return;
  const secret: SecretSource = (name) => ({ value: maskOf({ secret: name, tag: '' }), tag: '' });
  const room = { left: Number.POSITIVE_INFINITY };
  const masked = bodyOf(
    yield* fillBody(option.body, { ...filling, secret, problems: [], taint: new Map(), room, work: new Work() }),
  );
  if (option.kind.kind.identity(masked, id) !== identity)
    report('a secret must not be part of the identity of a resource');
}

function bodyOf(value: unknown): Body {
  return isBody(value) ? value : {};
}

const isBody = (value: unknown): value is Body => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The variant of a resource that an agent gets. */
type OptionChoice =
  | { readonly result: 'chosen'; readonly option: CompiledOption }
  | { readonly result: 'missing' }
  /** `tied` holds the positions of the first two matches with the same number of keys. */
  | { readonly result: 'ambiguous'; readonly tied: readonly [number, number]; readonly keys: number };

/** Chooses the matching option with the most keys. */
function chooseOption(options: readonly CompiledOption[], agent: AgentLabels): OptionChoice {
  let best: CompiledOption | null = null;
  let bestAt = -1;
  let tiedAt = -1;
  for (let at = 0; at < options.length; at += 1) {
    const option = options[at];
    if (option === undefined || (best !== null && option.keys < best.keys)) continue;
    if (option.when !== null && !clauseMatches(option.when, agent)) continue;
    if (best === null || option.keys > best.keys) {
      best = option;
      bestAt = at;
      tiedAt = -1;
    } else if (tiedAt === -1) {
      tiedAt = at;
    }
  }
  if (best === null) return { result: 'missing' };
  if (tiedAt !== -1) return { result: 'ambiguous', tied: [bestAt, tiedAt], keys: best.keys };
  return { result: 'chosen', option: best };
}
