/** The fault of a request to an agent to which nothing can be sent. */
import { Fault } from '../../src/kernel/fault.js';

/**
 * @param label name of the agent
 * @param hold why nothing is sent to the agent although it may be connected; null without a reason
 */
export const notConnected = (label: string, hold: string | null): Fault =>
  hold === null
    ? new Fault('agent_not_connected', `agent ${label} is not connected`, {
        hint: 'start it, or wait until it is back',
      })
    : new Fault('agent_not_connected', `nothing is sent to agent ${label}, because ${hold}`, {
        hint: `decide which machine it is: orch agents keep ${label}`,
      });
