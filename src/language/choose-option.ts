/** Which of a resource's variants an agent gets. */
import { type AgentLabels, clauseMatches } from './clause.js';
import type { CompiledOption } from './compile-module.js';

export type OptionChoice =
  | { readonly result: 'chosen'; readonly option: CompiledOption }
  | { readonly result: 'missing' }
  /** Positions of the first two that match with the same number of keys. */
  | { readonly result: 'ambiguous'; readonly tied: readonly [number, number]; readonly keys: number };

/** The most specific option that matches: the one with the most keys. */
export function chooseOption(options: readonly CompiledOption[], agent: AgentLabels): OptionChoice {
  let best: CompiledOption | null = null;
  let bestAt = -1;
  let tiedAt = -1;
  for (let at = 0; at < options.length; at += 1) {
    const option = options[at];
    if (option === undefined || (best !== null && option.keys < best.keys)) continue;
    if (option.when !== null && !clauseMatches(option.when, agent)) continue;
    if (best === null || option.keys > best.keys) {
      best = option;
      bestAt = at;
      tiedAt = -1;
    } else if (tiedAt === -1) {
      tiedAt = at;
    }
  }
  if (best === null) return { result: 'missing' };
  if (tiedAt !== -1) return { result: 'ambiguous', tied: [bestAt, tiedAt], keys: best.keys };
  return { result: 'chosen', option: best };
}
