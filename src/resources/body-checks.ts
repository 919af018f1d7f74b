/** Checks of the bodies of all kinds. The bundle contains them compiled (benchmark row "no-op apply --local of 100 files"). */
import { type Check, validator } from '../kernel/validator.js';
import { CATALOGUE } from './catalogue.js';

/** By kind. */
export const bodyChecks: Readonly<Record<string, Check<unknown>>> = Object.fromEntries(
  [...CATALOGUE].map(([name, { schema }]) => [name, validator(schema)]),
);
