/** The Host of the machine that this process runs on. */
import { Fault } from '../../kernel/fault.js';
import type { Host } from '../../resources/host.js';
import { UnixHost } from './unix-host.js';
import { WindowsHost } from './windows-host.js';

export interface ThisHostOptions {
  /** Aborted when the run is cancelled or the agent stops; the reason tells which. */
  readonly signal?: AbortSignal | undefined;
  /** The agent's own directory, for what programs are given to read. */
  readonly dataDir?: string | undefined;
  /** Seconds that a script may take. */
  readonly scriptTimeoutSecs?: number | undefined;
}

/** A fresh one for each run. Throws `unsupported_on_platform` where there is none. */
export function thisHost(options: ThisHostOptions = {}): Host {
  if (process.platform === 'linux') return new UnixHost({ ...options, platform: 'linux' });
  if (process.platform === 'darwin') return new UnixHost({ ...options, platform: 'macos' });
  if (process.platform === 'win32') return new WindowsHost(options);
  throw new Fault('unsupported_on_platform', `orch cannot manage files on ${process.platform} yet`, {
    hint: 'run the agent on Linux, macOS or Windows',
  });
}
