/** An agent at the level of messages: a machine in memory, a journal, and a link whose every frame the test moves. */
import { createHash } from 'node:crypto';
import type { EngineMessage } from '../../daemon/fleet/connection-registry.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { canonicalJson } from '../../src/kernel/json.js';
import type { Output, ResourceResult } from '../../src/resources/result.js';
import type { AgentMessageOf, OrchestratorMessage, RunEnd, RunItem } from '../../src/wire/messages.js';
import { RunAssembly, type RunContent } from '../../src/wire/parts.js';

export interface JournalledRun {
  readonly content: RunContent;
  readonly items: RunItem[];
  state: 'running' | 'finished';
  cancelled: boolean;
  end: RunEnd;
  error: { code: string; message: string } | null;
}

/** What the script makes of one resource instead of success. */
export type Mishap = 'fail' | 'skip';

export class ScriptedAgent {
  readonly nodeId: NodeId;
  /** Identity to body, as canonical JSON. */
  readonly machine = new Map<string, string>();
  readonly journal = new Map<string, JournalledRun>();
  /** Identities that go wrong. */
  readonly mishaps = new Map<string, Mishap>();
  /** What scripts write, by identity. */
  readonly outputs = new Map<string, Output>();
  /** How often each item of each run was carried out. */
  readonly executions = new Map<string, number>();
  /** What was done in each apply, acknowledged or not. */
  readonly history = new Map<string, readonly RunItem[]>();
  /** Every message that ever arrived. */
  readonly received: OrchestratorMessage[] = [];
  /** Messages on their way, in order; cut with the connection. */
  inbox: OrchestratorMessage[] = [];
  outbox: EngineMessage[] = [];
  connected = false;
  /** Works by itself as soon as it has something to do. */
  diligent = true;
  /** Says nothing about what it is asked. */
  mute = false;
  private highest = [0, 0] as readonly [number, number];
  private assembly: RunAssembly | null = null;
  private observing: { readonly id: string; readonly mode: 'plan' | 'drift'; readonly content: RunContent } | null =
    null;

  constructor(nodeId: NodeId) {
    this.nodeId = nodeId;
  }

  connect(): void {
    this.connected = true;
    const runs = [...this.journal].map(([run_id, run]) => ({ run_id, state: run.state, results: run.items.length }));
    this.outbox.push({ type: 'inventory', runs });
  }

  disconnect(): void {
    this.connected = false;
    this.inbox = [];
    this.outbox = [];
    this.assembly = null;
    this.observing = null;
  }

  /** The process dies in the middle of what it does, and starts again. */
  crash(): void {
    this.disconnect();
    for (const run of this.journal.values()) if (run.state === 'running') this.finish(run, 'interrupted');
  }

  get isBusy(): boolean {
    return [...this.journal.values()].some((run) => run.state === 'running');
  }

  /** Takes the next message; false when there is none. */
  take(): boolean {
    const message = this.inbox.shift();
    if (message === undefined) return false;
    this.received.push(message);
    if (!this.mute) this.handle(message);
    return true;
  }

  /** Does one piece of work; false when there is nothing to do. */
  work(): boolean {
    if (this.mute) return false;
    if (this.observing !== null) {
      this.observe();
      return true;
    }
    for (const [id, run] of this.journal) {
      if (run.state !== 'running') continue;
      const index = run.items.length;
      const total = run.content.resources.length + run.content.removals.length;
      if (run.cancelled || index === total) this.finishAndTell(id, run);
      else this.carryOut(id, run, index);
      return true;
    }
    return false;
  }

  /** SHA-256 of what is on the machine. */
  observed(): string {
    return createHash('sha256')
      .update(canonicalJson(Object.fromEntries(this.machine)))
      .digest('hex');
  }

  private handle(message: OrchestratorMessage): void {
    switch (message.type) {
      case 'run':
        this.assembly = new RunAssembly(message);
        return;
      case 'run_part': {
        const { assembly } = this;
        const content = assembly?.add(message) ?? null;
        if (assembly !== null && content !== null) this.begin(assembly.head, content);
        return;
      }
      case 'run_cancel': {
        const run = this.journal.get(message.run_id);
        if (run?.state === 'running') run.cancelled = true;
        if (this.observing?.id === message.run_id) {
          this.observing = null;
          this.say({
            type: 'run_finished',
            run_id: message.run_id,
            end: 'cancelled',
            results: 0,
            observed: null,
            error: null,
          });
        }
        return;
      }
      case 'run_resume':
        this.resume(message.run_id, message.from);
        return;
      case 'run_ack':
        this.journal.delete(message.run_id);
        return;
      case 'status':
        return;
    }
  }

