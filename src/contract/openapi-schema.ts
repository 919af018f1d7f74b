/** Writes schemas as JSON Schema with references to named schemas. */
import type { TSchema } from 'typebox';
import type { JsonObject, JsonValue } from '../kernel/json.js';
import { MetricsSampleSchema } from '../kernel/schema.js';
import {
  ErrorSchema,
  FieldChangeSchema,
  OutputSchema,
  ResourceResultSchema,
  SummarySchema,
} from '../resources/result.js';
import { AgentFactsSchema, AgentSchema } from './agents.js';
import { AssignmentDetailSchema, AssignmentSchema } from './assignments.js';
import { AuditEventSchema, AuditGapSchema, AuditRetentionSchema, AuditVerificationSchema } from './audit.js';
import { ChannelSchema, ChannelTestSchema, DeliverySchema } from './channels.js';
import { DriftAcceptSchema, DriftSnoozeSchema } from './drift-excuses.js';
import { OpenedForwardSchema } from './forward.js';
import { MaintenanceWindowSchema } from './maintenance-windows.js';
import { MetricsHistorySchema, NodeMetricsSchema } from './metrics.js';
import { ModuleEntrySchema, ModuleSchema, WarningSchema } from './modules.js';
import { NotificationListSchema, NotificationSchema } from './notifications.js';
import { OneOffRequestSchema, OneOffValuesSchema } from './one-off-values.js';
import { OperationDetailSchema, OperationListSchema, OperationSchema, StateSchema } from './operations.js';
import { OperatorSchema } from './operators.js';
import {
  RolloutAgentSchema,
  RolloutDetailSchema,
  RolloutEventSchema,
  RolloutRecordSchema,
  RolloutResultSchema,
  RolloutSchema,
} from './rollouts.js';
import {
  DriftDetailSchema,
  DriftRecordSchema,
  DriftResourceSchema,
  RunEventSchema,
  RunResultSchema,
  RunStatusSchema,
} from './runs.js';
import { SecretSchema, SecretUsageSchema } from './secrets.js';
import { ProblemSchema } from './shapes.js';
import { JsonDocumentSchema, StatusSchema } from './status.js';
import { OpenedTerminalSchema } from './terminal.js';
import { UpgradeSchema } from './upgrades.js';
import { WebhookMessageSchema } from './webhooks.js';

export type WriteSchema = (schema: TSchema) => JsonObject;

interface SchemaWriter {
  /** Writes a schema of requests: a reference for a named schema, and any other schema itself. */
  readonly request: WriteSchema;
  /** Writes a schema of answers, which may have further members. */
  readonly answer: WriteSchema;
  /** Returns the definitions of all named schemas, for `components`. */
  definitions(): JsonObject;
}

export interface NamedSchemas {
  readonly requests: Readonly<Record<string, TSchema>>;
  readonly answers: Readonly<Record<string, TSchema>>;
}

/**
 * Requests refuse unknown members, so that a misspelled one is noticed. Answers are open: a client must ignore members
 * that it does not know, because a later release adds some.
 */
export function schemaWriter({ requests, answers }: NamedSchemas): SchemaWriter {
  const request = sideWriter(requests, { isOpen: false });
  const answer = sideWriter(answers, { isOpen: true });
  return {
    request: request.write,
    answer: answer.write,
    definitions: () => ({ ...answer.definitions(), ...request.definitions() }),
  };
}

function sideWriter(named: Readonly<Record<string, TSchema>>, { isOpen }: { readonly isOpen: boolean }) {
  const names = new Map<unknown, string>(Object.entries(named).map(([name, schema]) => [schema, name]));
  const copy = (value: unknown): JsonValue => {
    const name = names.get(value);
    return name === undefined ? copyInside(value) : { $ref: `#/components/schemas/${name}` };
  };
  const copyInside = (value: unknown): JsonValue => {
    if (Array.isArray(value)) return value.map(copy);
    if (typeof value === 'object' && value !== null) return copyMembers(value);
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
  };
  const copyMembers = (value: object): JsonObject => ({
    ...Object.fromEntries(
      Object.entries(value)
        .filter(([key, member]) => !(isOpen && key === 'additionalProperties' && member === false))
        .map(([key, member]) => [key, copy(member)]),
    ),
    ...formatOf(value),
    ...typeOf(value),
  });
  return {
    write: (schema: TSchema): JsonObject => {
      const name = names.get(schema);
      return name === undefined ? copyMembers(schema) : { $ref: `#/components/schemas/${name}` };
    },
    definitions: (): JsonObject =>
      Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, copyMembers(schema)])),
  };
}

