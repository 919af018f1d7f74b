/** Every migration in order. */
import { initial } from './0001-initial.js';
import { secrets } from './0002-secrets.js';
import { assignments } from './0003-assignments.js';
import type { Migration } from './migration.js';

export const MIGRATIONS: readonly Migration[] = [initial, secrets, assignments];
