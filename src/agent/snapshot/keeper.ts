/** The interface by which the state of one kind of resources is saved before an apply and restored. */
import type { Host } from '../../resources/host.js';
import type { PathRestorer } from './path-restorer.js';
import type { PathSaver } from './path-saver.js';

export interface SaveTools {
  readonly host: Host;
  readonly paths: PathSaver;
}

export interface RestoreTools {
  readonly host: Host;
  readonly paths: PathRestorer;
}

/** When a part of a snapshot is restored: units that must not run stop first, and those that must run start last. */
export type RestorePhase = 'stop' | 'state' | 'start';

/** A state that can be restored; JSON, so that another process can do it. */
export interface Keeper<Saved extends object = object> {
  /** Returns the state of each body's resource, in order; a text says why one cannot be restored. */
  save(bodies: readonly object[], tools: SaveTools): Promise<readonly (Saved | string)[]>;
  /**
   * Restores one state in one phase; called for every phase. Returns null, or why it could not be restored. Idempotent, because
   * it is repeated after a crash.
   * @param action what the apply was about to do, such as `reload`
   */
  restore(saved: Saved, phase: RestorePhase, tools: RestoreTools, action: string): Promise<string | null>;
}
