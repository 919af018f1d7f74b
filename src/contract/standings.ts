/** Standings of agents: how the machine relates to what its assignments give it. */
import * as Type from 'typebox';
import { closed, nullable } from '../kernel/schema.js';
import { Seconds } from './shapes.js';
import { STANDINGS, STOP_CODES } from './standing-names.js';

/** Modules of the last apply of an agent that are not published. */
export const TrialSchema = closed({
  operation_id: Type.String({ description: 'The apply that began the trial' }),
  modules: Type.Array(closed({ module: Type.String(), sha256: Type.String() })),
  since: Seconds,
  by: Type.String({ description: 'operator_id' }),
});
export type Trial = Type.Static<typeof TrialSchema>;

/** Members of an agent about its standing. */
export const standingMembers = {
  standing: nullable(
    Type.Enum(STANDINGS, {
      description:
        'never_applied: it has modules, and none was ever applied; behind: what its modules give differs from what was applied; drifted: the machine differs from what was applied; on_trial: it has modules of its last apply that are not published; null: not known yet, or not approved',
    }),
  ),
  standing_since: nullable(Seconds),
  standing_reason: nullable(Type.String({ description: 'What differs, or why the modules cannot be resolved' })),
  trial: nullable(TrialSchema),
  automation_stopped: nullable(closed({ code: Type.Enum(STOP_CODES), message: Type.String(), since: Seconds })),
};

export const StandingCountsSchema = closed({
  never_applied: Type.Integer(),
  behind: Type.Integer(),
  drifted: Type.Integer(),
  in_sync: Type.Integer(),
  on_trial: Type.Integer(),
  unmanaged: Type.Integer(),
});
export type StandingCounts = Type.Static<typeof StandingCountsSchema>;
