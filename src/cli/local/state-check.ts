/** Check of the believed state. The bundle contains it compiled (benchmark row "no-op apply --local of 100 files"). */
import { type Check, validator } from '../../kernel/validator.js';
import { type BelievedState, BelievedStateSchema } from './believed-state-schema.js';

export const stateCheck: Check<BelievedState> = validator(BelievedStateSchema);
