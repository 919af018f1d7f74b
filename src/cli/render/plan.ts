/** A run's resources as a reviewer's diff, by module, and the count line below. */
import type { ResourceResult, Summary } from '../../resources/result.js';
import { count } from '../format.js';
import { type Line, styled } from '../view.js';
import { isNoteworthy, resourceLines } from './resource.js';

export type RunKind = 'plan' | 'apply' | 'drift';

type Count = (number: number) => string;
type Action = Exclude<ResourceResult['action'], 'none' | 'reload'>;

/** A number of an action in words: before it (plan and drift), and after it. */
const WORDS: Readonly<Record<Action, readonly [pending: Count, changed: Count]>> = {
  create: [(n) => `${n} to create`, (n) => `${n} created`],
  update: [(n) => `${n} to update`, (n) => `${n} updated`],
  remove: [(n) => `${n} to remove`, (n) => `${n} removed`],
  release: [(n) => `${n} to release`, (n) => `${n} released`],
  run: [(n) => `${count(n, 'script')} to run`, (n) => `${count(n, 'script')} run`],
  restart: [
    (n) => `${count(n, 'service')} to restart or reload`,
    (n) => `${count(n, 'service')} restarted or reloaded`,
  ],
};

export interface PlanOptions {
  /** What is as it should be is shown too. */
  readonly verbose: boolean;
  /** What changes within a resource is shown. */
  readonly details: boolean;
}

export function planLines(resources: readonly ResourceResult[], { verbose, details }: PlanOptions): readonly Line[] {
  const modules = new Map<string, ResourceResult[]>();
  for (const resource of resources) {
    if (!verbose && !isNoteworthy(resource)) continue;
    const others = modules.get(resource.module);
    if (others === undefined) modules.set(resource.module, [resource]);
    else others.push(resource);
  }
  return [...modules].flatMap(([module, its]): readonly Line[] => [
    styled('accent', `  ${module}`),
    ...its.flatMap((resource) => resourceLines(resource, details)),
  ]);
}

export interface Counted {
  readonly resources: readonly ResourceResult[];
  readonly summary: Summary;
  readonly error: unknown;
}

/** `Plan: 2 to create, 1 to remove; 14 unchanged.`; nothing of a run that failed before it looked at a resource. */
export function countLines(kind: RunKind, { resources, summary, error }: Counted, isOver = true): readonly Line[] {
  const { unchanged, pending, changed, failed, skipped } = summary;
  if (error !== null && unchanged + pending + changed + failed + skipped === 0) return [];
  const changes = changeWords(resources);
  const rest = [
    ...(summary.failed > 0 ? [styled('bad', `${summary.failed} failed`)] : []),
    ...(summary.skipped > 0 ? [styled('warn', `${summary.skipped} skipped`)] : []),
    ...(summary.unchanged > 0 || changes.length === 0 ? [`${summary.unchanged} unchanged`] : []),
  ];
  const told = changes.length > 0 ? changes.join(', ') : isOver ? nothing(kind, summary) : 'nothing so far';
  return [
    [
      styled('strong', `${TITLES[kind]}: `),
      told,
      ...rest.flatMap((span, index) => [index === 0 ? '; ' : ', ', span]),
      '.',
    ],
  ];
}

const TITLES: Readonly<Record<RunKind, string>> = { plan: 'Plan', apply: 'Applied', drift: 'Drift' };

function nothing(kind: RunKind, { failed, skipped }: Summary): string {
  if (failed + skipped > 0) return 'nothing changed';
  if (kind === 'apply') return 'everything was as it should be';
  return kind === 'plan' ? 'nothing to do' : 'none';
}

function changeWords(resources: readonly ResourceResult[]): readonly string[] {
  const found: string[] = [];
  for (const [action, [pending, changed]] of Object.entries(WORDS)) {
    const of = resources.filter((resource) => (resource.action === 'reload' ? 'restart' : resource.action) === action);
    const before = of.filter(({ status }) => status === 'pending').length;
    const after = of.filter(({ status }) => status === 'changed').length;
    if (before > 0) found.push(pending(before));
    if (after > 0) found.push(changed(after));
  }
  return found;
}
