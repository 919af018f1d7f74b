/** One resource of a plan, an apply or a drift check, as a reviewer reads it. */
import type { ResourceResult } from '../../resources/result.js';
import { type Line, type Span, type Style, styled, textLines } from '../view.js';
import { plainText } from './paint.js';

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

/** Whether there is something to tell of a resource without `--verbose`. */
export const isNoteworthy = ({ status }: ResourceResult): boolean => status !== 'unchanged';

/** `file /etc/motd`; a script goes by its identity. */
export const resourceName = ({ kind, identity }: Pick<ResourceResult, 'kind' | 'identity'>): string =>
  `${kind} ${identity}`;

/** Stands before what changes in a resource. */
const BODY = '        ';

/** The resource, with `details` also what changes in it, indented below its module. */
export function resourceLines(resource: ResourceResult, details: boolean): readonly Line[] {
  const { sign, style } = SIGNS[resource.action];
  const head: Span[] = [styled(style, `    ${sign} ${resourceName(resource)}`), ...outcomeSpans(resource)];
  if (resource.reason !== null) head.push(styled('dim', `  (${resource.reason})`));
  const error: readonly Line[] =
    resource.error === null
      ? []
      : textLines(resource.error.message).map((line) => styled('bad', `${BODY}${plainText(line)}`));
  return details ? [head, ...error, ...changeLines(resource), ...diffLines(resource)] : [head, ...error];
}

/** What the action alone does not tell: which trigger, and how it ended. */
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

/** One line of a unified diff in its colour; `shown` may stand further in. */
export function diffLine(shown: string, text: string): Line {
  if (text.startsWith('---') || text.startsWith('+++')) return styled('dim', shown);
  if (text.startsWith('@@')) return styled('accent', shown);
  if (text.startsWith('+')) return styled('good', shown);
  return text.startsWith('-') ? styled('bad', shown) : shown;
}
