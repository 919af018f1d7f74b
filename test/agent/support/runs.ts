/** Runs by their messages. */
import type { EngineReport, RunEngine, RunHead } from '../../../src/agent/engine/run-engine.js';
import { agentDecoder, encode } from '../../../src/wire/codec.js';
import type { RunItem } from '../../../src/wire/messages.js';

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
      items.splice(report.from, report.items.length, ...report.items);
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
