/** What goes between the thread of the link and the thread of the engine. */
import type { LogFields } from '../../kernel/logger.js';
import type { AgentMessageOf, OrchestratorMessageOf } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import type { EngineReport } from './run-engine.js';

export type ToWorker =
  | { readonly do: 'begin'; readonly head: OrchestratorMessageOf<'run'>; readonly content: RunContent }
  | { readonly do: 'cancel' | 'acknowledge'; readonly runId: string }
  | { readonly do: 'resume'; readonly runId: string; readonly from: number }
  | { readonly do: 'inventory' | 'disconnected' | 'stop' };

export type FromWorker =
  | { readonly is: 'report'; readonly report: EngineReport }
  | { readonly is: 'inventory'; readonly runs: AgentMessageOf<'inventory'>['runs'] }
  | {
      readonly is: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly message: string;
      readonly fields: LogFields;
    }
  /** The engine cannot go on, such as with a damaged journal. */
  | { readonly is: 'failed'; readonly code: string; readonly message: string; readonly hint: string | null }
  | { readonly is: 'stopped' };

export interface WorkerData {
  readonly dataDir: string;
}
