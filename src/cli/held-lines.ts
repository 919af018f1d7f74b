/** Lists the rollouts and assignments that wait for an operator after a new epoch. */

import type { Restored } from '../programs/store.js';
import { count } from './format.js';
import { type Line, styled } from './outcome.js';

/** Returns what is halted, each with the command that resumes it. */
export const heldLines = ({ rollouts, assignments }: Pick<Restored, 'rollouts' | 'assignments'>): readonly Line[] => [
  ...held(
    `Halted: ${count(rollouts.length, 'rollout')}, which may have ended or been cancelled since. To go on:`,
    rollouts.map((id) => `orch rollouts resume ${id}`),
  ),
  ...held(
    `Waiting: the automatic applies of ${count(assignments.length, 'assignment')}, so that no machine goes back to older content. To go on:`,
    assignments.map((name) => `orch assignments resume ${name}`),
  ),
];

const held = (what: string, commands: readonly string[]): readonly Line[] =>
  commands.length === 0 ? [] : [styled('warn', what), ...commands.map((command) => `  ${command}`)];
