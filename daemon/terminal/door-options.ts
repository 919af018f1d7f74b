/** What both doors of the room need: that of the agents, and that of the operators. */
import type { Clock } from '../../src/kernel/clock.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Refusals } from './refusals.js';
import type { SocketTimes } from './terminal-socket.js';
import type { Terminals } from './terminals.js';
import type { Tickets } from './tickets.js';

export interface DoorOptions {
  readonly terminals: Terminals;
  readonly tickets: Tickets;
  readonly refusals: Refusals;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly times?: SocketTimes;
}
