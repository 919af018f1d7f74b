/** The state of `orch top`, and what keys and data make of it. Everything here is pure. */
import type { AuditEvent } from '../../contract/audit.js';
import type { Operation, OperationDetail } from '../../contract/operations.js';
import type { RolloutAgent, RolloutRecord } from '../../contract/rollouts.js';
import type { DriftDetail } from '../../contract/runs.js';
import { agentName, formatTags } from '../format.js';
import type { NameOfOperator } from '../record-names.js';
import type { AgentRun } from '../runs/agent-run.js';
import type { RolloutDetail } from '../runs/follow-rollout.js';
import { rolloutSubject } from '../runs/rollout-record.js';
import type { AgentDetail } from './agent-detail.js';
import {
  addMeasurements,
  type FleetAgent,
  type FleetSnapshot,
  type ProcessorHistory,
  SORT_KEYS,
  SORTS,
  type Sort,
  sortFleet,
  withEvent,
} from './fleet.js';

/** The lists, and what was opened from them. Null details are being read. */
export type Page =
  | { readonly kind: 'agents' }
  | PageOfAgent
  | { readonly kind: 'rollouts'; readonly rollouts: readonly RolloutRecord[] | null }
  | { readonly kind: 'rollout'; readonly rolloutId: string; readonly detail: RolloutDetail | null };

/** A page about one agent. */
export type PageOfAgent = { readonly nodeId: string } & (
  | { readonly kind: 'agent'; readonly detail: AgentDetail | null }
  | { readonly kind: 'operations'; readonly operations: readonly Operation[] | null }
  | { readonly kind: 'operation'; readonly operationId: string; readonly detail: OperationDetail | null }
  /** The newest drift check; its record is null if there was none. */
  | { readonly kind: 'drift'; readonly detail: { readonly record: DriftDetail | null } | null }
  /** A plan of the assigned modules. */
  | { readonly kind: 'plan'; readonly run: AgentRun | null }
);

type ListKind = 'agents' | 'rollouts' | 'operations';

/** The place in a list. */
export interface Place {
  /** ID of the selected row; null for the first row. */
  readonly selected: string | null;
  /** Row at the top of the window, before it is adjusted to the selection. */
  readonly top: number;
  /** Words that a row must contain; empty for all rows. */
  readonly filter: string;
}

export interface Notice {
  readonly text: string;
  readonly isProblem: boolean;
}

export interface TopState {
  readonly fleet: FleetSnapshot;
  readonly history: ProcessorHistory;
  readonly nameOf: NameOfOperator;
  readonly page: Page;
  readonly places: Readonly<Record<ListKind, Place>>;
  /** First line that a page of one agent or rollout shows, and the help. */
  readonly scroll: number;
  readonly order: { readonly by: Sort; readonly reversed: boolean };
  /** True while the filter is being typed. */
  readonly isTyping: boolean;
  readonly hasHelp: boolean;
  /** Shown until the next key. */
  readonly notice: Notice | null;
  /** Why the last reading of the fleet failed, that of the page, or the event stream; null if it did not. */
  readonly problems: Readonly<Record<Source, string | null>>;
}

export type Source = 'fleet' | 'page' | 'events';

/** The caller's task after a key. */
export type Effect = { readonly kind: 'quit' | 'interrupt' | 'suspend' | 'redraw' } | AgentEffect;

/** Work that gets the terminal: a shell, or a question and what follows a yes. None of it changes a machine without a question. */
export interface AgentEffect {
  readonly kind: 'terminal' | 'apply' | 'approve';
  readonly nodeId: string;
  readonly name: string;
}

export interface Pressed {
  readonly state: TopState;
  readonly effect: Effect | null;
}

const START: Place = { selected: null, top: 0, filter: '' };

export const startState = (fleet: FleetSnapshot, by: Sort, nameOf: NameOfOperator): TopState => ({
  nameOf,
  fleet,
  history: addMeasurements(new Map(), fleet),
  page: { kind: 'agents' },
  places: { agents: START, rollouts: START, operations: START },
  scroll: 0,
  order: { by, reversed: false },
  isTyping: false,
  hasHelp: false,
  notice: null,
  problems: { fleet: null, page: null, events: null },
});

