/** How a sync is shown: what differs, like a reviewer's diff, and what is counted below it. */
import type { Agent } from '../../contract/agents.js';
import { matches, parseSelector } from '../../language/selector.js';
import { count } from '../format.js';
import { textDiff, textDiffLines } from '../render/text-diff.js';
import { type Line, linesOf, type Style, stackOf, styled, type View } from '../view.js';
import { assignmentDifferences, type Stored, type SyncAction, type SyncPlan } from './sync-plan.js';
import { pathOf } from './sync-run.js';

export interface SyncViewOptions {
  /** Without, it is only what would be done. */
  readonly isDone: boolean;
  /** What changes in the text of modules is shown too. */
  readonly verbose: boolean;
}

export function syncView(plan: SyncPlan, options: SyncViewOptions): View {
  const { actions, extra } = plan;
  const shown = [
    ...sectionLines(
      'modules',
      actions.filter(({ kind }) => kind === 'module'),
      options,
    ),
    ...sectionLines(
      'assignments',
      actions.filter(({ kind }) => kind === 'assignment'),
      options,
    ),
  ];
  return stackOf([
    ...(shown.length === 0 ? [] : [linesOf(shown)]),
    linesOf([...extraLines(extra), countLine(plan, options)]),
  ]);
}

function sectionLines(title: string, actions: readonly SyncAction[], { verbose }: SyncViewOptions): readonly Line[] {
  if (actions.length === 0) return [];
  return [styled('accent', title), ...actions.flatMap((action) => actionLines(action, verbose))];
}

const SIGNS: Readonly<Record<SyncAction['action'], readonly [sign: string, style: Style]>> = {
  create: ['+', 'good'],
  update: ['~', 'warn'],
  delete: ['-', 'bad'],
};

function actionLines(action: SyncAction, verbose: boolean): readonly Line[] {
  const [sign, style] = SIGNS[action.action];
  const path = pathOf(action);
  const head: Line = [
    styled(style, `  ${sign} ${action.name}`),
    ...(path === null ? [] : [styled('dim', `  (${path})`)]),
  ];
  return [head, ...detailLines(action, verbose)];
}

function detailLines(action: SyncAction, verbose: boolean): readonly Line[] {
  if (action.action === 'delete') return [];
  if (action.kind === 'module') {
    if (!verbose || action.stored === null) return [];
    const { name, file, stored } = action;
    const before = { label: `${name} revision ${stored.revision}`, text: stored.content };
    return textDiffLines(textDiff(before, { label: file.path, text: file.source })).map(indented);
  }
  const { file, stored } = action;
  if (stored === null)
    return fieldLines([
      ['selector', file.selector],
      ['modules', file.modules.join(' ')],
    ]);
  const differences = assignmentDifferences(file, stored);
  return fieldLines(differences.map(({ field, before, after }) => [field, `${before || '-'} -> ${after || '-'}`]));
}

const indented = (line: Line): Line => ['      ', ...(Array.isArray(line) ? line : [line])];

function fieldLines(rows: readonly (readonly [field: string, value: string])[]): readonly Line[] {
  const width = rows.reduce((most, [field]) => Math.max(most, field.length), 0);
  return rows.map(([field, value]) => [styled('dim', `      ${field.padEnd(width)}  `), value]);
}

function extraLines(extra: SyncPlan['extra']): readonly Line[] {
  if (extra.length === 0) return [];
  const names = extra.map(({ kind, name }) => `${kind} ${name}`).join(', ');
  return [styled('dim', `Only on the orchestrator, and left there without --prune: ${names}.`)];
}

function countLine({ actions, unchanged }: SyncPlan, { isDone }: SyncViewOptions): Line {
  const title = styled('strong', isDone ? 'Synced: ' : 'Plan: ');
  const words = (['create', 'update', 'delete'] as const).flatMap((action) => {
    const number = actions.filter((one) => one.action === action).length;
    return number === 0 ? [] : [isDone ? `${number} ${action}d` : `${number} to ${action}`];
  });
  return [title, words.length === 0 ? 'nothing to do' : words.join(', '), `; ${unchanged} unchanged.`];
}

/** Names everything that is to be deleted, so that nobody agrees to it unseen. */
export function pruneQuestion(
  actions: readonly SyncAction[],
  { assignments }: Stored,
  agents: readonly Agent[],
): string | null {
  const doomed = actions.filter(({ action }) => action === 'delete');
  if (doomed.length === 0) return null;
  const named = doomed.map(({ kind, name }) => {
    const assignment = kind === 'assignment' ? assignments.find((one) => one.name === name) : undefined;
    if (assignment === undefined) return `  - ${kind} ${name}`;
    const selector = parseSelector(assignment.selector);
    const matched = agents.filter((agent) => matches(selector, agent)).length;
    return `  - ${kind} ${name}, which matches ${count(matched, 'agent')} now`;
  });
  return `${['This deletes from the orchestrator:', ...named].join('\n')}\nSync, with ${count(doomed.length, 'deletion')}?`;
}
