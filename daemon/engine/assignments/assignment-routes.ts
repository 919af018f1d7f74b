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
    body: await assignments.create({ ...body, description: body.description ?? null }, context),
  }),
  getAssignment: async ({ params }) => ({ status: 200, body: await assignments.get(params.name) }),
  updateAssignment: async ({ params, body, context }) => {
    const { modules = null, selector = null, description = null } = body;
    return { status: 200, body: await assignments.update(params.name, { modules, selector, description }, context) };
  },
  removeAssignment: async ({ params, context }) => {
    await assignments.remove(params.name, context);
    return { status: 204, body: undefined };
  },
  ...assignmentRolloutHandlers(services),
});
