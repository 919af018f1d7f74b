/** Standings of agents: how the machine relates to what its assignments give it. */
import * as Type from 'typebox';
import { closed, nullable } from '../kernel/schema.js';
import { Seconds } from './shapes.js';
import { STANDINGS, STOP_CODES } from './standing-names.js';

/** Modules of the last apply of an agent that are not published. */
export const TrialSchema = closed({
  operation_id: Type.String({ description: 'The apply that began the trial' }),
  modules: Type.Array(
    closed({
      module: Type.String({ description: 'Name of the module' }),
      sha256: Type.String({ description: 'SHA-256 of the text on trial' }),
    }),
    { description: 'Texts on trial' },
  ),
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
  trial: nullable({ ...TrialSchema, description: 'What the agent has on trial; null without a trial' }),
  automation_stopped: nullable(
    closed(
      {
        code: Type.Enum(STOP_CODES, { description: 'Kind of the reason' }),
        message: Type.String({ description: 'The reason and the next step' }),
        since: Seconds,
      },
      {
        description: 'Why automatic applies leave the agent alone until an operator resumes them; null if they do not',
      },
    ),
  ),
};

export const StandingCountsSchema = closed({
  never_applied: Type.Integer({ description: 'Agents that have modules, of which none was ever applied' }),
  behind: Type.Integer({ description: 'Agents whose modules give something else than what was applied' }),
  drifted: Type.Integer({ description: 'Agents whose machine differs from what was applied' }),
  in_sync: Type.Integer({ description: 'Agents with everything applied and no known drift' }),
  on_trial: Type.Integer({ description: 'Agents with a text on trial' }),
  unmanaged: Type.Integer({ description: 'Agents without modules' }),
});
export type StandingCounts = Type.Static<typeof StandingCountsSchema>;
