/** Saves files and directories that resources name. */
import type { Keeper } from './keeper.js';
import type { SavedPath } from './saved-paths.js';

export const pathKeeper: Keeper<SavedPath> = {
  save: (bodies, { paths }) => paths.save(bodies.map((body) => ('path' in body ? String(body.path) : ''))),
  putBack: async (saved, phase, { paths }) => (phase === 'state' ? paths.putBack(saved) : null),
};
