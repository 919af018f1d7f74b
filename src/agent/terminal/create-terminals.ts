/** The terminals that `orch agent` runs with. */

import { spawn } from 'node:child_process';
import type { Logger } from '../../kernel/logger.js';
import type { AgentSettingsFile } from '../settings-file.js';
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

/** One line in the system's log of logins, where administrators look for who was on the machine. */
const PATH = '/usr/bin:/bin:/usr/sbin:/sbin';

/**
 * A machine without such a log, or without the program that writes to it, has none: nothing fails then.
 * @param path where that program is looked for
 */
export function writeAuthLog(line: string, path = PATH): void {
  const text = line.replace(/[^\x20-\x7e]/g, '?');
  try {
    const args = ['-p', 'authpriv.notice', '-t', 'orch', '--', text];
    spawn('logger', args, { env: { PATH: path }, stdio: 'ignore' })
      .on('error', () => undefined)
      .unref();
  } catch {
    // No process left: the session is not to suffer.
  }
}