const MOST_INT32 = 2 ** 31 - 1;

/** Adds a format to integers: generated clients otherwise use 32 bits, too few for bytes and times. */
function formatOf(schema: {
  readonly type?: unknown;
  readonly maximum?: unknown;
  readonly format?: unknown;
}): JsonObject {
  if (schema.type !== 'integer' || schema.format !== undefined) return {};
  const { maximum } = schema;
  return { format: typeof maximum === 'number' && maximum <= MOST_INT32 ? 'int32' : 'int64' };
}

/** Adds the type of an enumeration's values, which generated clients need. */
function typeOf(schema: { readonly type?: unknown; readonly enum?: unknown }): JsonObject {
  const isOfText = Array.isArray(schema.enum) && schema.enum.every((value) => typeof value === 'string');
  return isOfText && schema.type === undefined ? { type: 'string' } : {};
}

/** Named schemas of requests. A route refers to one by using the same object. */
export const REQUEST_SCHEMAS: Readonly<Record<string, TSchema>> = { OneOffRequest: OneOffRequestSchema };

/** Named schemas of answers. */
export const ANSWER_SCHEMAS: Readonly<Record<string, TSchema>> = {
  Agent: AgentSchema,
  AgentFacts: AgentFactsSchema,
  Assignment: AssignmentSchema,
  AssignmentDetail: AssignmentDetailSchema,
  AuditEvent: AuditEventSchema,
  AuditGap: AuditGapSchema,
  AuditRetention: AuditRetentionSchema,
  AuditVerification: AuditVerificationSchema,
  Channel: ChannelSchema,
  ChannelTest: ChannelTestSchema,
  Delivery: DeliverySchema,
  DriftAccept: DriftAcceptSchema,
  DriftDetail: DriftDetailSchema,
  DriftRecord: DriftRecordSchema,
  DriftResource: DriftResourceSchema,
  DriftSnooze: DriftSnoozeSchema,
  Failure: ErrorSchema,
  FieldChange: FieldChangeSchema,
  JsonDocument: JsonDocumentSchema,
  MaintenanceWindow: MaintenanceWindowSchema,
  Module: ModuleSchema,
  ModuleEntry: ModuleEntrySchema,
  OneOffValues: OneOffValuesSchema,
  Operation: OperationSchema,
  OpenedForward: OpenedForwardSchema,
  OpenedTerminal: OpenedTerminalSchema,
  OperationDetail: OperationDetailSchema,
  OperationList: OperationListSchema,
  Operator: OperatorSchema,
  MetricsHistory: MetricsHistorySchema,
  MetricsSample: MetricsSampleSchema,
  NodeMetrics: NodeMetricsSchema,
  Notification: NotificationSchema,
  NotificationList: NotificationListSchema,
  Output: OutputSchema,
  Problem: ProblemSchema,
  ResourceResult: ResourceResultSchema,
  Rollout: RolloutSchema,
  RolloutAgent: RolloutAgentSchema,
  RolloutDetail: RolloutDetailSchema,
  RolloutRecord: RolloutRecordSchema,
  RolloutEvent: RolloutEventSchema,
  RolloutResult: RolloutResultSchema,
  RunEvent: RunEventSchema,
  RunResult: RunResultSchema,
  RunStatus: RunStatusSchema,
  Secret: SecretSchema,
  SecretUsage: SecretUsageSchema,
  State: StateSchema,
  Status: StatusSchema,
  Summary: SummarySchema,
  Upgrade: UpgradeSchema,
  Warning: WarningSchema,
  WebhookMessage: WebhookMessageSchema,
};
