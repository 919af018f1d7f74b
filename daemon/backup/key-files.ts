/** The key files of a data directory, which are in no backup. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export const KEY_FILES = ['identity.key', 'audit.key', 'secrets.key', 'api.key'] as const;

/** The paths of those that are there. */
export const keysIn = (dataDir: string): readonly string[] =>
  KEY_FILES.map((name) => join(dataDir, name)).filter((path) => existsSync(path));
