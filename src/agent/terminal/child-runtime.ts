/** The common part of the agent's child processes: their messages to the agent, their log, and the agent's key. */
import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { loadKey } from '../../identity/private-key.js';
import type { Clock } from '../../kernel/clock.js';
import { type Logger, remoteLogger } from '../../kernel/logger.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';
import type { HostLog } from './host-messages.js';

interface ChildRuntime<From> {
  readonly post: (message: From) => void;
  readonly logger: Logger;
  readonly privateKey: KeyObject;
  readonly clock: Clock;
  readonly pace: { readonly pingInterval: number; readonly deadAfter: number };
}

/** Prepares this process, which the agent has forked. Signals are left to the agent, because a service manager signals all processes. */
export function childRuntime<From>(): ChildRuntime<From> {
  const [dataDir] = process.argv.slice(2);
  if (dataDir === undefined || process.send === undefined) throw new Error('this is started by the agent');
  const post = (message: From | HostLog): void => {
    // The agent may have ended.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
  };
  const logger = remoteLogger((level, message, fields) => post({ is: 'log', level, message, fields }));
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => undefined);
  return {
    post,
    logger,
    privateKey: loadKey(join(dataDir, 'identity.key')),
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    pace: { pingInterval: TERMINAL_LIMITS.pingInterval, deadAfter: TERMINAL_LIMITS.deadAfter },
  };
}
