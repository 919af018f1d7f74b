/** The impact of a change for people, and as Markdown for a review. */
import { count } from '../format.js';
import { plainText } from '../render/paint.js';
import { textDiffLines } from '../render/text-diff.js';
import { type Line, lines, linesOf, stackOf, styled, type View } from '../view.js';
import type { DesiredChange } from './compare-desired.js';
import type { AgentImpact } from './impact.js';

/** Agents for which the change is the same. */
interface Group {
  readonly names: readonly string[];
  readonly impact: AgentImpact;
}

const SIGNS = { added: ['+', 'good'], changed: ['~', 'warn'], removed: ['-', 'bad'] } as const;

export function impactView(impacts: readonly AgentImpact[]): View {
  const parts = groupsOf(impacts).map(({ names, impact }) =>
    linesOf([
      styled('strong', namesOf(names)),
      ...(impact.error ? [] : impact.changes.flatMap(changeLines)),
      ...errorLine(impact),
    ]),
  );
  return stackOf([...parts, lines(totals(impacts))]);
}

function changeLines({ change, kind, identity, fields, diff }: DesiredChange): readonly Line[] {
  const [sign, style] = SIGNS[change];
  const what = fields.length === 0 ? '' : `  ${fields.join(', ')}`;
  const body = textDiffLines(diff).map((line): Line => ['      ', ...(Array.isArray(line) ? line : [line])]);
  return [[styled(style, `  ${sign} ${kind} ${identity}`), styled('dim', what)], ...body];
}

const errorLine = ({ error }: AgentImpact): readonly Line[] =>
  error === null ? [] : [[styled('bad', '  error: '), error.message]];

/** Agents whose change is empty are only counted. */
function groupsOf(impacts: readonly AgentImpact[]): readonly Group[] {
  const groups = new Map<string, AgentImpact[]>();
  for (const impact of impacts) {
    if (impact.error === null && impact.changes.length === 0) continue;
    const key = JSON.stringify([impact.changes, impact.error?.code]);
    groups.set(key, [...(groups.get(key) ?? []), impact]);
  }
  return [...groups.values()].flatMap(([impact, ...others]) =>
    impact === undefined ? [] : [{ impact, names: [impact, ...others].map(({ name }) => name) }],
  );
}

/** More names than that are counted instead. */
const NAMED = 10;

function namesOf(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${names.slice(0, NAMED).join(', ')}${more}`;
}

function totals(impacts: readonly AgentImpact[]): string {
  const failed = impacts.filter(({ error }) => error !== null).length;
  const changing = impacts.filter(({ changes }) => changes.length > 0).length;
  const same = impacts.length - failed - changing;
  const all = [
    `${changing} to change`,
    ...(same > 0 ? [`${same} the same`] : []),
    ...(failed > 0 ? [`${failed} refused`] : []),
  ];
  return impacts.length === 0 ? 'No agent has these modules.' : `${count(impacts.length, 'agent')}: ${all.join(', ')}.`;
}

/** A comment for a review. */
export function impactMarkdown(impacts: readonly AgentImpact[]): readonly string[] {
  const sections = groupsOf(impacts).flatMap(({ names, impact }) => [
    '',
    `### ${plainMarkdown(namesOf(names))}`,
    '',
    ...(impact.error === null
      ? impact.changes.flatMap(markdownChange)
      : [`**Refused:** ${plainMarkdown(impact.error.message)}`]),
  ]);
  return ['## Impact on the fleet', '', plainMarkdown(totals(impacts)), ...sections];
}

function markdownChange({ change, kind, identity, fields, diff }: DesiredChange): readonly string[] {
  const what = fields.length === 0 ? '' : ` (${fields.join(', ')})`;
  const head = `- **${change}** ${plainMarkdown(`${kind} ${identity}${what}`)}`;
  if (diff === '') return [head];
  const body = diff
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => `  ${plainText(line)}`);
  const fence = fenceFor(diff);
  return [head, `  ${fence}diff`, ...body, `  ${fence}`];
}

/** Longer than any run of backticks inside. */
const fenceFor = (text: string): string =>
  '`'.repeat([...text.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length + 1), 3));

/** Text from modules stands as it is, without meaning to Markdown. */
const plainMarkdown = (text: string): string => text.replace(/[\\`*_[\]<>#|!]/g, '\\$&').replaceAll('\n', ' ');
