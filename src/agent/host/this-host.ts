/** The Host of the machine that this process runs on. */
import { Fault } from '../../kernel/fault.js';
import type { Host } from '../../resources/host.js';
import { UnixHost } from './unix-host.js';

/** A fresh one for each run. Throws `unsupported_on_platform` where there is none. */
export function thisHost(): Host {
  if (process.platform === 'linux') return new UnixHost({ platform: 'linux' });
  if (process.platform === 'darwin') return new UnixHost({ platform: 'macos' });
  throw new Fault('unsupported_on_platform', `orch cannot manage files on ${process.platform} yet`, {
    hint: 'run the agent on Linux or macOS',
  });
}
