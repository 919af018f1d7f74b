/** The engine as the link sees it, and the messages between the threads of both. */

import type { LogFields } from '../../kernel/logger.js';
import type { SourceFile } from '../../resources/host.js';
import type { AgentMessageOf, OrchestratorMessageOf } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import type { FetchedContent } from '../content/content-requests.js';

/** A report about a run, in the form of the link. An apply's results are in the journal before they are reported. */
export type EngineReport = AgentMessageOf<
  'run_accepted' | 'run_awaiting' | 'run_confirm' | 'run_results' | 'run_finished'
>;

/** The message that opens a run. */
export type RunHead = OrchestratorMessageOf<'run'>;

/** The unacknowledged applies. */
export type Inventory = AgentMessageOf<'inventory'>['runs'];

export interface RunEngine {
  /** Calls the listener with every later report; returns a function that ends this. */
  subscribe(listener: (report: EngineReport) => void): () => void;
  /** Returns every apply that began before the call. Rejects with the Fault that keeps the engine from working. */
  inventory(): Promise<Inventory>;
  /**
   * Begins a run. A known apply is reported again. An apply ends plans and drift checks. A run beside an apply, and an apply
   * that is not newer than all before it, finish as `refused`.
   */
  begin(head: RunHead, content: RunContent): void;
  /** Stops a run at its next boundary; ignores unknown runs. */
  cancel(runId: string): void;
  /** Reports the results of an apply again from a position on, and its end if it has ended. */
  resume(runId: string, from: number): void;
  /** Forgets a finished apply. */
  acknowledge(runId: string): void;
  /** Keeps an apply that awaits this confirmation; ignores others. */
  confirmed(runId: string): void;
  /** Called once a new connection is approved: an apply that awaits its confirmation asks for it. */
  reached(): void;
  /** Called with the reason why the orchestrator cannot be reached. */
  unreached(reason: string): void;
  /** Ends plans and drift checks, because the link is gone; applies continue. */
  disconnected(): void;
  /** Sets how files get into the data directory; without it, they come from nowhere. */
  setFetch?(fetch: FetchContent): void;
  /** Finishes the group in progress, syncs the journal and ends. */
  stop(): Promise<void>;
}

/** Brings a file into the data directory. Rejects with `content_unavailable`. */
export type FetchContent = (file: SourceFile) => Promise<void>;

/** Messages from the link's thread to the engine's. */
export type ToWorker =
  | { readonly do: 'begin'; readonly head: RunHead; readonly content: RunContent }
  | { readonly do: 'cancel' | 'acknowledge' | 'confirmed'; readonly runId: string }
  | { readonly do: 'unreached'; readonly reason: string }
  | { readonly do: 'resume'; readonly runId: string; readonly from: number }
  | { readonly do: 'settings'; readonly settings: EngineSettings }
  | { readonly do: 'fetched'; readonly sha256: string; readonly failure: FetchedContent }
  | { readonly do: 'inventory' | 'reached' | 'disconnected' | 'stop' };

/** Settings that may change while the engine runs. */
export interface EngineSettings {
  /** Maximum seconds of a script. */
  readonly scriptTimeoutSecs: number;
}

export type FromWorker =
  | { readonly is: 'report'; readonly report: EngineReport }
  /** Asks for a file, which `fetched` answers. */
  | { readonly is: 'wanted'; readonly file: SourceFile }
  /** Answers to `inventory`, in the order of the questions. */
  | { readonly is: 'inventory'; readonly runs: Inventory }
  | {
      readonly is: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly message: string;
      readonly fields: LogFields;
    }
  /** The engine cannot start, for example because of an unreadable journal; the thread ends afterwards. */
  | { readonly is: 'failed'; readonly code: string; readonly message: string; readonly hint: string | null };

export interface WorkerData {
  readonly dataDir: string;
  readonly settings: EngineSettings;
}
