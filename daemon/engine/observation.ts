/** One plan or drift check on one agent: lives in memory only, and ends with its connection. */
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { ResourceResult } from '../../src/resources/result.js';
import type { AgentMessageOf, OrchestratorMessage, RunItem } from '../../src/wire/messages.js';
import { cutRun, type RunContent } from '../../src/wire/parts.js';
import { RunItems } from './run-items.js';

/** What the agent said at the end. */
export interface Observed {
  /** In the order of the run. */
  readonly results: readonly ResourceResult[];
  readonly end: AgentMessageOf<'run_finished'>['end'];
  /** SHA-256 of what a plan observed. */
  readonly observed: string | null;
  readonly error: AgentMessageOf<'run_finished'>['error'];
}

export interface ObservationOptions {
  readonly runId: string;
  readonly nodeId: NodeId;
  readonly mode: 'plan' | 'drift';
  readonly content: RunContent;
  /** Told of each result as it comes. */
  readonly onResult: (result: ResourceResult) => void;
}

export class Observation {
  readonly runId: string;
  readonly nodeId: NodeId;
  readonly mode: 'plan' | 'drift';
  /** Rejects with the Fault given to `fail`. */
  readonly outcome: Promise<Observed>;
  private readonly content: RunContent;
  private readonly items: RunItems;
  private readonly onResult: (result: ResourceResult) => void;
  private readonly received: RunItem[] = [];
  private resolve: (observed: Observed) => void = () => undefined;
  private reject: (fault: Fault) => void = () => undefined;

  constructor(options: ObservationOptions) {
    this.runId = options.runId;
    this.nodeId = options.nodeId;
    this.mode = options.mode;
    this.content = options.content;
    this.items = new RunItems(options.content);
    this.onResult = options.onResult;
    this.outcome = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // Whoever waits gets the rejection; when nobody does any more, it is no unhandled one.
    this.outcome.catch(() => undefined);
  }

  /** What to send to begin it. */
  messages(): readonly OrchestratorMessage[] {
    return cutRun({ run_id: this.runId, mode: this.mode, epoch: 0, generation: 0 }, this.content);
  }

  /** Throws `protocol_violation` for results that are not of this run or not in sequence. */
  take({ from, items }: AgentMessageOf<'run_results'>): void {
    if (from !== this.received.length) {
      throw violation(this.runId, `results from ${from} when ${this.received.length} were next`);
    }
    const checked = this.items.check(items);
    this.items.note(checked.map((item) => item.index));
    this.received.push(...checked);
    for (const { result } of checked) this.onResult(result);
  }

  /** Throws `protocol_violation` when the numbers do not add up. */
  finish({ end, results, observed, error }: AgentMessageOf<'run_finished'>): void {
    if (results !== this.received.length) {
      throw violation(this.runId, `${results} results in all after ${this.received.length}`);
    }
    const complete = this.received.length === this.items.count;
    if (end === 'succeeded' && !complete) throw violation(this.runId, 'success without all results');
    const ordered = [...this.received].sort((a, b) => a.index - b.index);
    this.resolve({ results: ordered.map((item) => item.result), end, observed, error });
  }

  fail(fault: Fault): void {
    this.reject(fault);
  }
}

const violation = (runId: string, what: string): Fault =>
  new Fault('protocol_violation', `the agent reported ${what} for run ${runId}`);
