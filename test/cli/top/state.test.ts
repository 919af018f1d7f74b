/** The state and the screen of `orch top` as data: keys and readings in, lines out. */
import { describe, expect, it } from 'vitest';
import { cutLine, wrapLine } from '../../../src/cli/render/fit-lines.js';
import { plainText } from '../../../src/cli/render/paint.js';
import { widthOf } from '../../../src/cli/render/terminal-text.js';
import { changedParts, type FleetSnapshot } from '../../../src/cli/top/fleet.js';
import { finishKeys, readKeys } from '../../../src/cli/top/keys.js';
import { type Effect, press, receive, startState, type TopState } from '../../../src/cli/top/state.js';
import { heightsOf, screenLines } from '../../../src/cli/top/top-view.js';
import type { Agent } from '../../../src/contract/agents.js';
import { Fault } from '../../../src/kernel/fault.js';
import { NOW } from '../../support/cli.js';
import {
  state as applied,
  driftDetail,
  events,
  haltedRollout,
  operations,
  planned,
  web1,
} from '../../support/cli-world.js';

const SIZES = [
  { columns: 40, rows: 15 },
  { columns: 80, rows: 24 },
  { columns: 200, rows: 50 },
] as const;
const SIZE = SIZES[1];

const agent = (number: number, fields: Partial<Agent> = {}): Agent => ({
  ...web1,
  node_id: number.toString(16).padStart(32, '0'),
  name: `node-${String(number).padStart(4, '0')}`,
  ...fields,
});

const fleetOf = (agents: readonly Agent[]): FleetSnapshot => ({
  agents: agents.map((one, index) => ({
    agent: one,
    sample: {
      collected_at: NOW / 1000,
      cpu_usage: index % 100,
      memory_used: 1,
      memory_total: 2,
      disk_used: 1,
      disk_total: 4,
      uptime: 90_000,
    },
  })),
  rollouts: [],
  operations: [],
  terminals: [],
  events: [],
});

const THOUSAND = fleetOf(Array.from({ length: 1_000 }, (_, index) => agent(index)));
const start = (fleet = THOUSAND): TopState => startState(fleet, 'name', (id) => id);

function pressAll(state: TopState, keys: readonly string[], size = SIZE as (typeof SIZES)[number]) {
  const effects: Effect[] = [];
  let now = state;
  for (const key of keys) {
    const pressed = press(now, key, heightsOf(now, size, NOW));
    now = pressed.state;
    if (pressed.effect !== null) effects.push(pressed.effect);
  }
  return { state: now, effects };
}

const draw = (state: TopState, size = SIZE as (typeof SIZES)[number]): readonly string[] =>
  screenLines(state, size, NOW).map(plainText);

const selected = (state: TopState, size = SIZE as (typeof SIZES)[number]): string | undefined =>
  draw(state, size).flatMap((line) => /^> (\S+)/.exec(line)?.[1] ?? [])[0];

const detail = {
  agent: agent(0),
  samples: [],
  operations: operations.slice(0, 1),
  state: applied,
  drift: driftDetail(planned.slice(0, 3)),
  assignments: [],
};

describe('keys', () => {
  it.each([
    ['a character of two code units', 'a😀', ['a', '😀'], ''],
    ['arrows of both modes', '\x1b[A\x1bOB', ['up', 'down'], ''],
    ['a sequence without a name', '\x1b[1;5Pq', ['unknown', 'q'], ''],
    ['Escape before another key', '\x1bq', ['escape', 'q'], ''],
    ['the beginning of a sequence', 'j\x1b[5', ['j'], '\x1b[5'],
    ['a lone Escape', '\x1b', [], '\x1b'],
  ])('%s', (_, text, keys, rest) => {
    expect(readKeys(text)).toEqual({ keys, rest });
  });

  it('a sequence that did not go on is the Escape key', () => {
    expect(finishKeys('\x1b')).toEqual(['escape']);
  });
});

