/** The terminals that `orch agent` runs with. */
import type { Logger } from '../../kernel/logger.js';
import type { AgentSettingsFile } from '../settings-file.js';
import { writeAuthLog } from './auth-log.js';
import { Terminals } from './terminals.js';

export interface CreateTerminalsOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  readonly file: AgentSettingsFile;
}

/** Takes over settings as they change. */
export function createTerminals({ dataDir, logger, file }: CreateTerminalsOptions): Terminals {
  const terminals = new Terminals({
    dataDir,
    logger,
    settings: () => file.settings,
    authLog: (line) => writeAuthLog(line),
  });
  file.subscribe(() => terminals.configure());
  return terminals;
}
