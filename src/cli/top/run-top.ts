/** Runs `orch top` on a terminal: reads the fleet and the open page, draws changes, and carries out what keys ask for. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../../client/api-client.js';
import { followEvents } from '../../client/follow-events.js';
import type { AuditGap } from '../../contract/audit.js';
import type { RolloutResult } from '../../contract/rollouts.js';
import { isFault, messageOf } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import type { Outcome } from '../outcome.js';
import { operatorNames } from '../record-names.js';
import { loadPaint, type Paint, plainText } from '../render/paint.js';
import { followRun } from '../runs/follow-run.js';
import { isSettled } from '../runs/rollout-record.js';
import { readAgentDetail } from './agent-detail.js';
import { beginAsking, keepingInterrupts } from './away.js';
import { changedParts, FLEET_PARTS, type FleetPart, readFleet, readParts, type Sort } from './fleet.js';
import { LiveScreen } from './screen.js';
import {
  type AgentEffect,
  type Effect,
  type Page,
  press,
  type Received,
  receive,
  type Source,
  startState,
  type TopState,
} from './state.js';
import { heightsOf, screenLines } from './top-view.js';

/** Milliseconds between two readings of a part: at least, after an event about it, and at most. */
const PACE: Readonly<Record<FleetPart, { readonly least: number; readonly most: number }>> = {
  agents: { least: 3_000, most: 15_000 },
  metrics: { least: 5_000, most: 5_000 },
  rollouts: { least: 1_000, most: 15_000 },
  operations: { least: 1_000, most: 15_000 },
  terminals: { least: 1_000, most: 15_000 },
};
/** Milliseconds between two looks for parts that are due, and between two pictures without a key: the time moves on. */
const TICK = 500;
const CLOCK = 1_000;
/** Milliseconds between two pictures of data that keeps arriving. */
const FRAME = 100;
/** Timeout of a reading in milliseconds. */
const PATIENCE = 10_000;
/** Milliseconds between two readings of the open page: at least, and of an agent also at most. */
const PAGE_LEAST = 1_000;
const PAGE_MOST = 5_000;

/** Opens a shell on an agent at this terminal, and returns when it has ended or was left. */
export type OpenTerminal = (context: Context, nodeId: string) => Promise<Outcome>;

interface TopOptions {
  readonly sort: Sort;
  readonly openTerminal: OpenTerminal;
}

/** Runs until the operator quits. Throws the fault of the first reading before it draws. */
export async function runTop(context: Context, api: ApiClient, { sort, openTerminal }: TopOptions): Promise<void> {
  const [paint, fleet, nameOf] = await Promise.all([
    loadPaint(context.color),
    readFleet(api, context.signal),
    operatorNames(context, api),
  ]);
  await new Top(context, api, { paint, openTerminal, state: startState(fleet, sort, nameOf) }).run();
}

interface Parts {
  readonly paint: Paint;
  readonly openTerminal: OpenTerminal;
  readonly state: TopState;
}

class Top {
  private readonly context: Context;
  private readonly api: ApiClient;
  private readonly paint: Paint;
  private readonly openTerminal: OpenTerminal;
  private readonly screen: LiveScreen;
  private readonly ending = new AbortController();
  private readonly signal: AbortSignal;
  private state: TopState;
  /** Aborted when another page is opened. */
  private leaving = new AbortController();
  private frame: NodeJS.Timeout | undefined;
  /** Parts that an event has changed since they were read, and when each was read. */
  private readonly stale = new Set<FleetPart>();
  private readonly readAt = new Map<FleetPart, number>();
  /** True if an event may have changed the open page. */
  private isPageStale = false;
  /** Work that has the terminal, such as a shell or a question; null while the screen is shown. */
  private away: Promise<void> | null = null;
  /** The first failure in the background. */
  private failure: { readonly error: unknown } | null = null;

  constructor(context: Context, api: ApiClient, { paint, openTerminal, state }: Parts) {
    this.context = context;
    this.api = api;
    this.paint = paint;
    this.openTerminal = openTerminal;
    this.state = state;
    // Each request adds a listener.
    setMaxListeners(0, this.ending.signal);
    this.signal = AbortSignal.any([context.signal, this.ending.signal]);
    setMaxListeners(0, this.signal);
    this.screen = new LiveScreen(context.streams, {
      onKey: (key) => this.press(key),
      onResize: () => this.redraw(),
      onClosed: () => this.ending.abort(),
    });
  }

