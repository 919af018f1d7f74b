/** HTTP handlers of assignments. */
import type { assignmentRoutes } from '../../../src/contract/assignments.js';
import type { HandlersFor } from '../../http/handler.js';
import { assignmentRolloutHandlers, type RolloutServices } from '../rollouts/rollout-routes.js';
import type { Assignments } from './assignments.js';

interface AssignmentServices extends RolloutServices {
  readonly assignments: Assignments;
}

export const assignmentHandlers = ({
  assignments,
  ...services
}: AssignmentServices): HandlersFor<typeof assignmentRoutes> => ({
  listAssignments: async () => ({ status: 200, body: await assignments.list() }),
  createAssignment: async ({ body, context }) => ({
    status: 201,
    body: await assignments.create(
      { ...body, description: body.description ?? null, mode: body.mode ?? 'manual' },
      context,
    ),
  }),
  getAssignment: async ({ params }) => ({ status: 200, body: await assignments.get(params.name) }),
  updateAssignment: async ({ params, body, context }) => {
    const { modules = null, selector = null, description = null, mode = null } = body;
    const change = { modules, selector, description, mode };
    return { status: 200, body: await assignments.update(params.name, change, context) };
  },
  removeAssignment: async ({ params, context }) => {
    await assignments.remove(params.name, context);
    return { status: 204, body: undefined };
  },
  resumeAssignment: async ({ params, context }) => ({
    status: 200,
    body: await assignments.resume(params.name, context),
  }),
  ...assignmentRolloutHandlers(services),
});
