/** The engine that `orch agent` runs with. */
import type { Logger } from '../../kernel/logger.js';
import { EngineThread } from './engine-thread.js';
import type { RunEngine } from './run-engine.js';

export const createEngine = (options: { readonly dataDir: string; readonly logger: Logger }): RunEngine =>
  new EngineThread(options);
