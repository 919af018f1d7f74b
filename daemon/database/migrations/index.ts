/** Lists every migration in order. */
import { initial } from './0001-initial.js';
import { secrets } from './0002-secrets.js';
import { assignments } from './0003-assignments.js';
import { operationOutputs } from './0004-operation-outputs.js';
import { auditMarks } from './0005-audit-marks.js';
import { metrics } from './0006-metrics.js';
import { notifications } from './0007-notifications.js';
import { maintenance } from './0008-maintenance.js';
import { enrolmentTokens } from './0009-enrolment-tokens.js';
import { terminalSessions } from './0010-terminal-sessions.js';
import { agentIncarnation } from './0011-agent-incarnation.js';
import { oneOperatorRecord } from './0012-one-operator-record.js';
import { runContents } from './0013-run-contents.js';
import { smallerIndexes } from './0014-smaller-indexes.js';
import { agentUpgrades } from './0015-agent-upgrades.js';
import { convergence } from './0016-convergence.js';
import { trials } from './0017-trials.js';
import { calmerNotifications } from './0018-calmer-notifications.js';
import { copiedAgents } from './0019-copied-agents.js';
import { listeners } from './0020-listeners.js';
import { valueSets } from './0021-value-sets.js';
import { oneOffValues } from './0022-one-off-values.js';
import { moduleFiles } from './0023-module-files.js';
import { facts } from './0024-facts.js';
import { purgeLimits } from './0025-purge-limits.js';
import { grants } from './0026-grants.js';
import { operatorExpiry } from './0027-operator-expiry.js';
import { ephemeralAgents } from './0028-ephemeral-agents.js';
import { outsideWindow } from './0029-outside-window.js';
import { givenNames } from './0030-given-names.js';
import type { Migration } from './migration.js';

export const MIGRATIONS: readonly Migration[] = [
  initial,
  secrets,
  assignments,
  operationOutputs,
  auditMarks,
  metrics,
  notifications,
  maintenance,
  enrolmentTokens,
  terminalSessions,
  agentIncarnation,
  oneOperatorRecord,
  runContents,
  smallerIndexes,
  agentUpgrades,
  convergence,
  trials,
  calmerNotifications,
  copiedAgents,
  listeners,
  valueSets,
  oneOffValues,
  moduleFiles,
  facts,
  purgeLimits,
  grants,
  operatorExpiry,
  ephemeralAgents,
  outsideWindow,
  givenNames,
];
