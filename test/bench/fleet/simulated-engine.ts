/** An engine that changes nothing and answers at once. What it has applied stays unchanged in later runs. */
import { createHash } from 'node:crypto';
import { resultMessages } from '../../../src/agent/engine/apply-run.js';
import type { EngineReport, Inventory, RunEngine, RunHead } from '../../../src/agent/engine/run-engine.js';
import type { DesiredResource, Removal } from '../../../src/resources/desired.js';
import type { RunItem } from '../../../src/wire/messages.js';
import type { RunContent } from '../../../src/wire/parts.js';

interface KeptRun {
  readonly items: readonly RunItem[];
  readonly finished: EngineReport;
}

export class SimulatedEngine implements RunEngine {
  private readonly listeners = new Set<(report: EngineReport) => void>();
  /** Applies that the orchestrator has not acknowledged. */
  private readonly kept = new Map<string, KeptRun>();
  /** Resources that were applied. */
  private readonly applied = new Set<string>();
  private readonly onRun: (mode: RunHead['mode']) => void;

  /** @param onRun called after each run */
  constructor(onRun: (mode: RunHead['mode']) => void) {
    this.onRun = onRun;
  }

  subscribe(listener: (report: EngineReport) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async inventory(): Promise<Inventory> {
    return [...this.kept].map(([id, { items }]) => ({ run_id: id, state: 'finished', results: items.length }));
  }

  begin({ run_id: id, mode }: RunHead, { resources, removals }: RunContent): void {
    const items = [
      ...resources.map((resource, index) => this.itemOf(resource, index)),
      ...removals.map((removal, index) => removed(removal, resources.length + index)),
    ];
    const observed = mode === 'plan' ? createHash('sha256').update(id).digest('hex') : null;
    const finished: EngineReport = {
      type: 'run_finished',
      run_id: id,
      end: 'succeeded',
      results: items.length,
      observed,
      error: null,
    };
    if (mode === 'apply') {
      for (const resource of resources) this.applied.add(keyOf(resource));
      for (const removal of removals) this.applied.delete(keyOf(removal));
      this.kept.set(id, { items, finished });
    }
    this.report({ type: 'run_accepted', run_id: id }, ...resultMessages(id, 0, items), finished);
    this.onRun(mode);
  }

  resume(runId: string, from: number): void {
    const run = this.kept.get(runId);
    if (run !== undefined) this.report(...resultMessages(runId, from, run.items.slice(from)), run.finished);
  }

  acknowledge(runId: string): void {
    this.kept.delete(runId);
  }

  cancel(): void {
    // Every run has ended before a message could cancel it.
  }

  confirmed(): void {
    // No run asks for a confirmation.
  }

  reached(): void {
    // As above.
  }

  unreached(): void {
    // As above.
  }

  disconnected(): void {
    // No run is in progress.
  }

  async stop(): Promise<void> {
    this.listeners.clear();
  }

  private itemOf(resource: DesiredResource, index: number): RunItem {
    const result = resultOf(resource);
    if (this.applied.has(keyOf(resource))) {
      return { index, result: { ...result, action: 'none', status: 'unchanged' }, existed: true };
    }
    return { index, result: { ...result, action: 'create', status: 'changed' }, existed: false };
  }

  private report(...reports: readonly EngineReport[]): void {
    for (const report of reports) for (const listener of this.listeners) listener(report);
  }
}

const keyOf = ({ module, identity }: DesiredResource | Removal): string => `${module} ${identity}`;

const resultOf = ({ module, kind, identity, id, name }: DesiredResource | Removal) => ({
  module,
  kind,
  identity,
  id,
  name,
  changes: [],
  diff: null,
  sensitive: false,
  reason: null,
  error: null,
  duration_ms: 0,
});

const removed = (removal: Removal, index: number): RunItem => ({
  index,
  result: { ...resultOf(removal), action: 'remove', status: 'changed' },
  existed: true,
});