/** Returns the agents that the filter lets through, in their order. */
export function shownAgents({ fleet, places, order }: TopState): readonly FleetAgent[] {
  const isShown = filterOf(places.agents.filter);
  const agents = places.agents.filter === '' ? fleet.agents : fleet.agents.filter((one) => isShown(wordsOfAgent(one)));
  return sortFleet(agents, order.by, order.reversed);
}

/** Returns the rollouts that the filter lets through, newest first. */
export function shownRollouts({ page, places }: TopState): readonly RolloutRecord[] {
  if (page.kind !== 'rollouts' || page.rollouts === null) return [];
  const isShown = filterOf(places.rollouts.filter);
  return page.rollouts.filter((rollout) =>
    isShown([rollout.rollout_id, rollout.state, rolloutSubject(rollout), ...rollout.modules].join(' ')),
  );
}

/** Returns the operations that the filter lets through, newest first. */
export function shownOperations({ page, places }: TopState): readonly Operation[] {
  if (page.kind !== 'operations' || page.operations === null) return [];
  const isShown = filterOf(places.operations.filter);
  return page.operations.filter(({ operation_id: id, status, modules }) => isShown([id, status, ...modules].join(' ')));
}

const wordsOfAgent = ({ agent }: FleetAgent): string =>
  [
    agentName(agent),
    agent.node_id,
    agent.attributes.hostname ?? agent.initial_hostname,
    agent.initial_ip,
    agent.status === 'approved' ? (agent.connected ? 'up' : 'offline') : agent.status,
    agent.standing?.replace('_', ' ') ?? '',
    agent.automation_stopped === null ? '' : 'stopped',
    formatTags(agent.tags),
    formatTags(agent.attributes),
  ].join(' ');

/** Returns a check that a text contains every word of the filter, and none that follows a `!`. Ignores case. */
function filterOf(filter: string): (text: string) => boolean {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '' && word !== '!');
  return (text) => {
    const lower = text.toLowerCase();
    return words.every((word) => (word.startsWith('!') ? !lower.includes(word.slice(1)) : lower.includes(word)));
  };
}

/** Returns the list of the page; null on a page without one. */
export const listOf = ({ kind }: Page): ListKind | null =>
  kind === 'agents' || kind === 'rollouts' || kind === 'operations' ? kind : null;

function idsOf(state: TopState): readonly string[] {
  if (state.page.kind === 'agents') return shownAgents(state).map(({ agent }) => agent.node_id);
  if (state.page.kind === 'operations') return shownOperations(state).map(({ operation_id: id }) => id);
  return shownRollouts(state).map(({ rollout_id: id }) => id);
}

/** Returns the index of the selected row; the first if the selected row is not shown. */
export const selectedIndex = ({ selected }: Place, ids: readonly string[]): number =>
  selected === null ? 0 : Math.max(0, ids.indexOf(selected));

/** Returns the first row of a window of `height` rows that contains the selected row. */
export function windowTop({ top }: Place, { index, total, height }: Window): number {
  const lowest = Math.max(0, index - height + 1);
  return Math.max(0, Math.min(Math.max(Math.min(top, index), lowest), total - height));
}

interface Window {
  readonly index: number;
  readonly total: number;
  readonly height: number;
}

/** Heights of the screen's parts in lines. */
export interface Heights {
  /** Rows of the list. */
  readonly list: number;
  /** Lines of a page of one agent or rollout, or of the help. */
  readonly body: number;
  /** All lines of that page or of the help. */
  readonly content: number;
}

/** Returns the state after a key, and what the caller has to do. */
export function press(before: TopState, key: string, heights: Heights): Pressed {
  const state: TopState = before.notice === null ? before : { ...before, notice: null };
  if (key === 'ctrl-c') return { state, effect: { kind: 'interrupt' } };
  if (key === 'ctrl-z') return { state, effect: { kind: 'suspend' } };
  if (key === 'ctrl-l') return { state, effect: { kind: 'redraw' } };
  if (state.isTyping) return typed(state, key);
  if (state.hasHelp) return pressInHelp(state, key, heights);
  if (key === 'q') return { state, effect: { kind: 'quit' } };
  if (key === '?') return only({ ...state, hasHelp: true, scroll: 0 });
  if (key === 'r') return only(open(state, { kind: 'rollouts', rollouts: null }));
  if (Object.hasOwn(AGENT_KEYS, key)) return pressForAgent(state, key);
  return listOf(state.page) === null ? pressInPage(state, key, heights) : pressInList(state, key, heights);
}

