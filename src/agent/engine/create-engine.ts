/** The engine that `orch agent` runs with. */
import type { Logger } from '../../kernel/logger.js';
import type { AgentSettingsFile } from '../settings-file.js';
import { EngineThread } from './engine-thread.js';
import type { RunEngine } from './run-engine.js';

export interface CreateEngineOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  readonly file: AgentSettingsFile;
}

/** Takes over settings as they change. */
export function createEngine({ dataDir, logger, file }: CreateEngineOptions): RunEngine {
  const settings = () => ({ scriptTimeoutSecs: file.settings.script_timeout });
  const engine = new EngineThread({ dataDir, logger, settings });
  file.subscribe(() => engine.configure());
  return engine;
}
