/** `systemctl` of this machine. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Systemctl } from '../src/agent/leave.js';
import { messageOf } from '../src/kernel/fault.js';

const run = promisify(execFile);

export const systemctl: Systemctl = async (...args) => {
  try {
    const { stdout } = await run('systemctl', [...args], { timeout: 120_000 });
    return stdout;
  } catch (cause) {
    throw new Error(`systemctl ${args.join(' ')} failed: ${messageOf(cause)}`, { cause });
  }
};
