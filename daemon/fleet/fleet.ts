/** The fleet: agents, their connections, enrolment and tags. */

import type { KeyObject } from 'node:crypto';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import { AgentGateway, type GatewayOptions } from './agent-gateway.js';
import { AgentListener, type AgentListenerOptions } from './agent-listener.js';
import { AgentService, type StandingOf } from './agent-service.js';
import { ApprovedKeys } from './approved-keys.js';
import type { ConnectionRegistry } from './connection-registry.js';
import { Contests } from './contests.js';
import { Enrolment, pendingLimits } from './enrolment.js';
import { EnrolmentTokens } from './enrolment-tokens.js';
import { EphemeralAgents, type EphemeralAgentsOptions } from './ephemeral-agents.js';
import { FactReports } from './facts.js';
import { InstallEndpoint, type OfferedFiles } from './install-endpoint.js';
import type { InstallPackages } from './install-packages.js';
import type { Machines } from './machines.js';
import { agentAddress, reachable } from './own-address.js';
import { PackageVersionReports } from './package-versions.js';
import { Presence } from './presence.js';
import { TagService } from './tag-service.js';

interface FleetOptions
  extends Pick<GatewayOptions, 'traffic' | 'terminals' | 'forwards' | 'onMetrics' | 'onUpgradeReport'>,
    Pick<AgentListenerOptions, 'endpoints'> {
  readonly privateKey: KeyObject;
  readonly publicKey: PublicKeyHex;
  readonly registry: ConnectionRegistry;
  readonly packages: InstallPackages;
  readonly files: OfferedFiles;
  readonly machines: Machines;
  readonly standingOf: StandingOf;
  readonly busy: EphemeralAgentsOptions['busy'];
}

export type Fleet = ReturnType<typeof createFleet>;

/** Creates the parts; nothing listens before the start. */
export function createFleet(tools: Omit<Core, 'bus'>, own: FleetOptions) {
  const { settings } = tools;
  const { shown } = own.machines;
  const core = { ...tools, uow: shown.forgottenBy(tools.uow) };
  const approvedKeys = new ApprovedKeys(core.db);
  const contests = new Contests({ ...core, registry: own.registry });
  const presence = new Presence({ ...core, isContested: (nodeId) => contests.isContested(nodeId) });
  const facts = new FactReports({ ...core, registry: own.registry, changes: presence.changes });
  const versions = new PackageVersionReports({ ...core, registry: own.registry, changes: presence.changes });
  const gateway = new AgentGateway({
    ...core,
    ...own,
    approvedKeys,
    enrolment: new Enrolment({ ...core, ...own, limits: () => pendingLimits(settings()) }),
    presence,
    facts,
    versions,
    contests,
  });
  const listener = new AgentListener({
    ...core,
    ...own,
    checkedKeys: approvedKeys,
    visitors: new InstallEndpoint({ ...core, ...own }),
    host: settings().agent_host,
    port: settings().agent_port,
    onConnection: (peer) => gateway.accept(peer),
  });
  const enrolmentTokens = new EnrolmentTokens({
    ...core,
    ...own,
    address: () => agentAddress(settings(), listener.address().port),
    reachableHost: () => reachable(settings().agent_host, settings().advertised_host),
  });
  const agents = new AgentService({ ...core, ...own, connections: gateway, shown, contests });
  const ephemeral = new EphemeralAgents({ ...core, ...own, connections: gateway, contests });
  const tags = new TagService({ ...core, ...own });
  return { gateway, listener, enrolmentTokens, agents, ephemeral, facts, versions, tags };
}
