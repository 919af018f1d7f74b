/** Rules on conditions and loops: they can be read, fit the types of their values, and stay within the limits. */
import { escapePointer } from '../../kernel/validator.js';
import { type Scope, typeProblem } from '../expression-types.js';
import { dataOf, type LocatedMap, member, placeAt, scalarAt } from '../located.js';
import { readLoop } from '../loop.js';
import { otherNameIn } from '../other-names.js';
import type { RuleContext } from '../outline.js';
import { parseCondition } from '../parse-condition.js';
import { MAX_RESOURCES } from '../schema.js';

export function checkRepetitions(context: RuleContext): void {
  const { outline } = context;
  const counts = new Map(outline.groups.map((group) => [group, checkLoop(group.node, group.path, context)]));
  for (const { node, path, scope } of outline.groups) checkCondition(node, path, scope, context);
  checkLabels(context);
  let total = 0;
  for (const { node, path, group, scope } of outline.entries) {
    checkCondition(node, path, scope, context);
    const around = (group && counts.get(group)) ?? 1;
    const loop = node.members.get('for_each');
    if (loop !== undefined && group?.node.members.has('for_each')) {
      const message =
        'a loop inside a loop is not possible; make one list of what both give, or join the inner one in a text';
      context.mistakes.error('loop_invalid', message, `${path}/for_each`, loop.key);
    } else total += around * checkLoop(node, path, context);
    if (total <= Math.max(MAX_RESOURCES, outline.entries.length)) continue;
    const message = `the loops up to here make ${total} resources, and at most ${MAX_RESOURCES} are allowed`;
    context.mistakes.error('loop_invalid', message, path, loop?.key ?? node);
    return;
  }
}

/** Maximum characters of ids and labels in loops, to which the key of the element is added. */
const MAX_LABELS = { id: 120, name: 890 } as const;

function checkLabels({ outline, mistakes }: RuleContext): void {
  for (const { node, path, loop } of outline.entries) {
    if (loop === null) continue;
    for (const name of ['id', 'name'] as const) {
      const label = scalarAt(node, `/${name}`);
      if (typeof label?.value !== 'string' || label.value.length <= MAX_LABELS[name]) continue;
      const message = `"${name}" of a resource in a loop must have at most ${MAX_LABELS[name]} characters`;
      mistakes.error('loop_invalid', message, `${path}/${name}`, label);
    }
  }
}

/** Checks a loop. Returns the number of its elements; 1 for one whose elements only an agent has. */
function checkLoop(node: LocatedMap, path: string, { outline, mistakes }: RuleContext): number {
  const source = member(node, 'for_each');
  const key = node.members.get('key');
  const field = scalarAt(node, '/key')?.value;
  if (source === undefined) {
    if (key !== undefined)
      mistakes.error('loop_invalid', '"key" belongs to "for_each", which is missing', `${path}/key`, key.key);
    return 1;
  }
  const read = readLoop(dataOf(source), typeof field === 'string' ? field : null, outline.scope);
  if ('message' in read) {
    const pointer = read.path.map((part) => `/${escapePointer(part)}`).join('');
    mistakes.error('loop_invalid', read.message, `${path}/for_each${pointer}`, placeAt(source, pointer));
    return 1;
  }
  return 'reference' in read.loop.source ? 1 : read.loop.source.length;
}

function checkCondition(node: LocatedMap, path: string, scope: Scope, { mistakes }: RuleContext): void {
  const condition = scalarAt(node, '/if');
  if (typeof condition?.value !== 'string' || condition.value === '') return;
  const parsed = parseCondition(condition.value);
  const problem = typeof parsed === 'string' ? parsed : typeProblem(parsed, scope);
  if (problem !== null) mistakes.error('condition_invalid', problem, `${path}/if`, condition);
  const other = typeof parsed === 'string' || problem !== null ? null : otherNameIn(parsed);
  if (other !== null) mistakes.warning('clause_unmatchable', other, `${path}/if`, condition);
}
