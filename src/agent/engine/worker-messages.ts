/** What goes between the thread of the link and the thread of the engine. */
import type { LogFields } from '../../kernel/logger.js';
import type { RunContent } from '../../wire/parts.js';
import type { EngineReport, Inventory, RunHead } from './run-engine.js';

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
