/** A machine on which something of each kind has happened, for the tests of operators with grants. */
import { rmSync } from 'node:fs';
import type { World } from '../api/world.js';
import { connectedAgent } from './limited-sessions.js';
import { openSocket } from './open-stream.js';
import { until } from './orch.js';

/** A machine, and every text that tells of it. */
export interface Machine {
  readonly name: string;
  readonly nodeId: string;
  readonly rolloutId: string;
  readonly operationId: string;
  readonly driftId: string;
  readonly snoozeId: string;
  readonly notificationId: string;
  readonly sessionId: string;
  /** Value of its tag `place`; that of `env` is its name. */
  readonly place: string;
}

/** Starts a machine with a rollout, drift, a snooze, a notification, and a session that stays open. */
export async function machineWithHistory(world: World, name: string): Promise<Machine> {
  const place = `place-of-${name}`;
  const nodeId = await connectedAgent(world, name);
  const params = { node_id: nodeId };
  await world.gives('setTag', { params: { ...params, key: 'place' }, body: { value: place } }, 204);
  const file = world.sandbox.path(`file-of-${name}`);
  const content = `name: of-${name}\nsupports: [{platform: linux}]\nresources:\n  - resource: {file-unix: {path: ${file}, content: one}}\n`;
  const sources = [{ name: `of-${name}`, content }];
  const body = { agents: [nodeId], modules: [`of-${name}`], sources, wait: false };
  const { rollout_id: rolloutId } = await world.gives('applyRollout', { body }, 202);
  const rollout = { params: { rollout_id: rolloutId } };
  await until(async () => (await world.gives('getRollout', rollout, 200)).finished_at !== null, `${name} is applied`);
  const { operations } = await world.gives('listAgentOperations', { params }, 200);
  rmSync(file);
  const { drift_id: driftId } = await world.gives('checkDrift', { params }, 200);
  const snooze = { ends_at: Math.floor(Date.now() / 1000) + 3600, reason: `of ${name}` };
  const { snooze_id: snoozeId } = await world.gives('snoozeDrift', { params, body: snooze }, 201);
  const { notifications } = await world.gives('listNotifications', {}, 200);
  const { id } = notifications.find(({ summary }: { summary: string }) => summary.includes(name));
  const { session_id: sessionId, ws_url: url } = await world.gives('openTerminal', { params }, 200);
  await openSocket(url);
  const operationId = operations[0].operation_id;
  return { name, nodeId, place, rolloutId, operationId, driftId, snoozeId, notificationId: id, sessionId };
}

/** Returns true if a text tells of the machine. */
export const tellsOf = (machine: Machine, text: string): boolean =>
  Object.values(machine).some((part) => text.includes(part));
