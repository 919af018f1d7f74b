/** `orch status` and `orch discover`: the orchestrator's health, and the packets that announce it. */

import type { ApiClient } from '../../client/api-client.js';
import type { FleetSummary } from '../../contract/agents.js';
import { CERTIFICATE_SOON_MS, type Status } from '../../contract/status.js';
import { isFault } from '../../kernel/fault.js';
import { DISCOVERY_PORT } from '../../kernel/ports.js';
import { connectWithoutPassphrase } from '../connect-api.js';
import type { Context } from '../context.js';
import { defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { count, formatDuration, formatTime } from '../format.js';
import { text } from '../options.js';
import { fieldsOf, type Line, lines, type Span, styled } from '../outcome.js';
import { standingCounts } from '../render/standing.js';

/** `orch status`: the health of the orchestrator. */
export const showStatus = defineCommand({
  examples: ['orch status'],
  detail: [
    'Ends with 1 when the orchestrator says it is degraded. Its health needs no login. Agents and rollouts are counted for operators;',
    'a key with a passphrase is not asked for it: "orch login" before shows them too.',
  ],
  access: 'public',
  run: async (context) => {
    const api = await connectWithoutPassphrase(context);
    const [status, fleet] = await both(api, context).finally(() => api.close());
    const healthy = status.status === 'ok';
    const outdated = fleet?.outdated_agents ?? 0;
    if (outdated > 0) {
      context.warn(
        `${count(outdated, 'agent')} ${outdated === 1 ? 'has' : 'have'} another version: orch agents upgrade -l "*"`,
      );
    }
    const halted = fleet?.rollouts.halted ?? 0;
    if (halted > 0)
      context.warn(`${count(halted, 'rollout')} ${halted === 1 ? 'has' : 'have'} halted: orch rollouts --state halted`);
    return {
      body: { ...status, ...fleet },
      names: [status.status],
      view: fieldsOf([
        ['Orchestrator', api.url.href.replace(/\/$/, '')],
        ['Status', styled(healthy ? 'good' : 'bad', status.status)],
        ...status.reasons.map(({ code, detail }) => ['Reason', `${detail} (${code})`] as const),
        ...(fleet === null ? [] : rolloutFields(fleet)),
        ...certificateFields(status, context.clock.now()),
        ...(fleet === null ? [] : [['Agents', standingCounts(fleet.standings)] as const]),
        ['Version', status.version],
        ['Agent protocol', String(status.protocol_version)],
        ['Public key', status.public_key],
      ]),
      exitStatus: healthy ? EXIT.done : EXIT.error,
    };
  },
});

/** Milliseconds to wait for the counts, for which the store has to answer. */
const COUNTS_WITHIN_MS = 5_000;

/** Returns the health, and what the orchestrator counts for the operator or null, with a note that says why not. */
async function both(
  api: ApiClient,
  { note, signal }: Pick<Context, 'note' | 'signal'>,
): Promise<readonly [Status, FleetSummary | null]> {
  const status = await api.call('getStatus', { signal });
  const late = AbortSignal.timeout(COUNTS_WITHIN_MS);
  try {
    return [status, await api.call('getFleet', { signal: AbortSignal.any([signal, late]) })];
  } catch (error) {
    if (signal.aborted || (!late.aborted && !isFault(error))) throw error;
    const reason = isFault(error) ? error.message : `no answer within ${COUNTS_WITHIN_MS / 1000} seconds`;
    note(`Agents and rollouts are not shown: ${reason}`);
    return [status, null];
  }
}

/** Returns no field for a certificate that is valid for more than two weeks, or that has ended, which is a reason. */
function certificateFields(status: Partial<Status>, now: number): readonly (readonly [string, Line])[] {
  const { certificate_expires_at: at } = status;
  const left = at === undefined ? Number.POSITIVE_INFINITY : at * 1000 - now;
  if (at === undefined || left <= 0 || left > CERTIFICATE_SOON_MS) return [];
  return [
    ['Certificate', styled('warn', `ends in ${formatDuration(Math.floor(left / 1000))}, ${formatTime(at)}: renew it`)],
  ];
}

/** Returns no field if every rollout has ended. */
function rolloutFields({ rollouts }: FleetSummary): readonly (readonly [string, Line])[] {
  const { running, paused, halted } = rollouts;
  const counts: readonly (readonly [number, Span])[] = [
    [running, `${running} running`],
    [paused, styled('warn', `${paused} paused`)],
    [halted, styled('bad', `${halted} halted`)],
  ];
  const parts = counts.filter(([number]) => number > 0).map(([, part]) => part);
  if (parts.length === 0) return [];
  return [['Rollouts', parts.flatMap((part, index) => (index === 0 ? [part] : [', ', part]))]];
}

/** `orch discover`: has the orchestrator send discovery packets. */
export const discoverAgents = defineCommand({
  examples: ['orch discover', `orch discover --target 10.0.0.7:${DISCOVERY_PORT}`],
  detail: [
    'Sends a signed packet with the address of the orchestrator: to each of its networks, or to one agent. Agents that',
    'wait for a packet ("orch agent") and know its key connect; new ones then wait for approval. No agent answers the packet.',
  ],
  access: 'operator',
  options: { target: text('HOST:PORT', `address and UDP port of one agent [port ${DISCOVERY_PORT}]`) },
  run: async (context, { target }) => {
    const api = await context.api();
    const sent = await api.call('discover', { body: { target: target ?? null }, signal: context.signal });
    return {
      body: sent,
      names: sent.targets,
      view: lines(
        `Sent to ${sent.targets.join(', ')}.`,
        'Agents that follow it connect within seconds. New ones: orch agents --status pending',
      ),
    };
  },
});
