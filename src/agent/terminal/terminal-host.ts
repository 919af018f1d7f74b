/**
 * The process of the terminals: the agent starts it with the first one, and it ends with the agent. What runs in terminals
 * inherits from this process, never from the agent's own.
 */
import { join } from 'node:path';
import { loadKey } from '../../identity/private-key.js';
import type { LogFields } from '../../kernel/logger.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';
import { TerminalHost } from './host.js';
import type { FromHost, ToHost } from './host-messages.js';

const [dataDir] = process.argv.slice(2);
if (dataDir === undefined || process.send === undefined) throw new Error('this is started by the agent');

const say = (message: FromHost): void => {
  // The agent may be gone already.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
};
const at =
  (level: 'debug' | 'info' | 'warn' | 'error') =>
  (message: string, fields: LogFields = {}) =>
    say({ is: 'log', level, message, fields });
const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => logger };

const host = new TerminalHost({
  privateKey: loadKey(join(dataDir, 'identity.key')),
  clock: { now: () => Date.now(), monotonic: () => performance.now() },
  pace: { pingInterval: TERMINAL_LIMITS.pingInterval, deadAfter: TERMINAL_LIMITS.deadAfter },
  logger,
  say,
});

// Who stops the agent may signal all of its processes: the agent says what is to be done.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => undefined);
process.on('message', (message: ToHost) => {
  if (message.do === 'stop') void host.stop().then(() => process.exit(0));
  else host.take(message);
});
process.on('disconnect', () => void host.abandon().then(() => process.exit(0)));
