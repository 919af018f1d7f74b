/** The schemas that have a name in the OpenAPI document. A route refers to one by using the very same object. */
import type { TSchema } from 'typebox';
import { MetricsSampleSchema } from '../kernel/metrics-sample.js';
import {
  ErrorSchema,
  FieldChangeSchema,
  OutputSchema,
  ResourceResultSchema,
  SummarySchema,
} from '../resources/result.js';
import { AgentSchema } from './agents.js';
import {
  AssignmentDetailSchema,
  AssignmentSchema,
  RolloutEventSchema,
  RolloutResultSchema,
  RolloutSchema,
} from './assignments.js';
import { AuditEventSchema, AuditVerificationSchema } from './audit.js';
import { ChannelSchema, ChannelTestSchema, DeliverySchema } from './channels.js';
import { MetricsHistorySchema, NodeMetricsSchema } from './metrics.js';
import { ModuleEntrySchema, ModuleSchema, WarningSchema } from './modules.js';
import { NotificationListSchema, NotificationSchema } from './notifications.js';
import { OperationDetailSchema, OperationSchema, StateSchema } from './operations.js';
import { OperatorSchema } from './operators.js';
import { ProblemSchema } from './problem.js';
import { DriftDetailSchema, DriftRecordSchema, RunEventSchema, RunResultSchema, RunStatusSchema } from './runs.js';
import { SecretSchema, SecretUsageSchema } from './secrets.js';
import { StringMap } from './shapes.js';
import { StatusSchema } from './status.js';

export const COMPONENT_SCHEMAS: Readonly<Record<string, TSchema>> = {
  Agent: AgentSchema,
  Assignment: AssignmentSchema,
  AssignmentDetail: AssignmentDetailSchema,
  AuditEvent: AuditEventSchema,
  AuditVerification: AuditVerificationSchema,
  Channel: ChannelSchema,
  ChannelTest: ChannelTestSchema,
  Delivery: DeliverySchema,
  DriftDetail: DriftDetailSchema,
  DriftRecord: DriftRecordSchema,
  Error: ErrorSchema,
  FieldChange: FieldChangeSchema,
  Module: ModuleSchema,
  ModuleEntry: ModuleEntrySchema,
  Operation: OperationSchema,
  OperationDetail: OperationDetailSchema,
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
  RolloutEvent: RolloutEventSchema,
  RolloutResult: RolloutResultSchema,
  RunEvent: RunEventSchema,
  RunResult: RunResultSchema,
  RunStatus: RunStatusSchema,
  Secret: SecretSchema,
  SecretUsage: SecretUsageSchema,
  State: StateSchema,
  StringMap,
  Status: StatusSchema,
  Summary: SummarySchema,
  Warning: WarningSchema,
};