const only = (state: TopState): Pressed => ({ state, effect: null });

const open = (state: TopState, page: Page): TopState => ({
  ...state,
  page,
  scroll: 0,
  problems: { ...state.problems, page: null },
});

const say = (state: TopState, text: string): TopState => ({ ...state, notice: { text, isProblem: false } });

function placed(state: TopState, change: Partial<Place>): TopState {
  const list = listOf(state.page);
  if (list === null) return state;
  return { ...state, places: { ...state.places, [list]: { ...state.places[list], ...change } } };
}

/** Handles a key while the filter is typed. */
function typed(state: TopState, key: string): Pressed {
  const list = listOf(state.page);
  if (list === null) return only({ ...state, isTyping: false });
  const { filter } = state.places[list];
  const change = (next: string) => only(placed(state, { filter: next, top: 0 }));
  if (key === 'enter') return only({ ...state, isTyping: false });
  if (key === 'escape') return only({ ...placed(state, { filter: '', top: 0 }), isTyping: false });
  if (key === 'backspace') return change([...filter].slice(0, -1).join(''));
  if (key === 'ctrl-u') return change('');
  return isText(key) && filter.length < MAX_FILTER ? change(filter + key) : only(state);
}

const MAX_FILTER = 200;

/** Returns whether a key is one printable character. */
const isText = (key: string): boolean => [...key].length === 1 && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(key);

function pressInHelp(state: TopState, key: string, heights: Heights): Pressed {
  const step = stepOf(key, heights.body);
  if (step !== null) return only(scrolled(state, step, heights));
  return only({ ...state, hasHelp: false, scroll: 0 });
}

/** Returns how far a key moves; null for another key. */
function stepOf(key: string, page: number): number | null {
  switch (key) {
    case 'up':
    case 'k':
      return -1;
    case 'down':
    case 'j':
      return 1;
    case 'page-up':
      return -Math.max(1, page);
    case 'page-down':
    case ' ':
      return Math.max(1, page);
    case 'g':
    case 'home':
      return Number.NEGATIVE_INFINITY;
    case 'G':
    case 'end':
      return Number.POSITIVE_INFINITY;
    default:
      return null;
  }
}

const clamp = (value: number, most: number): number => Math.max(0, Math.min(value, most));

const scrolled = (state: TopState, step: number, { body, content }: Heights): TopState => {
  const most = Math.max(0, content - body);
  return { ...state, scroll: clamp(Math.min(state.scroll, most) + step, most) };
};

function pressInPage(state: TopState, key: string, heights: Heights): Pressed {
  const step = stepOf(key, heights.body);
  if (step !== null) return only(scrolled(state, step, heights));
  return only(isBack(key) ? open(state, above(state.page)) : state);
}

const isBack = (key: string): boolean => key === 'escape' || key === 'left' || key === 'backspace';

/** Returns the page that a page was opened from, to be read anew. */
function above(page: Page): Page {
  switch (page.kind) {
    case 'rollout':
      return { kind: 'rollouts', rollouts: null };
    case 'operation':
      return { kind: 'operations', nodeId: page.nodeId, operations: null };
    case 'operations':
    case 'drift':
    case 'plan':
      return { kind: 'agent', nodeId: page.nodeId, detail: null };
    case 'agents':
    case 'agent':
    case 'rollouts':
      return { kind: 'agents' };
  }
}

