/** Maintenance windows, which pause scheduled drift checks and deliveries to channels. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { Seconds, Ulid } from './shapes.js';

const WINDOW_STATUSES = ['scheduled', 'active', 'ended'] as const;

const MaintenanceWindowSchema = closed({
  id: Ulid,
  reason: Type.String(),
  starts_at: Seconds,
  ends_at: Seconds,
  created_by: Type.String({ description: 'operator_id' }),
  created_at: Seconds,
  status: Type.Enum(WINDOW_STATUSES, { description: 'By the clock of the orchestrator' }),
});
export type MaintenanceWindow = Type.Static<typeof MaintenanceWindowSchema>;

const params = closed({ id: Type.String({ minLength: 1, maxLength: 64 }) });

const Reason = Type.String({ pattern: '\\S', minLength: 1, maxLength: 512 });
/** Limited to the end of the year 9999, the last that a timestamp can express. */
const Moment = Type.Integer({ minimum: 0, maximum: 253_402_300_799, description: 'Unix time in seconds (UTC)' });

const CreateMaintenanceWindowSchema = closed({ reason: Reason, starts_at: Moment, ends_at: Moment });
export type CreateMaintenanceWindow = Type.Static<typeof CreateMaintenanceWindowSchema>;

const UpdateMaintenanceWindowSchema = closed({ ends_at: optional(Moment), reason: optional(Reason) });
export type UpdateMaintenanceWindow = Type.Static<typeof UpdateMaintenanceWindowSchema>;

export const maintenanceWindowRoutes = {
  listMaintenanceWindows: route({
    id: 'listMaintenanceWindows',
    summary: 'List maintenance windows, the latest start first',
    tag: 'maintenance',
    method: 'GET',
    path: '/maintenance-windows',
    access: 'viewer',
    answers: { 200: Type.Array(MaintenanceWindowSchema) },
    faults: [],
  }),
  createMaintenanceWindow: route({
    id: 'createMaintenanceWindow',
    summary: 'Create a maintenance window; its start may be in the past',
    tag: 'maintenance',
    method: 'POST',
    path: '/maintenance-windows',
    access: 'admin',
    body: CreateMaintenanceWindowSchema,
    answers: { 201: MaintenanceWindowSchema },
    faults: [],
  }),
  getMaintenanceWindow: route({
    id: 'getMaintenanceWindow',
    summary: 'One maintenance window',
    tag: 'maintenance',
    method: 'GET',
    path: '/maintenance-windows/{id}',
    access: 'viewer',
    params,
    answers: { 200: MaintenanceWindowSchema },
    faults: ['maintenance_window_not_found'],
  }),
  updateMaintenanceWindow: route({
    id: 'updateMaintenanceWindow',
    summary: 'Move the end of a maintenance window; an end that has passed ends it now',
    tag: 'maintenance',
    method: 'PUT',
    path: '/maintenance-windows/{id}',
    access: 'admin',
    params,
    body: UpdateMaintenanceWindowSchema,
    answers: { 200: MaintenanceWindowSchema },
    faults: ['maintenance_window_not_found', 'maintenance_window_over'],
  }),
  removeMaintenanceWindow: route({
    id: 'removeMaintenanceWindow',
    summary: 'Delete a maintenance window; an active one ends with it',
    tag: 'maintenance',
    method: 'DELETE',
    path: '/maintenance-windows/{id}',
    access: 'admin',
    params,
    answers: { 204: null },
    faults: ['maintenance_window_not_found'],
  }),
} as const;
