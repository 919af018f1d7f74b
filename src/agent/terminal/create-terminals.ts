/** Creates the terminals and forwards of `orch agent`, and writes their lines to the system's log of logins. */

import { spawn } from 'node:child_process';
import type { Logger } from '../../kernel/logger.js';
import { Forwards } from '../forward/forwards.js';
import type { AgentSettingsFile } from '../settings-file.js';
import { Terminals } from './terminals.js';

export interface CreateTerminalsOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  readonly file: AgentSettingsFile;
}

/** Creates the terminals, which follow changes of the settings. */
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

/** Creates the forwards, which follow changes of the settings. */
export function createForwards({ dataDir, logger, file }: CreateTerminalsOptions): Forwards {
  const forwards = new Forwards({
    dataDir,
    logger,
    settings: () => file.settings,
    authLog: (line) => writeAuthLog(line),
  });
  file.subscribe(() => forwards.configure());
  return forwards;
}

const PATH = '/usr/bin:/bin:/usr/sbin:/sbin';

/**
 * Writes a line to the system's log of logins. Does nothing on a machine without that log or without `logger`.
 * @param path search path for `logger`
 */
export function writeAuthLog(line: string, path = PATH): void {
  const text = line.replace(/[^\x20-\x7e]/g, '?');
  try {
    const args = ['-p', 'authpriv.notice', '-t', 'orch', '--', text];
    spawn('logger', args, { env: { PATH: path }, stdio: 'ignore' })
      .on('error', () => undefined)
      .unref();
  } catch {
    // Without a free process the session continues unlogged.
  }
}
