/** Real directories and what only some machines can do with them. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, type TestContext } from 'vitest';
import type { WebSocket } from 'ws';
import type { EngineReport, RunEngine, RunHead } from '../../src/agent/engine/run-engine.js';
import { bestReach } from '../../src/agent/host/safe-walk.js';
import { UnixHost } from '../../src/agent/host/this-host.js';
import type { Clock } from '../../src/kernel/clock.js';
import type { DesiredResource, Removal } from '../../src/resources/desired.js';
import type { FileStep, PathFact, StepOutcome } from '../../src/resources/host.js';
import { isUnchanged } from '../../src/resources/run-results.js';
import { agentDecoder, encode, UnknownMessage } from '../../src/wire/codec.js';
import type { AgentMessage, AgentMessageOf, OrchestratorMessage, RunEntry, RunItem } from '../../src/wire/messages.js';
import { cutRun, type RunContent } from '../../src/wire/parts.js';

export const isRoot = process.geteuid?.() === 0;

export const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

/** An empty directory that goes away with the test. */
export function place(): string {
  const directory = mkdtempSync(join(tmpdir(), 'orch-agent-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Skips the rest of a test and prints why. */
export function needs(context: TestContext, condition: boolean, what: string): void {
  if (condition) return;
  console.log(`skipped "${context.task.name}": it needs ${what}`);
  context.skip(`it needs ${what}`);
}

export const run = (program: string, ...args: readonly string[]) =>
  spawnSync(program, args, { encoding: 'utf8', timeout: 20_000 });

export const succeeds = (program: string, ...args: readonly string[]): boolean => run(program, ...args).status === 0;

export const host = () => new UnixHost({ platform: 'linux', reach: bestReach() });

export function look(path: string, more: { content?: boolean; entries?: boolean } = {}): PathFact {
  const [fact] = host().observe([{ path, content: more.content ?? true, entries: more.entries ?? true }]);
  if (!fact) throw new Error('no answer');
  return fact;
}

export async function commitOne(step: FileStep): Promise<StepOutcome> {
  const [outcome] = await host().commit([step]);
  if (outcome === undefined) throw new Error('no outcome');
  return outcome;
}

export const write = (
  path: string,
  content: string,
  more: Partial<Extract<FileStep, { do: 'write-file' }>> = {},
): FileStep => ({
  do: 'write-file',
  path,
  content,
  owner: null,
  group: null,
  mode: null,
  ...more,
});

/** Runs by their messages. */
export const runId = (number: number): string => `01J${String(number).padStart(23, '0')}`;

export const head = (number: number, more: Partial<RunHead> = {}): RunHead => ({
  type: 'run',
  run_id: runId(number),
  mode: 'apply',
  epoch: 1,
  generation: number,
  resources: 0,
  removals: 0,
  parts: 1,
  ...more,
});

const decode = agentDecoder();

/** Hears what an engine reports, and holds every report against the protocol. */
export class Listener {
  readonly reports: EngineReport[] = [];
  private waiting: (() => void)[] = [];

  constructor(engine: RunEngine) {
    engine.subscribe((report) => {
      decode(encode(report));
      this.reports.push(report);
      for (const wake of this.waiting.splice(0)) wake();
    });
  }

  of(number: number): readonly EngineReport[] {
    return this.reports.filter((report) => report.run_id === runId(number));
  }

  /** The results of a run in their sequence; throws when one is missing. */
  items(number: number): readonly RunItem[] {
    const items: RunItem[] = [];
    for (const report of this.of(number)) {
      if (report.type !== 'run_results') continue;
      if (report.from > items.length) throw new Error(`results ${items.length} to ${report.from} are missing`);
      items.splice(report.from, report.items.length, ...whole(report.items));
    }
    return items;
  }

  async until<T>(find: () => T | undefined): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  finished(number: number): Promise<Extract<EngineReport, { type: 'run_finished' }>> {
    return this.until(() => this.of(number).find((report) => report.type === 'run_finished'));
  }

  accepted(number: number): Promise<EngineReport> {
    return this.until(() => this.of(number).find((report) => report.type === 'run_accepted'));
  }

  clear(): void {
    this.reports.length = 0;
  }
}

/** Runs as an orchestrator sends them. */
type Extra = Partial<Omit<DesiredResource, 'body'>>;

export const file = (
  path: string,
  body: Record<string, unknown> = { content: 'x' },
  extra: Extra = {},
): DesiredResource => ({
  module: 'site',
  kind: 'file-unix',
  identity: path,
  id: null,
  name: null,
  body: { path, ...body },
  after: [],
  ...extra,
});

export const directory = (path: string, body: Record<string, unknown> = {}, extra: Extra = {}): DesiredResource => ({
  ...file(path, body, extra),
  kind: 'directory-unix',
});

export const removal = (
  { module, kind, identity, body }: DesiredResource,
  origin: Removal['origin'] = 'created',
): Removal => ({ module, kind, identity, id: null, name: null, body, origin });

export const content = (resources: readonly DesiredResource[], removals: readonly Removal[] = []): RunContent => ({
  resources,
  removals,
});

/** `identity: action status code`, in the order of the run. */
export const summaryOf = (items: readonly RunItem[]): readonly string[] =>
  [...items]
    .sort((a, b) => a.index - b.index)
    .map(({ result: { identity, action, status, error } }) =>
      [identity.split('/').pop(), action, status, error?.code].filter((word) => word !== undefined).join(' '),
    );

/** The result at a place of the run. */
export function resultAt(items: readonly RunItem[], index: number): RunItem['result'] {
  const found = items.find((item) => item.index === index);
  if (!found) throw new Error(`no result of item ${index}`);
  return found.result;
}

/** A script with the identity `manages`; `triggers` names positions of the run. */
export const script = (
  identity: string,
  body: Record<string, unknown>,
  extra: Extra & { readonly triggers?: Record<string, number[]> } = {},
): DesiredResource => ({
  module: 'site',
  kind: 'script',
  identity,
  id: null,
  name: null,
  body: { program: 'sh', manages: identity, ...body },
  after: Object.values(extra.triggers ?? {}).flat(),
  ...extra,
});

/** The orchestrator's end of a link, which says what a test makes it say. */
const decodeFromAgent = agentDecoder();

export class ScriptedOrchestrator {
  readonly socket: WebSocket;
  /** Everything that the agent said, each held against the protocol. */
  readonly heard: AgentMessage[] = [];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  private waiting: (() => void)[] = [];

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data) => {
      const message = decodeFromAgent(data.toString());
      if (message instanceof UnknownMessage) throw new Error(`the agent sent a message of unknown type: ${data}`);
      this.heard.push(message);
      for (const wake of this.waiting.splice(0)) wake();
    });
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
  }

  say(...messages: readonly OrchestratorMessage[]): void {
    for (const message of messages) this.socket.send(JSON.stringify(message));
  }

  status(status: 'pending' | 'approved', name: string | null = null): void {
    this.say({ type: 'status', status, protocol_version: 1, name });
  }

  /** Sends a run in parts of about that many bytes. */
  run(
    { type: _, resources: __, removals: ___, parts: ____, ...head }: RunHead,
    content: RunContent,
    partSize = 2_000,
  ): void {
    this.say(...cutRun(head, content, { partSize }));
  }

  async until<T>(find: () => T | undefined): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  /** The next message of a type, counted from the first. */
  next<T extends AgentMessage['type']>(type: T, number = 1): Promise<AgentMessageOf<T>> {
    const isWanted = (message: AgentMessage): message is AgentMessageOf<T> => message.type === type;
    return this.until(() => this.heard.filter(isWanted)[number - 1]);
  }

  /** Approves the agent once it has said hello; resolves with its inventory. */
  async approve(): Promise<AgentMessageOf<'inventory'>> {
    await this.next('hello');
    this.status('approved', 'web-01');
    return this.next('inventory');
  }
}

/** The results of an engine that was not asked for them in short. */
export function whole(entries: readonly RunEntry[]): RunItem[] {
  return entries.map((entry) => {
    if (isUnchanged(entry)) throw new Error('results came in short');
    return entry;
  });
}
