/** The name of an agent that nobody has named: its host name, as far as it can be one. */
import { agentNamesFrom } from '../store/agents.js';
import type { Queryable } from '../store/queryable.js';

const MAX_LENGTH = 64;

/** The first label of the host name with `-` for what a name cannot hold. */
export function nameOfHostname(hostname: string): string {
  const [label = ''] = hostname.normalize('NFC').split('.');
  const cleaned = label.replace(/[^\p{L}\p{Nd}_-]+/gu, '-').replace(/^[-_]+|-+$/gu, '');
  if (cleaned === '') return 'agent';
  const named = /^\p{L}/u.test(cleaned) ? cleaned : `host-${cleaned}`;
  return cut(named, MAX_LENGTH);
}

/** That name, with the first number behind it that makes it one that no agent has. */
export async function freeNameOf(tx: Queryable, hostname: string): Promise<string> {
  const name = nameOfHostname(hostname);
  // Room for the number is taken from the name, so every candidate begins with this.
  const taken = await agentNamesFrom(tx, cut(name, MAX_LENGTH - 8));
  for (let number = 1; ; number += 1) {
    const suffix = number === 1 ? '' : `-${number}`;
    const candidate = cut(name, MAX_LENGTH - suffix.length) + suffix;
    if (!taken.has(candidate)) return candidate;
  }
}

const cut = (text: string, length: number): string => [...text].slice(0, length).join('');
