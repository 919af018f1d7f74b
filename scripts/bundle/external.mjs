/** The libraries that are no part of the bundle: the optional native ones, and the orchestrator's own. */
import { readFileSync } from 'node:fs';

const { optionalDependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

export const EXTERNAL = [...Object.keys(optionalDependencies), 'pino', 'kysely'];