describe('the list of agents', () => {
  it.each([
    ['j', ['j'], 'node-0001'],
    ['the end', ['G'], 'node-0999'],
    ['the beginning', ['G', 'g'], 'node-0000'],
    ['not beyond the ends', ['k', 'k'], 'node-0000'],
    ['there and back by pages', ['page-down', 'page-down', 'page-up', 'page-up'], 'node-0000'],
    ['another order keeps the selected agent', ['j', 'c'], 'node-0001'],
    ['the reverse order begins with the last', ['n'], 'node-0999'],
    ['a filter', ['/', ...'0421'], 'node-0421'],
    ['without a word', ['/', ...'node !node-0'], undefined],
    ['a filter that is removed', ['/', ...'0421', 'escape'], 'node-0000'],
  ])('%s', (_, keys, name) => {
    expect(selected(pressAll(start(), keys).state)).toBe(name);
  });

  it('keeps the selected agent while others come and go', () => {
    const { state } = pressAll(start(), ['j', 'j']);
    const others = fleetOf([agent(2), agent(5), agent(7)]);
    expect(selected(receive(state, { kind: 'fleet', change: () => others }))).toBe('node-0002');
    const without = receive(state, { kind: 'fleet', change: () => fleetOf([agent(5), agent(7)]) });
    expect(selected(without)).toBe('node-0005');
  });

  it('asks for what only the terminal can do', () => {
    const nodeId = agent(1).node_id;
    const { effects } = pressAll(start(), ['j', 't', 'ctrl-z', 'ctrl-l', 'ctrl-c', 'q']);
    expect(effects).toEqual([
      { kind: 'terminal', nodeId, name: 'node-0001' },
      { kind: 'suspend' },
      { kind: 'redraw' },
      { kind: 'interrupt' },
      { kind: 'quit' },
    ]);
  });

  it.each([
    ['a', 'apply'],
    ['A', 'approve'],
  ] as const)('only asks for the terminal at %s, which is where a person is asked', (key, kind) => {
    const fleet = fleetOf([agent(0, { status: kind === 'apply' ? 'approved' : 'pending' })]);
    const { node_id: nodeId } = agent(0);
    const { state, effects } = pressAll(start(fleet), [key]);
    expect(effects).toEqual([{ kind, nodeId, name: 'node-0000' }]);
    expect(state.page).toEqual({ kind: 'agents' });
    expect(pressAll(start(fleet), ['enter', key]).effects).toEqual(effects);
  });

  it.each([
    ['A', 'approved', 'node-0000 is approved already'],
    ['a', 'pending', 'node-0000 is pending: A approves it'],
    ['p', 'pending', 'node-0000 is pending: A approves it'],
    ['a', 'rejected', 'node-0000 is rejected: A approves it'],
  ] as const)('says why %s does nothing to an agent that is %s', (key, status, text) => {
    const { state, effects } = pressAll(start(fleetOf([agent(0, { status })])), [key]);
    expect(effects).toEqual([]);
    expect(draw(state).join('\n')).toContain(text);
  });

  it('does nothing to an agent from the page of a rollout', () => {
    const { state, effects } = pressAll(start(), ['r', 'a', 'A', 't', 'p']);
    expect(effects).toEqual([]);
    expect(draw(state).join('\n')).toContain('this key is about an agent: press Esc first');
  });

  it('lives without agents', () => {
    const { state, effects } = pressAll(start(fleetOf([])), ['j', 'G', 'enter', 't', 'a', 'A', 'p', 'o', 'D', 'c']);
    expect(effects).toEqual([]);
    expect(draw(state).join('\n')).toContain('No agents.');
  });
});

const record = driftDetail(planned.slice(0, 3));
const { node_id: nodeId } = agent(0);

/** The pages below that of an agent, as they are read. */
const operationsRead = receive(pressAll(start(), ['o']).state, { kind: 'operations', nodeId, operations });
const operationRead = (() => {
  const { state } = pressAll(operationsRead, ['enter']);
  const [detail] = operations;
  return detail === undefined ? state : receive(state, { kind: 'operation', detail });
})();
const driftRead = receive(pressAll(start(), ['D']).state, { kind: 'drift', nodeId, record });
const planRead = receive(pressAll(start(), ['p']).state, {
  kind: 'plan',
  run: {
    agent: agent(0),
    fault: new Fault('agent_not_connected', 'node-0000 is not connected', { hint: 'wait for it' }),
  },
});

describe('pages', () => {
  it('opens the operations of an agent, and one of them', () => {
    expect(draw(operationsRead)[0]).toMatch(/operations of node-0000/);
    expect(draw(operationsRead).join('\n')).toMatch(/> .*failed/);
    const [first] = operations;
    expect(draw(operationRead).join('\n')).toContain(`Operation     ${first?.operation_id}`);
    const back = pressAll(operationRead, ['escape', 'escape', 'escape']);
    expect(back.state.page.kind).toBe('agents');
    expect(selected(back.state)).toBe('node-0000');
  });

  it('filters operations', () => {
    const none = pressAll(operationsRead, ['/', ...'nothing-like-it']).state;
    expect(draw(none).join('\n')).toContain('No operation matches the filter.');
    expect(draw(none)[0]).toContain(`0 of ${operations.length}`);
  });

  it('begins anew with the operations of another agent', () => {
    const { state } = pressAll(operationsRead, ['/', ...'abc', 'enter', 'escape', 'escape', 'escape', 'j', 'o']);
    expect(state.places.operations).toEqual({ selected: null, top: 0, filter: '' });
    expect(state.page).toMatchObject({ kind: 'operations', nodeId: agent(1).node_id });
    expect(receive(state, { kind: 'operations', nodeId, operations })).toBe(state);
  });

  it('opens the drift of an agent', () => {
    expect(draw(driftRead).join('\n')).toMatch(/Status +drifted[\s\S]*\+ file-unix/);
    const never = receive(pressAll(start(), ['D']).state, { kind: 'drift', nodeId, record: null });
    expect(draw(never).join('\n')).toContain('never been checked');
  });

  it('shows why there is no plan', () => {
    expect(draw(planRead).join('\n')).toMatch(/node-0000: .*not connected[\s\S]*hint: wait for it/);
    expect(draw(pressAll(start(), ['p']).state).join('\n')).toContain('planning');
  });

  it('opens the operation that an apply has become', () => {
    const state = receive(start(), { kind: 'applied', nodeId, operationId: 'x' });
    expect(state.page).toMatchObject({ kind: 'operation', nodeId, operationId: 'x' });
    expect(pressAll(state, ['escape', 'escape']).state.page).toMatchObject({ kind: 'agent', nodeId });
  });

  it('opens an agent, and goes back to it', () => {
    const { state } = pressAll(start(), ['enter']);
    const read = receive(state, { kind: 'agent', detail });
    expect(draw(read).join('\n')).toMatch(/drifted, 2 of 3 resources differ[\s\S]*Operations\n {2}failed/);
    expect(selected(pressAll(read, ['escape']).state)).toBe('node-0000');
  });

  it('says that an apply came after the drift that it shows', () => {
    const [operation] = operations;
    const finished_at = detail.drift.finished_at + 1;
    const applied = operation ? [{ ...operation, status: 'succeeded' as const, finished_at }] : [];
    const read = receive(pressAll(start(), ['enter']).state, {
      kind: 'agent',
      detail: { ...detail, operations: applied },
    });
    expect(draw(read).join('\n')).toMatch(/drifted, 2 of 3 resources differ.*\n {2}before the newest apply/);
  });

  it('ignores what arrives for a page that was left', () => {
    const { state } = pressAll(start(), ['enter', 'escape']);
    expect(receive(state, { kind: 'agent', detail })).toEqual(state);
  });

  it('shows the help, and comes back to the page', () => {
    const { state } = pressAll(start(), ['r', '?']);
    expect(draw(state).join('\n')).toContain('apply its modules');
    expect(draw(pressAll(state, ['G']).state).join('\n')).toContain('Sort the agents');
    expect(pressAll(state, ['x']).state.page.kind).toBe('rollouts');
  });
});

