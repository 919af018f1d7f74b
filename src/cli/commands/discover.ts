/** `orch discover`: has the orchestrator send discovery packets. */
import { DISCOVERY_PORT } from '../../kernel/ports.js';
import { defineCommand, text } from '../define-command.js';
import { lines } from '../outcome.js';

export const command = defineCommand({
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
