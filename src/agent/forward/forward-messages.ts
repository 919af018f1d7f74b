/** Messages between the agent's process and the process of the forwards. */
import type { ForwardTarget } from '../../kernel/forward-target.js';
import type { DialOrder, HostLog } from '../terminal/host-messages.js';

export type ToForwardHost =
  /** Dials back, and connects to these targets on request. */
  | {
      readonly do: 'open';
      readonly sessionId: string;
      readonly targets: readonly ForwardTarget[];
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

export type FromForwardHost = ForwardGone | HostLog;