describe('the screen', () => {
  const hostile = '\x1b]52;c;cm0=\x07\x9b2J\u202e\r\n\u200b';
  const evil = agent(3, {
    name: `evil${hostile}`,
    tags: { [`role${hostile}`]: hostile },
    attributes: { hostname: hostile },
    standing_reason: hostile,
  });
  const busy: FleetSnapshot = { ...fleetOf([evil, agent(1, { name: '日本語'.repeat(20) })]), events, operations };
  const states: readonly (readonly [string, TopState])[] = [
    ['agents', start()],
    [
      'a long message',
      receive(start(), { kind: 'notice', notice: { text: `${hostile}${'word '.repeat(200)}`, isProblem: true } }),
    ],
    ['hostile agents', start(busy)],
    ['a filter', pressAll(start(), ['/', ...'abc']).state],
    [
      'a hostile agent',
      receive(pressAll(start(busy), ['enter']).state, { kind: 'agent', detail: { ...detail, agent: evil } }),
    ],
    ['an agent', receive(pressAll(start(), ['enter']).state, { kind: 'agent', detail })],
    ['rollouts', receive(pressAll(start(), ['r']).state, { kind: 'rollouts', rollouts: [haltedRollout] })],
    ['operations', operationsRead],
    ['an operation', operationRead],
    ['drift', driftRead],
    ['a plan', planRead],
    ['help', pressAll(start(), ['?']).state],
  ];

  it.each(
    states.flatMap(([name, state]) => SIZES.map((size) => [name, size.columns, size.rows, state, size] as const)),
  )('%s fits %i columns and %i rows, and steers no terminal', (_name, columns, rows, state, size) => {
    const lines = draw(state, size);
    expect(lines).toHaveLength(rows);
    for (const line of lines) {
      expect(widthOf(line)).toBeLessThanOrEqual(columns);
      expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    }
  });

  it.each([1, 2, 3, 5])('survives %i rows', (rows) => {
    for (const [, state] of states) expect(screenLines(state, { columns: 1, rows }, NOW)).toHaveLength(rows);
  });

  it('keeps the columns in their places while rows scroll', () => {
    const fleet = fleetOf(Array.from({ length: 100 }, (_, index) => agent(index, { connected: index < 50 })));
    const head = (state: TopState) => draw(state).find((line) => line.includes('STATUS'));
    expect(head(pressAll(start(fleet), ['G']).state)).toBe(head(start(fleet)));
  });
});

describe('lines', () => {
  it('are cut with an ellipsis', () => {
    expect(plainText(cutLine(['ab', 'cdef'], 4))).toBe('abc…');
    expect(plainText(cutLine(['ab', 'cd'], 4))).toBe('abcd');
  });

  it('are wrapped between words, and long words anywhere', () => {
    expect(wrapLine('one two three', 8, 2).map(plainText)).toEqual(['one two ', '  three']);
    expect(wrapLine('abcdefghij', 4, 1).map(plainText)).toEqual(['abcd', ' efg', ' hij']);
  });
});

it('reads again what an event is about', () => {
  expect(changedParts({ event_type: 'terminal.opened' })).toEqual(['terminals']);
  expect(changedParts({ event_type: 'state.apply_started' })).toContain('operations');
  expect(changedParts({ event_type: 'operator.login' })).toEqual([]);
});
