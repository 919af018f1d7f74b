/**
 * Check of a whole definition. The bundle contains it compiled, because compiling took a quarter of the time of a short
 * `orch module validate` (benchmark row of that name).
 */
import { type Check, validator } from '../kernel/validator.js';
import { type ModuleDefinition, moduleSchema, STANDARD_KINDS } from './schema.js';

export const definitionCheck: Check<ModuleDefinition> = validator(moduleSchema(STANDARD_KINDS));