  async run(): Promise<void> {
    const now = this.context.clock.monotonic();
    for (const part of FLEET_PARTS) this.readAt.set(part, now);
    const clock = setInterval(() => this.draw(), CLOCK);
    try {
      this.screen.open();
      this.redraw();
      // A failure of one ends the others.
      const ends = () => this.ending.abort();
      await Promise.all([this.poll().finally(ends), this.follow().finally(ends)]);
    } finally {
      clearInterval(clock);
      clearTimeout(this.frame);
      this.ending.abort();
      this.leaving.abort();
      this.screen.close();
      // It still has the terminal, which it gives back as it was.
      await this.away?.catch(() => undefined);
    }
  }

  private press(key: string): void {
    const { page } = this.state;
    const heights = heightsOf(this.state, this.screen.size, this.context.clock.now());
    const { state, effect } = press(this.state, key, heights);
    this.state = state;
    if (state.page !== page) this.enter(state.page);
    if (effect !== null) this.act(effect);
    this.draw();
  }

  private act(effect: Effect): void {
    if ('nodeId' in effect) this.background(this.leave(effect));
    else if (effect.kind === 'quit') this.ending.abort();
    else if (effect.kind === 'interrupt') this.context.interrupt('SIGINT');
    else if (effect.kind === 'redraw') this.screen.forget();
    else this.background(this.screen.suspend());
  }

