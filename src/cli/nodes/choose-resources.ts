/** Chooses resources of an agent by the words of a command. */
import type { Agent } from '../../contract/agents.js';
import { Fault } from '../../kernel/fault.js';
import { agentHandle } from '../format.js';

interface Named {
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
  readonly id?: string | null;
}

interface Choice {
  readonly agent: Agent;
  /** Adjective of the candidates, for messages. */
  readonly what: 'managed' | 'drifted';
  readonly hint: string;
}

/**
 * Returns the resources that the words name, without duplicates. Each word is an identity, an ID, or `KIND IDENTITY`. Throws
 * `resource_not_found`, and `usage` for a word that names several resources.
 */
export function chooseResources<R extends Named>(
  words: readonly string[],
  candidates: readonly R[],
  { agent, what, hint }: Choice,
): readonly R[] {
  const chosen = words.map((word) => {
    const found = candidates.filter(
      ({ kind, identity, id }) => word === identity || word === `${kind} ${identity}` || (id != null && word === id),
    );
    const [only, other] = found;
    if (only === undefined) {
      throw new Fault('resource_not_found', `no ${what} resource of ${agentHandle(agent)} is known as "${word}"`, {
        hint,
      });
    }
    if (other === undefined) return only;
    const names = [...new Set(found.map(({ kind, identity }) => `"${kind} ${identity}"`))];
    throw new Fault('usage', `"${word}" names ${found.length} resources on ${agentHandle(agent)}`, {
      hint: names.length === found.length ? `name one of them: ${names.join(', ')}` : 'modules share it: choose all',
    });
  });
  return [...new Set(chosen)];
}
