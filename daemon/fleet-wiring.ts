/** Joins the room of agents with what their messages are for; decides nothing. */
import type { KeyObject } from 'node:crypto';
import type { PublicKeyHex } from '../src/kernel/ids.js';
import type { Core } from './core/core.js';
import type { Engine } from './engine/engine.js';
import { AgentGateway } from './fleet/agent-gateway.js';
import { AgentListener } from './fleet/agent-listener.js';
import { AgentService } from './fleet/agent-service.js';
import type { ConnectionRegistry } from './fleet/connection-registry.js';
import { Enrolment } from './fleet/enrolment.js';
import { EnrolmentTokens } from './fleet/enrolment-tokens.js';
import { Presence } from './fleet/presence.js';
import { TagService } from './fleet/tag-service.js';
import type { MetricsPoller } from './metrics/metrics-poller.js';
import { agentAddress } from './own-address.js';
import { pendingLimits } from './room-settings.js';
import type { WiredTerminals } from './terminal-wiring.js';

export interface FleetWiringOptions
  extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'logger' | 'newId' | 'randomBytes' | 'settings' | 'uow'> {
  readonly privateKey: KeyObject;
  readonly publicKey: PublicKeyHex;
  readonly registry: ConnectionRegistry;
  readonly engine: Engine;
  readonly metrics: MetricsPoller;
  readonly terminals: WiredTerminals;
}

export function wireFleet(options: FleetWiringOptions) {
  const { db, uow, settings, clock, newId, logger, privateKey, publicKey, registry, metrics, terminals } = options;
  const { ageTime } = options;
  const gateway = new AgentGateway({
    registry,
    enrolment: new Enrolment({ uow, registry, clock, newId, ageTime, limits: () => pendingLimits(settings()) }),
    presence: new Presence({ uow, clock }),
    traffic: options.engine.traffic,
    onMetrics: (nodeId, answer) => metrics.receive(nodeId, answer),
    terminals: terminals.terminals,
    clock,
    logger,
  });
  const listener = new AgentListener({
    host: settings().agent_host,
    port: settings().agent_port,
    privateKey,
    onConnection: (peer) => gateway.accept(peer),
    sideDoor: terminals.agentEndpoint,
    logger,
  });
  const enrolmentTokens = new EnrolmentTokens({
    db,
    uow,
    clock,
    newId,
    ageTime,
    random: options.randomBytes,
    publicKey,
    address: () => agentAddress(settings(), listener.address().port),
  });
  const agents = new AgentService({ db, uow, registry, connections: gateway, clock });
  const tags = new TagService({ db, uow, clock });
  return { gateway, listener, enrolmentTokens, agents, tags };
}

export type WiredFleet = ReturnType<typeof wireFleet>;
