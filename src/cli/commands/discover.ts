/** `orch discover`. */
import { defineCommand, text } from '../define-command.js';
import { lines } from '../outcome.js';

export const command = defineCommand({
  examples: ['orch discover', 'orch discover --target 10.0.0.7:4747'],
  detail: [
    'Sends a signed packet that says where the orchestrator is: to every network that it is on, or to one agent. Agents that',
    'wait for one ("orch agent") and know its key connect then, and new ones wait for approval. Nothing answers the packet.',
  ],
  access: 'operator',
  options: { target: text('HOST:PORT', 'one agent, by its address and UDP port; 4747 unless it was told another') },
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
