/** Works on runs one after the other: surveys and applies, the latter through the journal. */

import { isFault, messageOf } from '../../kernel/fault.js';
import { type FaultCode, isFaultCode } from '../../kernel/fault-code.js';
import type { Logger } from '../../kernel/logger.js';
import type { Host } from '../../resources/host.js';
import type { AgentMessageOf, OrchestratorMessageOf, RunEnd } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import { apply, type StopCause } from '../converge/apply.js';
import { recover } from '../converge/recover.js';
import { survey } from '../converge/survey.js';
import type { Journal, JournalledRun, RunError } from '../journal.js';
import { resultMessages } from './report.js';
import type { EngineReport, RunEngine } from './run-engine.js';

export interface EngineOptions {
  readonly journal: Journal;
  /** A fresh view of the machine for each run. */
  readonly createHost: () => Host;
  readonly logger: Logger;
}

interface Active {
  readonly head: OrchestratorMessageOf<'run'>;
  readonly isApply: boolean;
  stopped: StopCause | null;
}

interface Finish {
  readonly end: RunEnd;
  readonly results: number;
  readonly observed?: string | null;
  readonly error?: RunError | null;
}

export class Engine implements RunEngine {
  private readonly options: EngineOptions;
  private readonly listeners = new Set<(report: EngineReport) => void>();
  private readonly active = new Map<string, Active>();
  /** The end of everything that was begun so far; each run waits for the one before. */
  private tail: Promise<void>;
  private stopping = false;

  constructor(options: EngineOptions) {
    this.options = options;
    this.tail = this.recoverAll();
  }

