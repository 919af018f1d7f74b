/** Every resource kind there is: one line each. */
import { directoryUnix } from './directory-unix.js';
import { fileUnix } from './file-unix.js';
import type { ResourceKind } from './kind.js';

/** The kinds by their key in a module. A kind's own types stay inside its file; here all bodies look alike. */
export const CATALOGUE: ReadonlyMap<string, ResourceKind> = new Map(
  [fileUnix, directoryUnix].map((kind) => [kind.kind, kind as unknown as ResourceKind]),
);