  private begin(head: RunAssembly['head'], content: RunContent): void {
    const { run_id, mode } = head;
    this.say({ type: 'run_accepted', run_id });
    if (mode !== 'apply') {
      this.observing = { id: run_id, mode, content };
      return;
    }
    if (this.journal.has(run_id)) {
      this.resume(run_id, 0);
      return;
    }
    const run: JournalledRun = {
      content,
      items: [],
      state: 'running',
      cancelled: false,
      end: 'succeeded',
      error: null,
    };
    this.journal.set(run_id, run);
    this.history.set(run_id, run.items);
    const [epoch, generation] = this.highest;
    if (head.epoch < epoch || (head.epoch === epoch && head.generation <= generation)) {
      this.refuse(run_id, run, { code: 'protocol_violation', message: 'stale' });
    } else if (head.expect != null && head.expect !== this.observed()) {
      this.refuse(run_id, run, { code: 'plan_stale', message: 'the machine is not what the plan showed' });
    }
    this.highest = [head.epoch, head.generation];
  }

  private refuse(id: string, run: JournalledRun, error: { code: string; message: string }): void {
    run.error = error;
    this.finish(run, 'refused');
    this.tellEnd(id, run);
  }

  private resume(id: string, from: number): void {
    const run = this.journal.get(id);
    if (run === undefined) return;
    const items = run.items.slice(from);
    if (items.length > 0) this.say({ type: 'run_results', run_id: id, from, items });
    if (run.state === 'finished') this.tellEnd(id, run);
  }

  private carryOut(id: string, run: JournalledRun, index: number): void {
    const key = `${id} ${index}`;
    this.executions.set(key, (this.executions.get(key) ?? 0) + 1);
    const item = this.item(run.content, index, true);
    run.items.push(item);
    this.say({ type: 'run_results', run_id: id, from: run.items.length - 1, items: [item] });
  }

  private finishAndTell(id: string, run: JournalledRun): void {
    const failed = run.items.some(({ result }) => result.status === 'failed' || result.status === 'skipped');
    this.finish(run, run.cancelled ? 'cancelled' : failed ? 'failed' : 'succeeded');
    this.tellEnd(id, run);
  }

  private finish(run: JournalledRun, end: RunEnd): void {
    run.state = 'finished';
    run.end = end;
  }

  private tellEnd(run_id: string, { end, items, error }: JournalledRun): void {
    this.say({ type: 'run_finished', run_id, end, results: items.length, observed: null, error });
  }

  /** A plan or drift check in one go. */
  private observe(): void {
    const { observing } = this;
    if (observing === null) return;
    this.observing = null;
    const { id: run_id, mode, content } = observing;
    const total = content.resources.length + content.removals.length;
    const items = Array.from({ length: total }, (_, index) => this.item(content, index, false));
    if (items.length > 0) this.say({ type: 'run_results', run_id, from: 0, items });
    const end = items.some(({ result }) => result.status === 'failed') ? 'failed' : 'succeeded';
    const observed = mode === 'plan' ? this.observed() : null;
    this.say({ type: 'run_finished', run_id, end, results: items.length, observed, error: null });
  }

  private item({ resources, removals }: RunContent, index: number, change: boolean): RunItem {
    const resource = resources[index];
    const removal = removals[removals.length - 1 - (index - resources.length)];
    const sent = resource ?? removal;
    if (sent === undefined) throw new Error(`no item ${index}`);
    const existed = this.machine.has(sent.identity);
    const wanted = resource === undefined ? undefined : canonicalJson(resource.body);
    const released = removal !== undefined && resource === undefined && removal.origin === 'adopted';
    const differs = released || this.machine.get(sent.identity) !== wanted;
    const mishap = this.mishaps.get(sent.identity);
    const status = mishap
      ? mishap === 'fail'
        ? 'failed'
        : 'skipped'
      : !differs
        ? 'unchanged'
        : change
          ? 'changed'
          : 'pending';
    if (status === 'changed' && !released) {
      if (wanted === undefined) this.machine.delete(sent.identity);
      else this.machine.set(sent.identity, wanted);
    }
    const removing = released ? 'release' : 'remove';
    const action = !differs ? 'none' : resource === undefined ? removing : existed ? 'update' : 'create';
    // Removals run in reverse order, each under its own position.
    const at = resource === undefined ? resources.length + removals.indexOf(sent as never) : index;
    const output = change ? this.outputs.get(sent.identity) : undefined;
    return { index: at, result: resultOf(sent, { status, action }), existed, ...(output ? { output } : {}) };
  }

  private say(message: EngineMessage): void {
    if (this.connected) this.outbox.push(message);
  }
}

export function resultOf(
  { module, kind, identity, id, name }: Pick<ResourceResult, 'module' | 'kind' | 'identity' | 'id' | 'name'>,
  { status, action }: Pick<ResourceResult, 'status' | 'action'>,
): ResourceResult {
  const error = status === 'failed' ? { code: 'apply_failed', message: 'it went wrong' } : null;
  const common = { changes: [], diff: null, sensitive: false, reason: null, duration_ms: 1 };
  return { module, kind, identity, id, name, action, status, error, ...common };
}

export type Results = AgentMessageOf<'run_results'>;