  subscribe(listener: (report: EngineReport) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async inventory(): Promise<AgentMessageOf<'inventory'>['runs']> {
    await this.recovered;
    return this.options.journal.runs().map((run) => ({
      run_id: run.id,
      state: run.end === null ? 'running' : 'finished',
      results: run.items.length,
    }));
  }

  begin(head: OrchestratorMessageOf<'run'>, content: RunContent): void {
    if (this.active.has(head.run_id)) return;
    const isApply = head.mode === 'apply';
    if (this.stopping) {
      this.finish(head.run_id, {
        end: 'interrupted',
        results: 0,
        error: fault('interrupted', 'the agent is stopping'),
      });
      return;
    }
    if (isApply) for (const run of this.active.values()) if (!run.isApply) run.stopped = 'cancelled';
    const active: Active = { head, isApply, stopped: null };
    this.active.set(head.run_id, active);
    this.tail = this.tail.then(() => this.work(active, content)).finally(() => this.active.delete(head.run_id));
  }

  cancel(runId: string): void {
    const run = this.active.get(runId);
    if (run !== undefined) run.stopped ??= 'cancelled';
  }

  resume(runId: string, from: number): void {
    const run = this.options.journal.find(runId);
    if (run === undefined) return;
    this.tell(...resultMessages(runId, from, run.items.slice(from)));
    if (run.end !== null) this.finish(runId, { end: run.end, results: run.items.length, error: run.error });
  }

  acknowledge(runId: string): void {
    this.options.journal.acknowledge(runId);
  }

  disconnected(): void {
    for (const run of this.active.values()) if (!run.isApply) run.stopped = 'cancelled';
  }

  async stop(): Promise<void> {
    this.stopping = true;
    for (const run of this.active.values()) run.stopped ??= 'interrupted';
    await this.tail;
    this.options.journal.close();
  }

  private recovered: Promise<void> = Promise.resolve();

  private async recoverAll(): Promise<void> {
    const work = async () => {
      for (const run of this.options.journal.runs()) if (run.end === null) await this.recoverRun(run);
    };
    this.recovered = work();
    await this.recovered.catch((error) => {
      this.options.logger.error('an interrupted apply could not be looked at', { reason: messageOf(error) });
    });
  }

  private async recoverRun(run: JournalledRun): Promise<void> {
    const { journal, createHost, logger } = this.options;
    logger.warn('an apply was interrupted', { operation_id: run.id, results: run.items.length });
    const finished = new Set(run.items.map(({ index }) => index));
    const from = run.items.length;
    const items = await recover({ content: run, host: createHost(), intents: run.intents, finished });
    const error = fault('interrupted', 'the agent went down while it worked on this operation');
    journal.append({ t: 'items', run: run.id, items });
    journal.append({ t: 'end', run: run.id, end: 'interrupted', error });
    this.tell(...resultMessages(run.id, from, items));
    this.finish(run.id, { end: 'interrupted', results: run.items.length, error });
  }

  private async work(active: Active, content: RunContent): Promise<void> {
    const { head, isApply } = active;
    try {
      this.finish(head.run_id, await (isApply ? this.apply(active, content) : this.survey(active, content)));
    } catch (error) {
      this.options.logger.error('a run failed as a whole', { run_id: head.run_id, reason: messageOf(error), error });
      const code = isFault(error) ? error.code : 'internal';
      const results = this.options.journal.find(head.run_id)?.items.length ?? 0;
      this.finish(head.run_id, { end: 'interrupted', results, error: fault(code, messageOf(error)) });
    }
  }

  private async survey(active: Active, content: RunContent): Promise<Finish> {
    const { run_id: runId, mode } = active.head;
    this.tell({ type: 'run_accepted', run_id: runId });
    let results = 0;
    let failed = false;
    const { cancelled, observed } = await survey({
      content,
      host: this.options.createHost(),
      isCancelled: () => active.stopped !== null,
      onItems: (items) => {
        this.tell(...resultMessages(runId, results, items));
        results += items.length;
        failed ||= items.some(({ result }) => result.status === 'failed');
      },
    });
    if (cancelled) return { end: active.stopped ?? 'cancelled', results };
    return { end: failed ? 'failed' : 'succeeded', results, observed: mode === 'plan' ? observed : null };
  }

  private async apply(active: Active, content: RunContent): Promise<Finish> {
    const { journal } = this.options;
    const { run_id: runId, epoch, generation } = active.head;
    const known = journal.find(runId);
    if (known !== undefined) return this.again(known);
    const refusal = await this.refusalOf(active, content);
    if (refusal !== null) return { end: 'refused', results: 0, error: refusal };
    journal.append({ t: 'accepted', run: runId, epoch, generation, ...content });
    this.tell({ type: 'run_accepted', run_id: runId });
    const end = await this.applyJournalled(active, content);
    journal.append({ t: 'end', run: runId, end, error: null });
    return { end, results: journal.find(runId)?.items.length ?? 0 };
  }

  private applyJournalled(active: Active, content: RunContent): Promise<RunEnd> {
    const { journal, createHost } = this.options;
    const { run_id: runId } = active.head;
    let reported = 0;
    return apply({
      content,
      host: createHost(),
      stopped: () => active.stopped,
      journal: {
        intend: (intents) => journal.append({ t: 'intent', run: runId, intents }),
        record: (items) => journal.append({ t: 'items', run: runId, items }),
      },
      onItems: (items) => {
        this.tell(...resultMessages(runId, reported, items));
        reported += items.length;
      },
    });
  }

  /** A run that was delivered a second time: what is in the journal is told again. */
  private again(known: JournalledRun): Finish {
    this.tell({ type: 'run_accepted', run_id: known.id }, ...resultMessages(known.id, 0, known.items));
    return { end: known.end ?? 'interrupted', results: known.items.length, error: known.error };
  }

  private async refusalOf({ head, stopped }: Active, content: RunContent): Promise<RunError | null> {
    if (stopped !== null) return fault(stopped, `the operation was ${stopped} before it began`);
    if (!this.options.journal.isNewer(head.epoch, head.generation)) {
      return fault(
        'stale_generation',
        'this agent has seen a newer operation; the orchestrator may have been restored',
      );
    }
    if (head.expect == null) return null;
    const seen = await survey({
      content,
      host: this.options.createHost(),
      isCancelled: () => false,
      onItems: () => undefined,
    });
    return seen.observed === head.expect
      ? null
      : fault('plan_stale', 'the machine has changed since the plan was made');
  }

  private finish(runId: string, { end, results, observed = null, error = null }: Finish): void {
    this.tell({ type: 'run_finished', run_id: runId, end, results, observed, error });
  }

  private tell(...reports: readonly EngineReport[]): void {
    for (const report of reports) for (const listener of this.listeners) listener(report);
  }
}

/** Messages cross the link and are bounded there. */
const fault = (code: FaultCode, message: string): RunError => ({
  code: isFaultCode(code) ? code : 'internal',
  message: message.slice(0, 4096),
});
