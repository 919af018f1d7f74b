/** What the link needs of the engine, wherever it runs: begin and cancel runs, and tell their results again. */

import type { LogFields } from '../../kernel/logger.js';
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

/** What goes between the thread of the link and the thread of the engine. */
export type ToWorker =
  | { readonly do: 'begin'; readonly head: RunHead; readonly content: RunContent }
  | { readonly do: 'cancel' | 'acknowledge'; readonly runId: string }
  | { readonly do: 'resume'; readonly runId: string; readonly from: number }
  | { readonly do: 'settings'; readonly settings: EngineSettings }
  | { readonly do: 'inventory' | 'disconnected' | 'stop' };

/** What may change while the engine runs. */
export interface EngineSettings {
  /** Seconds that a script may take. */
  readonly scriptTimeoutSecs: number;
}

export type FromWorker =
  | { readonly is: 'report'; readonly report: EngineReport }
  /** Answers to `inventory` come in the order of the questions. */
  | { readonly is: 'inventory'; readonly runs: Inventory }
  | {
      readonly is: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly message: string;
      readonly fields: LogFields;
    }
  /** The engine cannot work, such as with a damaged journal; the thread ends after this. */
  | { readonly is: 'failed'; readonly code: string; readonly message: string; readonly hint: string | null };

export interface WorkerData {
  readonly dataDir: string;
  readonly settings: EngineSettings;
}
