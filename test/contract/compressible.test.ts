/** Which answers are never compressed, because their length would tell of a secret in them. */
import { expect, it } from 'vitest';
import { isCompressible } from '../../src/contract/compressible.js';
import { CONTRACT, type RouteId } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';

const LEFT_OUT: readonly RouteId[] = [
  'applyAgent',
  'applyAssignment',
  'applyRollout',
  'attachTerminal',
  'cancelOperation',
  'checkDrift',
  'createChallenge',
  'createChannel',
  'createEnrolmentToken',
  'createSecret',
  'execOnAgent',
  'getAgentUpgrade',
  'getChannel',
  'getDrift',
  'getLatestDrift',
  'getOperation',
  'getOperationOutput',
  'getOwnMetrics',
  'getRollout',
  'getTranscript',
  'listAgentDrift',
  'listAgentOperations',
  'listAuditEvents',
  'listChannels',
  'listDrift',
  'listNotifications',
  'listOperations',
  'openCopy',
  'openForward',
  'openSshProxy',
  'openTerminal',
  'planAgent',
  'planAssignment',
  'planRollout',
  'removeSecret',
  'searchTerminals',
  'streamEvents',
  'updateChannel',
  'updateSecret',
  'upgradeAgent',
  'verifyAgent',
  'verifyChallenge',
];

it('leaves out the answers that may hold a secret beside text of others', () => {
  const leftOut = Object.values<RouteSpec>(CONTRACT)
    .filter((route) => !isCompressible(route))
    .map(({ id }) => id);
  expect(leftOut.sort()).toEqual([...LEFT_OUT].sort());
});
