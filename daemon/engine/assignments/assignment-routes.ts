/** HTTP handlers of assignments. */
import type { Assignment, assignmentRoutes } from '../../../src/contract/assignments.js';
import { tagged } from '../../core/entity-tag.js';
import type { HandlersFor } from '../../http/handler.js';
import { assignmentRolloutHandlers, type RolloutServices } from '../rollouts/rollout-routes.js';
import { type Assignments, contentOf } from './assignments.js';

interface AssignmentServices extends RolloutServices {
  readonly assignments: Assignments;
}

/** Returns an assignment with its tag. */
const shown = <A extends Assignment>(assignment: A) => tagged(assignment, contentOf(assignment));

export const assignmentHandlers = ({
  assignments,
  ...services
}: AssignmentServices): HandlersFor<typeof assignmentRoutes> => ({
  listAssignments: async () => ({ status: 200, body: await assignments.list() }),
  createAssignment: async ({ body, context }) => ({
    status: 201,
    ...shown(
      await assignments.create(
        { ...body, description: body.description ?? null, mode: body.mode ?? 'manual', values: body.values ?? null },
        context,
      ),
    ),
  }),
  getAssignment: async ({ params, rights }) => ({ status: 200, ...shown(await assignments.get(params.name, rights)) }),
  updateAssignment: async ({ params, body, context }) => {
    const { modules = null, selector = null, description = null, mode = null, values = null } = body;
    const change = { modules, selector, description, mode, values };
    return { status: 200, ...shown(await assignments.update(params.name, change, context)) };
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
