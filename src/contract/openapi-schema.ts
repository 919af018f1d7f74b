/** Writes schemas as JSON Schema with references to named schemas. */
import type { TSchema } from 'typebox';
import type { JsonObject, JsonValue } from '../kernel/json.js';
import { MetricsSampleSchema } from '../kernel/schema.js';
import { CheckResultSchema } from '../resources/checks/check.js';
import {
  ErrorSchema,
  FieldChangeSchema,
  OutputSchema,
  ResourceResultSchema,
  SummarySchema,
} from '../resources/result.js';
import { AgentFactsSchema, AgentSchema, NamedAgentSchema } from './agents.js';
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
  RolloutErrorSchema,
  RolloutEventSchema,
  RolloutRecordSchema,
  RolloutResultSchema,
  RolloutSchema,
  ValueChangeSchema,
} from './rollouts.js';
import {
  AppliedSourcesSchema,
  DriftDetailSchema,
  DriftRecordSchema,
  DriftResourceSchema,
  RunEventSchema,
  RunResultSchema,
  RunStatusSchema,
  SourcesSchema,
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
  const copyMembers = (value: object): JsonObject => {
    const written = Object.fromEntries(
      Object.entries(value)
        .filter(([key, member]) => !(isOpen && key === 'additionalProperties' && member === false))
        .map(([key, member]) => [key, copy(member)]),
    );
    return describedOutside(mapOf({ ...written, ...formatOf(value), ...typeOf(value) }, isOpen));
  };
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

/**
 * Writes a map, an object with one pattern of names and no other members, with `additionalProperties`. Generated clients
 * give values of `patternProperties` no type.
 */
function mapOf(schema: JsonObject, isOpen: boolean): JsonObject {
  const { patternProperties, additionalProperties, ...rest } = schema;
  const [entry, ...others] = Object.entries(isObject(patternProperties) ? patternProperties : {});
  if (entry === undefined || others.length > 0 || additionalProperties === true) return schema;
  if (isObject(schema.properties) && Object.keys(schema.properties).length > 0) return schema;
  const [pattern, values] = entry;
  return {
    ...rest,
    ...(isOpen || pattern === ANY_NAME ? {} : { propertyNames: { pattern } }),
    additionalProperties: values,
  };
}

/** Pattern of the names in a map with any names. */
const ANY_NAME = '^.*$';

/** Moves the description of a value that may be null from its schema to the union, where generated clients read it. */
function describedOutside(schema: JsonObject): JsonObject {
  const { anyOf } = schema;
  if (schema.description !== undefined || !Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [first, second] = anyOf;
  if (!isObject(first) || !isObject(second) || second.type !== 'null') return schema;
  const { description, ...bare } = first;
  return description === undefined ? schema : { description, ...schema, anyOf: [bare, second] };
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Adds the type of an enumeration's values, which generated clients need. */
function typeOf(schema: { readonly type?: unknown; readonly enum?: unknown }): JsonObject {
  const isOfText = Array.isArray(schema.enum) && schema.enum.every((value) => typeof value === 'string');
  return isOfText && schema.type === undefined ? { type: 'string' } : {};
}

/** Named schemas of requests. A route refers to one by using the same object. */
export const REQUEST_SCHEMAS: Readonly<Record<string, TSchema>> = {
  AppliedModuleText: AppliedSourcesSchema.items,
  ModuleText: SourcesSchema.items,
  OneOffRequest: OneOffRequestSchema,
};

/** Named schemas of answers. */
export const ANSWER_SCHEMAS: Readonly<Record<string, TSchema>> = {
  Agent: AgentSchema,
  AgentFacts: AgentFactsSchema,
  Assignment: AssignmentSchema,
  AssignmentDetail: AssignmentDetailSchema,
  AuditActor: AuditEventSchema.properties.actor,
  AuditEvent: AuditEventSchema,
  AuditGap: AuditGapSchema,
  AuditRetention: AuditRetentionSchema,
  AuditTarget: AuditEventSchema.properties.target,
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
  HealthCheck: CheckResultSchema,
  JsonDocument: JsonDocumentSchema,
  MaintenanceWindow: MaintenanceWindowSchema,
  Module: ModuleSchema,
  ModuleEntry: ModuleEntrySchema,
  NamedAgent: NamedAgentSchema,
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
  RolloutCounts: RolloutRecordSchema.properties.counts,
  RolloutDetail: RolloutDetailSchema,
  RolloutRecord: RolloutRecordSchema,
  RolloutEvent: RolloutEventSchema,
  RolloutFailure: RolloutErrorSchema,
  RolloutPace: RolloutRecordSchema.properties.pace,
  RolloutResult: RolloutResultSchema,
  RolloutValueChange: ValueChangeSchema,
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
