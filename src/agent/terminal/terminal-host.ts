/**
 * Entry of the terminal host, a child process of the agent. It starts with the first session and ends with the agent. Programs
 * inherit from this process, never from the agent's own.
 */
import { join } from 'node:path';
import { loadKey } from '../../identity/private-key.js';
import type { LogFields } from '../../kernel/logger.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';
import { TerminalHost } from './host.js';
import type { FromHost, ToHost } from './host-messages.js';

const [dataDir] = process.argv.slice(2);
if (dataDir === undefined || process.send === undefined) throw new Error('this is started by the agent');

const post = (message: FromHost): void => {
  // The agent may have ended.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
};
const at =
  (level: 'debug' | 'info' | 'warn' | 'error') =>
  (message: string, fields: LogFields = {}) =>
    post({ is: 'log', level, message, fields });
const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => logger };

const host = new TerminalHost({
  privateKey: loadKey(join(dataDir, 'identity.key')),
  clock: { now: () => Date.now(), monotonic: () => performance.now() },
  pace: { pingInterval: TERMINAL_LIMITS.pingInterval, deadAfter: TERMINAL_LIMITS.deadAfter },
  logger,
  post: post,
});

// A service manager may signal all processes of the agent. The agent decides what to do.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => undefined);
process.on('message', (message: ToHost) => {
  if (message.do === 'stop') void host.stop().then(() => process.exit(0));
  else host.take(message);
});
process.on('disconnect', () => void host.abandon().then(() => process.exit(0)));
