/** Maintenance windows: pauses of drift checks, automatic applies and deliveries, and times that permit applies of assignments. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { pathId, Seconds, ulidOf } from './shapes.js';

const WINDOW_STATUSES = ['scheduled', 'active', 'ended'] as const;

export const WINDOW_KINDS = ['pause', 'permit'] as const;

export const MaintenanceWindowSchema = closed({
  id: ulidOf('ID of the window'),
  reason: Type.String({ description: 'Why, for people' }),
  starts_at: Seconds,
  ends_at: Seconds,
  created_by: Type.String({ description: 'operator_id' }),
  created_at: Seconds,
  kind: Type.Enum(WINDOW_KINDS, {
    description:
      'pause: no scheduled drift checks, automatic applies and deliveries to channels; permit: its assignments are applied only in such windows',
  }),
  selector: nullable(
    Type.String({ description: 'Pauses drift checks and automatic applies of these agents alone, and no deliveries' }),
  ),
  assignments: Type.Array(Type.String(), { description: 'Assignments that a permit is for; empty for a pause' }),
  status: Type.Enum(WINDOW_STATUSES, { description: 'By the clock of the orchestrator' }),
});
export type MaintenanceWindow = Type.Static<typeof MaintenanceWindowSchema>;

const params = closed({ id: pathId('ID of the window') });

const Reason = Type.String({ pattern: '\\S', minLength: 1, maxLength: 512, description: 'Why, for people' });
/** Limited to the end of the year 9999, the last that a timestamp can express. */
const Moment = Type.Integer({ minimum: 0, maximum: 253_402_300_799, description: 'Unix time in seconds (UTC)' });

const CreateMaintenanceWindowSchema = closed({
  reason: Reason,
  starts_at: Moment,
  ends_at: Moment,
  kind: optional(Type.Enum(WINDOW_KINDS, { description: 'Default pause' })),
  selector: optional(Type.String({ description: 'With a pause: only these agents' })),
  assignments: optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
      maxItems: 100,
      description: 'With a permit: its assignments, at least one',
    }),
  ),
});
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
    access: 'read',
    grants: 'shared',
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
    tagged: true,
    body: CreateMaintenanceWindowSchema,
    location: '/maintenance-windows/{id}',
    answers: { 201: MaintenanceWindowSchema },
    faults: ['invalid_selector', 'assignment_not_found'],
  }),
  getMaintenanceWindow: route({
    id: 'getMaintenanceWindow',
    summary: 'One maintenance window',
    tag: 'maintenance',
    method: 'GET',
    path: '/maintenance-windows/{id}',
    access: 'read',
    grants: 'shared',
    tagged: true,
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
    tagged: true,
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
    tagged: true,
    params,
    answers: { 204: null },
    faults: ['maintenance_window_not_found'],
  }),
} as const;