  /** Lets a failure of work that nothing waits for end the command. */
  private background(work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.failure ??= { error };
      this.ending.abort();
    });
  }

  /** Gives the terminal to work about an agent until that ends, and says what became of it. */
  private async leave(effect: AgentEffect): Promise<void> {
    this.screen.close();
    const work = this.workFor(effect);
    this.away = work.then(() => undefined);
    const received = await work;
    this.away = null;
    if (this.signal.aborted) return;
    this.screen.open();
    for (const one of received) this.take(one);
    this.redraw();
  }

  private workFor(effect: AgentEffect): Promise<readonly Received[]> {
    if (effect.kind === 'terminal') return this.visit(effect);
    return effect.kind === 'apply' ? this.apply(effect) : this.approve(effect);
  }

  private async visit({ nodeId, name }: AgentEffect): Promise<readonly Received[]> {
    const { context, pass } = keepingInterrupts(this.context);
    try {
      await this.openTerminal(context, nodeId);
      return [notice(`the terminal on ${name} is closed`)];
    } catch (error) {
      return [trouble(`no terminal on ${name}: ${sentence(error)}`)];
    } finally {
      // A signal that ended the terminal is meant for this command too.
      pass();
    }
  }

  /** Applies the assigned modules after the question that `orch apply` asks. Opens the operation that it has become. */
  private async apply({ nodeId, name }: AgentEffect): Promise<readonly Received[]> {
    const asking = beginAsking(this.context);
    const { context } = asking;
    try {
      const [{ confirmAndApply }, { NO_LIMITS }] = await Promise.all([
        import('../runs/one-agent.js'),
        import('../runs/apply-limits.js'),
      ]);
      context.note(`Plan for 1 agent: ${name}`);
      const agent = await this.api.call('getAgent', { params: { node_id: nodeId }, signal: context.signal });
      const order = { agent, modules: ASSIGNED, to: null, waitSecs: null, limits: NO_LIMITS, asksAlways: true };
      const { run } = await confirmAndApply(context, this.api, order);
      const { operation_id: operationId, error } = run.result;
      const words = error === null ? notice(`applied to ${name}`) : trouble(`${name}: ${error.message}`);
      return operationId === null ? [words] : [{ kind: 'applied', nodeId, operationId }, words];
    } catch (error) {
      if (context.signal.aborted) return [trouble(`${name}: interrupted; o shows what has begun, and it goes on`)];
      return [trouble(`${name}: ${sentence(error)}`)];
    } finally {
      asking.end();
    }
  }

  private async approve({ nodeId, name }: AgentEffect): Promise<readonly Received[]> {
    const asking = beginAsking(this.context);
    try {
      const { askToApprove } = await import('../nodes/approve-agent.js');
      await askToApprove(asking.context, this.api, nodeId);
      this.stale.add('agents');
      return [notice(`approved ${name}`)];
    } catch (error) {
      return [trouble(`${name}: ${sentence(error)}`)];
    } finally {
      asking.end();
    }
  }

  private take(received: Received): void {
    this.state = receive(this.state, received);
    if (received.kind === 'applied') this.enter(this.state.page);
    this.frame ??= setTimeout(() => {
      this.frame = undefined;
      this.draw();
    }, FRAME);
  }

  private redraw(): void {
    this.screen.forget();
    this.draw();
  }

  private draw(): void {
    if (this.signal.aborted || this.away !== null) return;
    const lines = screenLines(this.state, this.screen.size, this.context.clock.now());
    this.screen.draw(lines.map((line) => ({ painted: this.paint.line(line), plain: plainText(line) })));
  }

  /** Reads parts of the fleet when they are due. Throws the failure of a terminal or a suspension. */
  private async poll(): Promise<void> {
    const { clock } = this.context;
    while (!this.signal.aborted) {
      await this.rest(TICK, this.signal);
      if (this.failure !== null) throw this.failure.error;
      if (this.signal.aborted) return;
      const now = clock.monotonic();
      const due = FLEET_PARTS.filter((part) => {
        const age = now - (this.readAt.get(part) ?? 0);
        return age >= (this.stale.has(part) ? PACE[part].least : PACE[part].most);
      });
      if (due.length === 0) continue;
      for (const part of due) this.stale.delete(part);
      const change = await this.attempt('fleet', this.signal, (signal) => readParts(this.api, new Set(due), signal));
      // After a failure all of it is due again soon.
      const readAt = clock.monotonic();
      for (const part of due) {
        this.readAt.set(part, readAt);
        if (change === null) this.stale.add(part);
      }
      if (change !== null) this.take({ kind: 'fleet', change });
    }
  }

  /** Follows events, which say what to read again. */
  private async follow(): Promise<void> {
    while (!this.signal.aborted) {
      try {
        const told = (error: unknown) => this.tell('events', `no events: ${sentence(error)}`);
        const options = {
          onLost: told,
          onResumed: () => this.tell('events', null),
          onGap: ({ detail }: AuditGap) => {
            this.tell('events', `events are missing: ${detail}`);
            for (const part of FLEET_PARTS) this.stale.add(part);
            this.isPageStale = true;
          },
        };
        for await (const event of followEvents(this.api, 'streamEvents', { query: {}, signal: this.signal }, options)) {
          this.tell('events', null);
          this.take({ kind: 'event', event });
          for (const part of changedParts(event)) this.stale.add(part);
          this.isPageStale = true;
        }
      } catch (error) {
        if (this.signal.aborted) return;
        this.tell('events', `no events: ${sentence(error)}`);
        await this.rest(PATIENCE, this.signal);
      }
    }
  }

  /** Reads a page that was opened, and keeps it fresh until it is left. */
  private enter(page: Page): void {
    this.leaving.abort();
    this.leaving = new AbortController();
    setMaxListeners(0, this.leaving.signal);
    const signal = AbortSignal.any([this.signal, this.leaving.signal]);
    setMaxListeners(0, signal);
    this.isPageStale = false;
    if (page.kind === 'agents') return;
    this.background(this.keepPage(page, signal));
  }

  private async keepPage(page: Exclude<Page, { readonly kind: 'agents' }>, signal: AbortSignal): Promise<void> {
    if (page.kind === 'plan') return this.plan(page.nodeId, signal);
    while (!signal.aborted) {
      if (page.kind === 'rollout') await this.followRollout(page.rolloutId, signal);
      else {
        const read = await this.attempt('page', signal, (reading) => this.readPage(page, reading));
        if (read !== null) this.take(read);
      }
      await this.rest(PAGE_LEAST, signal);
      const end = this.context.clock.monotonic() + PAGE_MOST - PAGE_LEAST;
      while (!signal.aborted && !this.isPageStale && this.context.clock.monotonic() < end)
        await this.rest(TICK, signal);
      this.isPageStale = false;
    }
  }

  private async readPage(
    page: Exclude<Page, { readonly kind: 'agents' | 'plan' | 'rollout' }>,
    signal: AbortSignal,
  ): Promise<Received> {
    const { api } = this;
    switch (page.kind) {
      case 'agent':
        return { kind: 'agent', detail: await readAgentDetail(api, page.nodeId, signal) };
      case 'operations': {
        const { nodeId } = page;
        const { operations } = await api.call('listAgentOperations', { params: { node_id: nodeId }, signal });
        return { kind: 'operations', nodeId, operations };
      }
      case 'operation': {
        const params = { operation_id: page.operationId };
        return { kind: 'operation', detail: await api.call('getOperation', { params, signal }) };
      }
      case 'drift': {
        const { nodeId } = page;
        const record = await api.call('getLatestDrift', { params: { node_id: nodeId }, signal });
        return { kind: 'drift', nodeId, record };
      }
      case 'rollouts':
        return { kind: 'rollouts', rollouts: (await api.call('listRollouts', { signal })).rollouts };
    }
  }

  /** Plans the assigned modules of an agent once, and shows the plan or why there is none. */
  private async plan(nodeId: string, signal: AbortSignal): Promise<void> {
    const agent = this.state.fleet.agents.find((one) => one.agent.node_id === nodeId)?.agent;
    if (agent === undefined) return;
    try {
      const stream = this.api.stream('planAgent', { params: { node_id: nodeId }, body: { modules: [] }, signal });
      const result = await followRun(stream, { resource: () => {} });
      this.take({ kind: 'plan', run: { agent, result } });
    } catch (error) {
      if (signal.aborted) return;
      if (!isFault(error)) throw error;
      this.take({ kind: 'plan', run: { agent, fault: error } });
    }
  }

  /** Shows a rollout, and follows its stream until it has ended or halted. */
  private async followRollout(rolloutId: string, signal: AbortSignal): Promise<void> {
    const params = { rollout_id: rolloutId };
    const detail = await this.attempt('page', signal, (reading) =>
      this.api.call('getRollout', { params, signal: reading }),
    );
    if (detail === null || signal.aborted) return;
    this.take({ kind: 'rollout', detail });
    if (isSettled(detail)) return;
    try {
      for await (const line of this.api.stream('getRollout', { params, query: {}, signal })) {
        if (line.event === 'rollout') this.take({ kind: 'rollout-record', record: line.rollout });
        else if (line.event === 'agent') this.take({ kind: 'rollout-agent', rolloutId, agent: changeOf(line.agent) });
      }
    } catch (error) {
      if (!signal.aborted) this.tell('page', sentence(error));
    }
  }

  /** Reads with a timeout. Shows a failure in the status line, and returns null for it. */
  private async attempt<T>(
    source: Source,
    signal: AbortSignal,
    read: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | null> {
    const reading = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);
    setMaxListeners(0, reading);
    try {
      const value = await read(reading);
      if (signal.aborted) return null;
      this.tell(source, null);
      return value;
    } catch (error) {
      if (!signal.aborted) this.tell(source, reading.aborted ? 'the orchestrator does not answer' : sentence(error));
      return null;
    }
  }

  private tell(source: Source, text: string | null): void {
    if (this.state.problems[source] !== text) this.take({ kind: 'problem', source, text });
  }

  private rest(ms: number, signal: AbortSignal): Promise<void> {
    return sleep(ms, undefined, { signal }).catch(() => undefined);
  }
}

/** The modules that are assigned to an agent. */
const ASSIGNED = { names: [], files: [], values: null };

const notice = (text: string): Received => ({ kind: 'notice', notice: { text, isProblem: false } });

const trouble = (text: string): Received => ({ kind: 'notice', notice: { text, isProblem: true } });

/** Returns a failure on one line, with what to do about it. */
const sentence = (error: unknown): string => {
  const hint = isFault(error) && error.hint !== undefined ? `; ${error.hint}` : '';
  return `${messageOf(error)}${hint}`.replaceAll('\n', ' ');
};

const changeOf = ({ node_id, status, operation_id, summary, error }: RolloutResult) => ({
  node_id,
  state: status,
  operation_id,
  summary,
  error,
});
