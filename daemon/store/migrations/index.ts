/** Every migration in order. */
import { initial } from './0001-initial.js';
import type { Migration } from './migration.js';

export const MIGRATIONS: readonly Migration[] = [initial];
