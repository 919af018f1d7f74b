/** Decides whether an agent gets an apply by itself, as the modes of its assignments say. */
import { ASSIGNMENT_MODES, type AssignmentMode } from '../../../src/kernel/assignment-modes.js';
import type { CurrentAssignment } from '../assignments/assignment-store.js';
import type { Cause } from './automatic-operations.js';
import type { Evaluation } from './evaluator.js';

/** An apply that the orchestrator is to start by itself. */
export interface Decision {
  readonly cause: Cause;
  /** The first assignment that gives a module of the apply that differs. */
  readonly assignment: CurrentAssignment;
}

/**
 * Returns the apply that an agent is to get, or null. An automatic apply changes only resources of modules that assignments with
 * such a mode give: if another module differs, from a manual assignment, from none at all or named by an operator, then an operator decides.
 * @param arrived true once after the agent has connected, was approved or got other labels
 */
export function decide({ standing, modules, assignments }: Evaluation, arrived: boolean): Decision | null {
  if (standing === 'in_sync' || standing === 'on_trial' || standing === 'unmanaged' || modules.length === 0)
    return null;
  const mode = weakest(modules.map((module) => strongest(assignments.filter((one) => one.modules.includes(module)))));
  const assignment = assignments.find(
    (one) => one.mode !== 'manual' && one.modules.some((module) => modules.includes(module)),
  );
  if (assignment === undefined || mode === 'manual') return null;
  if (mode === 'enforce') return { cause: standing === 'drifted' ? 'repair' : 'enforce', assignment };
  return arrived && standing !== 'drifted' ? { cause: 'on-connect', assignment } : null;
}

const rankOf = (mode: AssignmentMode): number => ASSIGNMENT_MODES.indexOf(mode);

const strongest = (assignments: readonly CurrentAssignment[]): AssignmentMode =>
  ASSIGNMENT_MODES[Math.max(0, ...assignments.map(({ mode }) => rankOf(mode)))] ?? 'manual';

const weakest = (modes: readonly AssignmentMode[]): AssignmentMode =>
  ASSIGNMENT_MODES[Math.min(...modes.map(rankOf))] ?? 'manual';