function pressInList(state: TopState, key: string, heights: Heights): Pressed {
  const list = listOf(state.page) ?? 'agents';
  const place = state.places[list];
  const step = stepOf(key, heights.list);
  if (step !== null) return only(moved(state, place, step, heights));
  if (key === '/') return only({ ...state, isTyping: true });
  if (key === 'escape' && place.filter !== '') return only(placed(state, { filter: '', top: 0 }));
  if (isBack(key)) return only(state.page.kind === 'agents' ? state : open(state, above(state.page)));
  if (key === 'enter' || key === 'right') return only(openSelected(state, place));
  return only(state.page.kind === 'agents' ? sorted(state, key) : state);
}

function moved(state: TopState, place: Place, step: number, heights: Heights): TopState {
  const ids = idsOf(state);
  const before = selectedIndex(place, ids);
  const index = clamp(before + step, ids.length - 1);
  const window = { total: ids.length, height: heights.list };
  const top = windowTop(place, { ...window, index: before });
  return placed(state, {
    selected: index === 0 ? null : (ids[index] ?? null),
    top: windowTop({ ...place, top }, { ...window, index }),
  });
}

function openSelected(state: TopState, place: Place): TopState {
  const id = idsOf(state)[selectedIndex(place, idsOf(state))];
  if (id === undefined) return say(state, 'nothing is selected');
  const { page } = state;
  const chosen = placed(state, { selected: id });
  if (page.kind === 'agents') return open(chosen, { kind: 'agent', nodeId: id, detail: null });
  if (page.kind !== 'operations') return open(chosen, { kind: 'rollout', rolloutId: id, detail: null });
  return open(chosen, { kind: 'operation', nodeId: page.nodeId, operationId: id, detail: null });
}

/** Keys about the selected agent, or that of the page. */
const AGENT_KEYS: Readonly<Record<string, AgentEffect['kind'] | 'operations' | 'drift' | 'plan'>> = {
  t: 'terminal',
  a: 'apply',
  A: 'approve',
  o: 'operations',
  D: 'drift',
  p: 'plan',
};

function pressForAgent(state: TopState, key: string): Pressed {
  const wanted = AGENT_KEYS[key];
  const { page, fleet, places } = state;
  if (wanted === undefined) return only(state);
  if (page.kind === 'rollouts' || page.kind === 'rollout') {
    return only(say(state, 'this key is about an agent: press Esc first'));
  }
  const ids = page.kind === 'agents' ? idsOf(state) : [page.nodeId];
  const nodeId = page.kind === 'agents' ? ids[selectedIndex(places.agents, ids)] : page.nodeId;
  const agent = fleet.agents.find((one) => one.agent.node_id === nodeId)?.agent;
  if (agent === undefined) return only(say(state, 'no agent is selected'));
  const { node_id: id, status } = agent;
  const name = agentName(agent);
  if (wanted === 'approve' && status === 'approved') return only(say(state, `${name} is approved already`));
  if ((wanted === 'apply' || wanted === 'plan') && status !== 'approved') {
    return only(say(state, `${name} is ${status}: A approves it`));
  }
  switch (wanted) {
    case 'operations': {
      // The filter and the selection were about another agent.
      const fresh = { ...state, places: { ...places, operations: START } };
      return only(open(fresh, { kind: 'operations', nodeId: id, operations: null }));
    }
    case 'drift':
      return only(open(state, { kind: 'drift', nodeId: id, detail: null }));
    case 'plan':
      return only(open(state, { kind: 'plan', nodeId: id, run: null }));
    default:
      return { state, effect: { kind: wanted, nodeId: id, name } };
  }
}

/** Handles the keys of the sort order: a second press of the same key reverses it. */
function sorted(state: TopState, key: string): TopState {
  const { by, reversed } = state.order;
  const chosen = SORT_KEYS[key];
  const place = SORTS.indexOf(by);
  const next = { '<': SORTS[(place + SORTS.length - 1) % SORTS.length], '>': SORTS[(place + 1) % SORTS.length] }[key];
  if (key === 'R') return { ...state, order: { by, reversed: !reversed } };
  if (next !== undefined) return { ...state, order: { by: next, reversed: false } };
  if (chosen === undefined) return state;
  return { ...state, order: { by: chosen, reversed: chosen === by && !reversed } };
}

