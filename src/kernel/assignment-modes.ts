/** Modes of assignments: when the orchestrator applies by itself what an assignment gives. From the most careful to the least. */
export const ASSIGNMENT_MODES = ['manual', 'on-connect', 'enforce'] as const;

export type AssignmentMode = (typeof ASSIGNMENT_MODES)[number];
