/** `orch facts`: what an agent reports about its machine, under the names that modules use. */
import type { AgentFactsAnswer } from '../../contract/agents.js';
import { defineCommand } from '../define-command.js';
import { formatTime } from '../format.js';
import { nodeArgument, resolveNode } from '../nodes/resolve-node.js';
import { flag } from '../options.js';
import { type Column, type Line, proseOf, type Span, stack, styled, type View } from '../outcome.js';

const FACT_COLUMNS: readonly Column[] = [{ title: 'NAME', whole: true }, { title: 'VALUE' }];

export const showFacts = defineCommand({
  examples: ['orch facts web-01', 'orch facts web-01 --refresh', 'orch facts web-01 -o json'],
  detail: [
    'Modules name facts of the system attributes.NAME, and facts of your own, from JSON files and programs in the',
    "agent's directory facts.d, facts.NAME. Facts that change by themselves, such as the free space, are as of the",
    'last report, and no expression can use them. A fact of your own that fails keeps its last value and is marked',
    'stale.',
  ],
  access: 'viewer',
  columns: FACT_COLUMNS,
  args: { node: nodeArgument },
  options: {
    refresh: flag('have the agent read its facts again, and run the programs that give them; needs the role operator'),
  },
  run: async (context, { node, refresh }) => {
    const { signal } = context;
    const api = await context.api();
    const { node_id } = await resolveNode(api, node, { signal });
    const call = refresh ? 'refreshAgentFacts' : 'getAgentFacts';
    const facts = await api.call(call, { params: { node_id }, signal });
    const rows = rowsOf(facts);
    return { body: facts, names: rows.map(({ name }) => name), view: viewOf(facts, rows) };
  },
});

interface FactRow {
  readonly name: string;
  readonly value: string;
  readonly style?: 'dim' | 'warn';
}

/** Returns a row for each value, lists of texts in one. */
function rowsOf({ attributes, volatile, facts }: AgentFactsAnswer): readonly FactRow[] {
  return [
    ...Object.entries(attributes).flatMap(([name, value]) => valueRows(`attributes.${name}`, value)),
    ...Object.entries(facts).flatMap(([name, { value, error }]) => {
      const stale = error === null ? {} : { style: 'warn' as const };
      if (value === undefined) return [{ name: `facts.${name}`, value: '(no value)', ...stale }];
      return valueRows(`facts.${name}`, value).map((row) => ({ ...row, ...stale }));
    }),
    ...Object.entries(volatile).flatMap(([name, value]) => {
      const shown = name === 'boot_time' && typeof value === 'number' ? formatTime(value) : value;
      return valueRows(name, shown).map((row) => ({ ...row, style: 'dim' as const }));
    }),
  ];
}

function valueRows(name: string, value: unknown): readonly FactRow[] {
  if (typeof value !== 'object' || value === null) return [{ name, value: String(value) }];
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item !== 'object')) return [{ name, value: value.join(', ') || '(empty)' }];
    return value.flatMap((item, index) => {
      const { label, rest } = labelled(item, index);
      return valueRows(`${name}[${label}]`, rest);
    });
  }
  const members = Object.entries(value);
  if (members.length === 0) return [{ name, value: '(empty)' }];
  return members.flatMap(([key, member]) =>
    valueRows(/^[\w-]+$/.test(key) ? `${name}.${key}` : `${name}[${key}]`, member),
  );
}

/** Returns the path of a mount, which tells it apart better than its place in the list, and what else there is. */
function labelled(item: unknown, index: number): { readonly label: string; readonly rest: unknown } {
  if (typeof item !== 'object' || item === null || !('path' in item)) return { label: String(index), rest: item };
  const { path, ...rest } = item;
  return Object.keys(rest).length === 0 ? { label: String(index), rest: item } : { label: String(path), rest };
}

function viewOf(facts: AgentFactsAnswer, rows: readonly FactRow[]): View {
  const problems = problemLines(facts);
  const table: View = {
    kind: 'table',
    columns: FACT_COLUMNS,
    rows: rows.map(({ name, value, style }): readonly Span[] => [
      name,
      style === undefined ? value : styled(style, value),
    ]),
    empty: 'No facts. The agent has not connected yet.',
  };
  const { reported_at: at } = facts;
  const when =
    at === null
      ? 'The agent has reported attributes only: it is an earlier release, or was never approved.'
      : `Reported at ${formatTime(at)}. Read again with --refresh.`;
  return problems.length === 0
    ? stack(table, proseOf([styled('dim', when)]))
    : stack(table, proseOf(problems), proseOf([styled('dim', when)]));
}

function problemLines({ facts, problem }: AgentFactsAnswer): readonly Line[] {
  return [
    ...(problem === null ? [] : [[styled('warn', 'warning: '), problem]]),
    ...Object.entries(facts).flatMap(([name, { value, error, since }]): readonly Line[] => {
      if (error === null) return [];
      const what = value === undefined ? 'has no value' : `is stale since ${formatTime(since)}`;
      return [styled('warn', `facts.${name} ${what}:`), `  ${error}`];
    }),
  ];
}
