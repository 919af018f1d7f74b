/** What a person is told when a command has ended on several agents: those where it did not succeed, by what became of it. */
import { agentName, count } from '../format.js';
import { type Line, type Span, styled } from '../view.js';
import { type ExecResult, type ExecStanding, standingOfEnd, wordsOfEnd } from './exec-end.js';

/** More names than that are counted instead. */
const NAMED = 10;

const LOOKS: Readonly<Record<ExecStanding, readonly ['good' | 'bad' | 'warn', string]>> = {
  succeeded: ['good', 'succeeded'],
  failed: ['bad', 'failed'],
  unreachable: ['warn', 'offline'],
  skipped: ['warn', 'not started'],
};

export function summaryLines(results: readonly ExecResult[]): readonly Line[] {
  const groups = new Map<string, ExecResult[]>();
  for (const result of results) {
    if (standingOfEnd(result.end) === 'succeeded') continue;
    const isOffline = standingOfEnd(result.end) === 'unreachable';
    const words = isOffline ? 'offline' : withoutAgent(wordsOfEnd(result.end), result);
    groups.set(words, [...(groups.get(words) ?? []), result]);
  }
  return [...[...groups].map(([words, group]): Line => [styled('bad', words), `: ${namesOf(group)}`]), totals(results)];
}

/** `web-01, web-02 and 3 more (5 agents)`. */
export function namesOf(results: readonly Pick<ExecResult, 'agent'>[]): string {
  const names = results.map(({ agent }) => agentName(agent));
  if (names.length === 1) return names.join('');
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${names.slice(0, NAMED).join(', ')}${more} (${count(names.length, 'agent')})`;
}

function totals(results: readonly ExecResult[]): Line {
  const spans: Span[] = [];
  for (const standing of ['succeeded', 'failed', 'unreachable', 'skipped'] as const) {
    const number = results.filter(({ end }) => standingOfEnd(end) === standing).length;
    if (number === 0) continue;
    const [style, word] = LOOKS[standing];
    spans.push(...(spans.length === 0 ? [] : [', ']), styled(style, `${number} ${word}`));
  }
  return [styled('strong', `${count(results.length, 'agent')}: `), ...spans, '.'];
}

/** Two agents with the same trouble are one group, though it names each. */
export const withoutAgent = (text: string, { agent }: Pick<ExecResult, 'agent'>): string =>
  text.replaceAll(agent.node_id, '…').replaceAll(agent.name ?? agent.node_id, '…');
