/** The resources of a run as a reviewer's diff, by module, with a count line. */
import type { DriftResource } from '../../contract/runs.js';
import type { Output, ResourceResult, Summary } from '../../resources/result.js';
import { count } from '../format.js';
import { type Line, type Span, type Style, styled, textLines } from '../outcome.js';
import { driftRemarks } from './drift-remarks.js';
import { plainText, spansOf } from './paint.js';

export type RunKind = 'plan' | 'apply' | 'drift';

type Count = (number: number) => string;
type Action = Exclude<ResourceResult['action'], 'none' | 'reload'>;

/** Counts of each action in words: pending (plan and drift) and done. */
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

interface PlanOptions {
  /** True to show unchanged resources too. */
  readonly verbose: boolean;
  /** True to show the changes within each resource. */
  readonly details: boolean;
}

/** A result, with what a drift check adds to it. */
type ShownResource = ResourceResult & Pick<DriftResource, 'excuse' | 'changed_at' | 'likely_causes'>;

export function planLines(resources: readonly ShownResource[], { verbose, details }: PlanOptions): readonly Line[] {
  const modules = new Map<string, ShownResource[]>();
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

interface Counted {
  readonly resources: readonly ShownResource[];
  readonly summary: Summary;
  readonly error: unknown;
}

/** Renders `Plan: 2 to create, 1 to remove; 14 unchanged.`. Returns nothing for a run that failed before its first resource. */
export function countLines(kind: RunKind, { resources, summary, error }: Counted, isComplete = true): readonly Line[] {
  const { unchanged, pending, changed, failed, skipped } = summary;
  if (error !== null && unchanged + pending + changed + failed + skipped === 0) return [];
  const changes = changeWords(resources.filter(({ excuse }) => excuse == null));
  const excused = (wanted: string) => resources.filter(({ excuse }) => excuse?.kind === wanted).length;
  const rest = [
    ...(excused('snoozed') > 0 ? [styled('accent', `${excused('snoozed')} snoozed`)] : []),
    ...(excused('accepted') > 0 ? [styled('accent', `${excused('accepted')} accepted`)] : []),
    ...(summary.failed > 0 ? [styled('bad', `${summary.failed} failed`)] : []),
    ...(summary.skipped > 0 ? [styled('warn', `${summary.skipped} skipped`)] : []),
    ...(summary.unchanged > 0 || changes.length === 0 ? [`${summary.unchanged} unchanged`] : []),
  ];
  const counts = changes.length > 0 ? changes.join(', ') : isComplete ? nothing(kind, summary) : 'nothing so far';
  return [
    [
      styled('strong', `${TITLES[kind]}: `),
      counts,
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

function changeWords(resources: readonly ShownResource[]): readonly string[] {
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

interface Sign {
  readonly sign: string;
  readonly style: Style;
}

const SIGNS: Readonly<Record<ResourceResult['action'], Sign>> = {
  none: { sign: ' ', style: 'dim' },
  create: { sign: '+', style: 'good' },
  update: { sign: '~', style: 'warn' },
  remove: { sign: '-', style: 'bad' },
  release: { sign: '=', style: 'accent' },
  run: { sign: '!', style: 'warn' },
  restart: { sign: '>', style: 'accent' },
  reload: { sign: '>', style: 'accent' },
};

/** Returns whether a resource is shown without `--verbose`. */
export const isNoteworthy = ({ status }: Pick<ResourceResult, 'status'>): boolean => status !== 'unchanged';

/** Names a resource: `file-unix /etc/motd`. */
export const resourceName = ({ kind, identity }: Pick<ResourceResult, 'kind' | 'identity'>): string =>
  `${kind} ${identity}`;

/** Indentation of the changes in a resource. */
const BODY = '        ';

/** Renders a resource below its module; with `details` also its changes. */
function resourceLines(resource: ShownResource, details: boolean): readonly Line[] {
  const { sign, style } = SIGNS[resource.action];
  const head: Span[] = [styled(style, `    ${sign} ${resourceName(resource)}`), ...outcomeSpans(resource)];
  if (resource.reason !== null) head.push(styled('dim', `  (${resource.reason})`));
  const error: readonly Line[] =
    resource.error === null
      ? []
      : textLines(resource.error.message).map((line) => styled('bad', `${BODY}${plainText(line)}`));
  const remarks = driftRemarks(resource).map((line): Line => [BODY, ...spansOf(line)]);
  const changes = details ? [...changeLines(resource), ...diffLines(resource)] : [];
  return [head, ...error, ...remarks, ...changes];
}

/** Renders the trigger and the result of a resource. */
function outcomeSpans({ action, status }: ResourceResult): readonly Span[] {
  const trigger = action === 'restart' || action === 'reload' ? [styled('dim', ` ${action}`)] : [];
  if (status === 'failed') return [...trigger, styled('bad', ' failed')];
  return status === 'skipped' ? [...trigger, styled('warn', ' skipped')] : trigger;
}

function changeLines({ changes, diff, action }: ResourceResult): readonly Line[] {
  const shown = diff === null ? changes : changes.filter(({ field }) => field !== 'content');
  const width = shown.reduce((most, { field }) => Math.max(most, field.length), 0);
  return shown.map(({ field, before, after }): Line => {
    const label = styled('dim', `${BODY}${field.padEnd(width)}  `);
    if (action === 'create' && before === null) return [label, after ?? 'none'];
    return [label, styled('bad', before ?? 'none'), styled('dim', ' -> '), styled('good', after ?? 'none')];
  });
}

function diffLines({ diff }: ResourceResult): readonly Line[] {
  return textLines(diff ?? '').map((line) => {
    const text = plainText(line);
    return diffLine(BODY + text, text);
  });
}

/** Colours a line of a unified diff; `shown` is the line as displayed. */
export function diffLine(shown: string, text: string): Line {
  if (text.startsWith('---') || text.startsWith('+++')) return styled('dim', shown);
  if (text.startsWith('@@')) return styled('accent', shown);
  if (text.startsWith('+')) return styled('good', shown);
  return text.startsWith('-') ? styled('bad', shown) : shown;
}

/** Renders the output of a script. */
export function outputLines({ stdout, stderr, exit_code: status, truncated }: Output): readonly Line[] {
  return [
    ...textLines(stdout),
    ...textLines(stderr).map((line): Line => [styled('warn', 'stderr| '), ...spansOf(line)]),
    ...(truncated ? [styled('warn', '(cut: the beginning and the end are kept)')] : []),
    styled(status === 0 ? 'dim' : 'bad', status === null ? 'it did not end by itself' : `exit status ${status}`),
  ];
}
