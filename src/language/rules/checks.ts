/** Rules on `verify`: each check has one kind with a valid body, and its times fit together. */
import { escapePointer } from '../../kernel/validator.js';
import { CHECK_KINDS, CHECK_SCHEMAS, type CheckKind, checkProblems } from '../../resources/checks/check-kinds.js';
import { checkShape } from '../check-shape.js';
import { secondsOf } from '../compile-checks.js';
import { MistakeList } from '../diagnostic.js';
import { hasExpression } from '../expression.js';
import { dataOf, type LocatedMap, member, placeAt, scalarAt } from '../located.js';
import type { Outline, RuleContext } from '../outline.js';
import { CHECK_TIMEOUT, CHECK_WITHIN } from '../schema.js';
import { checkClause } from './variants.js';

type OutlineCheck = Outline['checks'][number];

export function checkVerify({ outline, mistakes }: RuleContext): void {
  for (const check of outline.checks) {
    checkKind(check, mistakes);
    checkTimes(check, mistakes);
    checkClause(member(check.node, 'when'), `${check.path}/when`, mistakes);
  }
}

function checkKind({ node, path }: OutlineCheck, mistakes: MistakeList): void {
  const [first, second] = [...node.members.keys()].filter(isKind);
  if (first === undefined) {
    mistakes.error('check_missing', `a check needs one of ${CHECK_KINDS.join(', ')}`, path, node);
    return;
  }
  if (second !== undefined) {
    const message = `a check has exactly one kind, but this one has "${first}" and "${second}"; give each an entry of its own`;
    mistakes.error('check_ambiguous', message, `${path}/${second}`, node.members.get(second)?.key ?? node);
  }
  for (const kind of [first, second])
    if (kind !== undefined) checkBody(kind, node, { path: `${path}/${kind}`, mistakes });
}

const isKind = (name: string): name is CheckKind => CHECK_KINDS.some((kind) => kind === name);

interface BodyContext {
  readonly path: string;
  readonly mistakes: MistakeList;
}

function checkBody(kind: CheckKind, node: LocatedMap, { path, mistakes }: BodyContext): void {
  const body = member(node, kind);
  if (body === undefined) return;
  const found = new MistakeList();
  checkShape(CHECK_SCHEMAS[kind], body, {
    mistakes: found,
    path,
    label: `"${kind}"`,
    expressions: true,
    elsewhere: (key) => (BESIDE.has(key) ? `"${key}" belongs beside "${kind}", not below it` : null),
  });
  mistakes.addAll(found.found);
  if (found.failed) return;
  for (const { path: at, message } of checkProblems(kind, dataOf(body))) {
    const value = scalarAt(body, at)?.value;
    if (typeof value === 'string' && hasExpression(value)) continue;
    mistakes.error('invalid_value', message, path + at, placeAt(body, at));
  }
  if (kind === 'http')
    warnTwice(body.type === 'map' ? member(body, 'headers') : undefined, `${path}/headers`, mistakes);
}

/** Keys of an entry that may stand too deep by mistake; `name` and `timeout` mean nothing below a kind. */
const BESIDE: ReadonlySet<string> = new Set(['name', 'when', 'within', 'timeout']);

/** Reports headers that differ only in case, which are one header for the server. */
function warnTwice(headers: ReturnType<typeof member>, path: string, mistakes: MistakeList): void {
  if (headers?.type !== 'map') return;
  const seen = new Set<string>();
  for (const [name, { key }] of headers.members) {
    const folded = name.toLowerCase();
    if (seen.has(folded)) {
      mistakes.error('invalid_value', `the header "${name}" is given twice`, `${path}/${escapePointer(name)}`, key);
    }
    seen.add(folded);
  }
}

function checkTimes({ node, path }: OutlineCheck, mistakes: MistakeList): void {
  const within = secondsAt(node, 'within');
  const timeout = secondsAt(node, 'timeout');
  const report = (name: string, message: string) =>
    mistakes.error('invalid_value', message, `${path}/${name}`, member(node, name) ?? node);
  if (within !== null && within > CHECK_WITHIN.maximum) report('within', '"within" must be at most 15m');
  if (timeout !== null && timeout > CHECK_TIMEOUT.maximum) report('timeout', '"timeout" must be at most 2m');
  else if (timeout !== null && timeout > (within ?? CHECK_WITHIN.standard)) {
    const limit = within === null ? `"within", which is ${CHECK_WITHIN.standard}s by default` : '"within"';
    report('timeout', `"timeout" must not be longer than ${limit}; raise "within", or lower "timeout"`);
  }
}

/** Returns a valid duration in seconds, or null. */
function secondsAt(node: LocatedMap, name: string): number | null {
  const value = scalarAt(node, `/${name}`)?.value;
  return typeof value === 'string' ? secondsOf(value) : null;
}
