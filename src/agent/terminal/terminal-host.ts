/**
 * Entry of the terminal host, a child process of the agent. It starts with the first session and ends with the agent. Programs
 * inherit from this process, never from the agent's own.
 */
import { childRuntime } from './child-runtime.js';
import { TerminalHost } from './host.js';
import type { FromHost, ToHost } from './host-messages.js';

const host = new TerminalHost(childRuntime<FromHost>());

process.on('message', (message: ToHost) => {
  if (message.do === 'stop') void host.stop().then(() => process.exit(0));
  else host.take(message);
});
process.on('disconnect', () => void host.abandon().then(() => process.exit(0)));
