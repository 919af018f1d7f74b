/** Two connections with one key: the older stays when it is alive (`docs/protocols/agent-link.md`). */
import type { AgentConnection } from './agent-connection.js';

/** Pings a connection; true when anything is heard of it within that many milliseconds, false once it has ended. */
export function answersPing(connection: AgentConnection, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (isAlive: boolean) => {
      clearTimeout(deadline);
      unwatch();
      resolve(isAlive);
    };
    const deadline = setTimeout(() => answer(false), withinMs);
    const unwatch = connection.watch(answer);
    if (connection.state === 'closed') answer(false);
    else connection.ping();
  });
}