/** Data that arrived. */
export type Received =
  | { readonly kind: 'fleet'; readonly change: (fleet: FleetSnapshot) => FleetSnapshot }
  | { readonly kind: 'event'; readonly event: AuditEvent }
  | { readonly kind: 'agent'; readonly detail: AgentDetail }
  | { readonly kind: 'operations'; readonly nodeId: string; readonly operations: readonly Operation[] }
  | { readonly kind: 'operation'; readonly detail: OperationDetail }
  | { readonly kind: 'drift'; readonly nodeId: string; readonly record: DriftDetail | null }
  | { readonly kind: 'plan'; readonly run: AgentRun }
  /** The operation that an apply has become, to be opened. */
  | { readonly kind: 'applied'; readonly nodeId: string; readonly operationId: string }
  | { readonly kind: 'rollouts'; readonly rollouts: readonly RolloutRecord[] }
  | { readonly kind: 'rollout'; readonly detail: RolloutDetail }
  | { readonly kind: 'rollout-record'; readonly record: RolloutRecord }
  | { readonly kind: 'rollout-agent'; readonly rolloutId: string; readonly agent: RolloutChange }
  /** A reading that failed; null once it has succeeded. */
  | { readonly kind: 'problem'; readonly source: Source; readonly text: string | null }
  | { readonly kind: 'notice'; readonly notice: Notice };

export type RolloutChange = Pick<RolloutAgent, 'node_id' | 'operation_id' | 'summary' | 'error' | 'state'>;

/** Returns the state with data that arrived. Ignores details of a page that has been left. */
export function receive(state: TopState, received: Received): TopState {
  const { page } = state;
  switch (received.kind) {
    case 'fleet': {
      const fleet = received.change(state.fleet);
      return { ...state, fleet, history: addMeasurements(state.history, fleet) };
    }
    case 'event':
      return { ...state, fleet: withEvent(state.fleet, received.event) };
    case 'agent': {
      const { detail } = received;
      if (page.kind !== 'agent' || page.nodeId !== detail.agent.node_id) return state;
      return { ...state, page: { ...page, detail } };
    }
    case 'operations': {
      const { nodeId, operations } = received;
      return page.kind === 'operations' && page.nodeId === nodeId ? { ...state, page: { ...page, operations } } : state;
    }
    case 'operation': {
      const { detail } = received;
      if (page.kind !== 'operation' || page.operationId !== detail.operation_id) return state;
      return { ...state, page: { ...page, detail } };
    }
    case 'drift': {
      const { nodeId, record } = received;
      if (page.kind !== 'drift' || page.nodeId !== nodeId) return state;
      return { ...state, page: { ...page, detail: { record } } };
    }
    case 'plan': {
      const { run } = received;
      return page.kind === 'plan' && page.nodeId === run.agent.node_id ? { ...state, page: { ...page, run } } : state;
    }
    case 'applied': {
      const { nodeId, operationId } = received;
      return open(state, { kind: 'operation', nodeId, operationId, detail: null });
    }
    case 'rollouts':
      return page.kind === 'rollouts' ? { ...state, page: { ...page, rollouts: received.rollouts } } : state;
    case 'rollout':
      if (page.kind !== 'rollout' || page.rolloutId !== received.detail.rollout_id) return state;
      return { ...state, page: { ...page, detail: received.detail } };
    case 'rollout-record': {
      const { record } = received;
      if (page.kind !== 'rollout' || page.detail === null || page.rolloutId !== record.rollout_id) return state;
      return { ...state, page: { ...page, detail: { ...page.detail, ...record } } };
    }
    case 'rollout-agent': {
      if (page.kind !== 'rollout' || page.detail === null || page.rolloutId !== received.rolloutId) return state;
      const agents = page.detail.agents.map((one) =>
        one.node_id === received.agent.node_id ? { ...one, ...received.agent } : one,
      );
      return { ...state, page: { ...page, detail: { ...page.detail, agents } } };
    }
    case 'problem': {
      const { source, text } = received;
      return state.problems[source] === text ? state : { ...state, problems: { ...state.problems, [source]: text } };
    }
    case 'notice':
      return { ...state, notice: received.notice };
  }
}
