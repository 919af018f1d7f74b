/** Forwards beside a session at this terminal (`orch term -L`). */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentName } from '../format.js';
import { parseForward } from './forward-spec.js';
import { forwardLine, startForwarder } from './forwarder.js';

export interface ForwardsBeside {
  /** Shows problems in the session from now on, because plain lines would garble its screen. */
  show(inSession: (line: string) => void): void;
  /** Ends the forwards and their connections. */
  close(): void;
}

export interface ForwardBesideOptions {
  readonly api: ApiClient;
  readonly agent: Agent;
  /** As the words of `orch forward`. */
  readonly words: readonly string[];
}

/** Starts the forwards, and tells where they listen. Throws `usage` for a wrong word, and what `startForwarder` throws. */
export async function forwardBeside(
  { clock, note, signal, warn }: Pick<Context, 'clock' | 'note' | 'signal' | 'warn'>,
  { api, agent, words }: ForwardBesideOptions,
): Promise<ForwardsBeside> {
  const [first, ...others] = words.map(parseForward);
  if (first === undefined) throw new Fault('usage', 'there is no forward');
  let tell = (line: string): void => warn(line);
  const specs = [first, ...others] as const;
  const nodeId = agent.node_id;
  const forwarder = await startForwarder({ api, clock, nodeId, specs, signal, warn: (line) => tell(line) });
  for (const [index, place] of forwarder.places.entries()) {
    const spec = specs[index];
    if (spec !== undefined) note(forwardLine(place, agentName(agent), spec));
  }
  return {
    show: (inSession) => {
      tell = inSession;
    },
    close: () => forwarder.close(),
  };
}
