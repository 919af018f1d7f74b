/** What the link needs of the engine, wherever it runs: begin and cancel runs, and tell their results again. */
import type { AgentMessageOf, OrchestratorMessageOf } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';

/** What the engine has to say about a run, ready for the link. An apply's results are in the journal before they come. */
export type EngineReport = AgentMessageOf<'run_accepted' | 'run_results' | 'run_finished'>;

export interface RunEngine {
  /** Called with every report from now on; returns what ends that. */
  subscribe(listener: (report: EngineReport) => void): () => void;
  /** The applies that have not been acknowledged, for the `inventory` message. */
  inventory(): Promise<AgentMessageOf<'inventory'>['runs']>;
  begin(head: OrchestratorMessageOf<'run'>, content: RunContent): void;
  /** Stops a run at its next boundary; unknown ones are ignored. */
  cancel(runId: string): void;
  /** Reports the results of an apply again from that position, and its end when it has one. */
  resume(runId: string, from: number): void;
  /** Forgets a finished apply. */
  acknowledge(runId: string): void;
  /** Plans and drift checks have nobody to report to any more; applies go on. */
  disconnected(): void;
  /** Lets the resource that is being applied finish, syncs the journal and ends. */
  stop(): Promise<void>;
}
