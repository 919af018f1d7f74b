/** The interface by which the state of one kind of resources is saved before an apply and put back. */
import type { Host } from '../../resources/host.js';
import type { SavedPaths } from './saved-paths.js';

/** Tools of a snapshot for the kinds. */
export interface SnapshotTools {
  readonly host: Host;
  readonly paths: SavedPaths;
}

/** When a part of a snapshot is put back: units that must not run stop first, and those that must run start last. */
export type PutBackPhase = 'stop' | 'state' | 'start';

/** A state that can be put back; JSON, so that another process can do it. */
export interface Keeper<Saved extends object = object> {
  /** Returns the state of each body's resource, in order; a text says why one cannot be put back. */
  save(bodies: readonly object[], tools: SnapshotTools): Promise<readonly (Saved | string)[]>;
  /**
   * Puts one state back in one phase; called for every phase. Returns null, or why it could not be put back. Idempotent, because
   * it is repeated after a crash.
   * @param action what the apply was about to do, such as `reload`
   */
  putBack(saved: Saved, phase: PutBackPhase, tools: SnapshotTools, action: string): Promise<string | null>;
}
