/**
 * Entry of the process of the forwards and copies, a child process of the agent. It starts with the first session and ends with the agent. A
 * forward at full speed delays neither the link nor the terminals, which are served by other processes.
 */
import type { SessionTarget } from '../../kernel/forward-target.js';
import { KeptParts } from '../copy/kept-parts.js';
import { childRuntime } from '../terminal/child-runtime.js';
import type { DialOrder, HostLog } from '../terminal/host-messages.js';
import { ForwardSession } from './forward-session.js';

/** Messages of the agent to this process. */
export type ToForwardHost =
  /** Dials back, and connects to these targets on request. */
  | {
      readonly do: 'open';
      readonly sessionId: string;
      readonly targets: readonly SessionTarget[];
      /** Paths that the settings permit copies; empty for other sessions. */
      readonly permitted: readonly string[];
      readonly dial: DialOrder;
    }
  /** Ends the session and its connections. */
  | { readonly do: 'close'; readonly sessionId: string; readonly reason: string }
  /** Ends everything and the process. */
  | { readonly do: 'stop' };

/** The session has ended. */
export interface ForwardGone {
  readonly is: 'gone';
  readonly sessionId: string;
  readonly reason: string;
}

type FromForwardHost = ForwardGone | HostLog;

const { post, privateKey, clock, pace } = childRuntime<FromForwardHost>();
const sessions = new Map<string, ForwardSession>();
const parts = new KeptParts();

const load = (): number => [...sessions.values()].reduce((sum, { connections }) => sum + connections, 0);

function take(message: ToForwardHost): void {
  switch (message.do) {
    case 'open': {
      const { sessionId, targets, permitted, dial } = message;
      const onGone = (reason: string) => {
        sessions.delete(sessionId);
        post({ is: 'gone', sessionId, reason });
      };
      sessions.set(
        sessionId,
        new ForwardSession({
          ...{ id: sessionId, targets, permitted, parts, dial, load, onGone },
          socket: { privateKey, clock, pace },
        }),
      );
      return;
    }
    case 'close':
      sessions.get(message.sessionId)?.close(message.reason);
      return;
    case 'stop':
      end('the agent stops');
  }
}

function end(reason: string): void {
  for (const session of [...sessions.values()]) session.close(reason);
  // Lets the close frames leave, and copies close their files.
  setTimeout(() => {
    parts.removeAll();
    process.exit(0);
  }, 200);
}

process.on('message', take);
process.on('disconnect', () => end('the agent has ended'));
