/** What the link needs of the engine, wherever it runs: begin and cancel runs, and tell their results again. */
import type { AgentMessageOf, OrchestratorMessageOf } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';

/** What the engine has to say about a run, ready for the link. An apply's results are in the journal before they come. */
export type EngineReport = AgentMessageOf<'run_accepted' | 'run_results' | 'run_finished'>;

/** Opens a run. */
export type RunHead = OrchestratorMessageOf<'run'>;

/** The applies that have not been acknowledged. */
export type Inventory = AgentMessageOf<'inventory'>['runs'];

export interface RunEngine {
  /** Called with every report from now on; returns what ends that. */
  subscribe(listener: (report: EngineReport) => void): () => void;
  /** Holds every apply that was begun before the call. Rejects with the Fault that keeps the engine from working. */
  inventory(): Promise<Inventory>;
  /**
   * Begins a run. An apply that is known already is told again. An apply ends plans and drift checks; nothing begins
   * beside an apply, and no apply that is not newer than all before it: such runs finish as `refused`.
   */
  begin(head: RunHead, content: RunContent): void;
  /** Stops a run at its next boundary; unknown ones are ignored. */
  cancel(runId: string): void;
  /** Reports the results of an apply again from that position, and its end when it has one. */
  resume(runId: string, from: number): void;
  /** Forgets a finished apply. */
  acknowledge(runId: string): void;
  /** Plans and drift checks have nobody to report to any more; applies go on. */
  disconnected(): void;
  /** Lets the group that is being applied finish, syncs the journal and ends. */
  stop(): Promise<void>;
}
