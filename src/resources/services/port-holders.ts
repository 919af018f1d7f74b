/** Services that may hold the port of another one. */
import type { NeededChange, Obstacle } from '../kind.js';

/** Values of the field `running` of a service that is to be started. */
const STARTED: ReadonlySet<string | null> = new Set(['running', 'true']);

/** Returns the removed services if one of the wanted services is to be started: nothing tells which ports it will open. */
export const portHolders = (
  _host: unknown,
  wants: readonly NeededChange<object>[],
  removals: readonly Obstacle[],
): readonly Obstacle[] =>
  wants.some(({ changes }) => changes.some(({ field, after }) => field === 'running' && STARTED.has(after)))
    ? removals.filter(({ kind }) => kind.startsWith('service-'))
    : [];
