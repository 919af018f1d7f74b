/** `orch top`: the fleet at a glance, live or once. */
import type { Context } from '../context.js';
import { choice, defineCommand, flag } from '../define-command.js';
import { agentHandle } from '../format.js';
import { fleetBody, ProcessorHistory, readFleet, SORTS, sortFleet } from '../top/fleet.js';
import { snapshotView } from '../top/fleet-view.js';

export const command = defineCommand({
  examples: ['orch top', 'orch top --sort memory', 'orch top --once', 'orch top -o json'],
  detail: [
    'Shows agents with their latest measurements, and the activity of the fleet: operations, open terminals, the newest',
    'events. On a terminal it is redrawn every two seconds until q or Ctrl-C; c, m, d, u, s and n sort by processors,',
    'memory, disk, uptime, status and name, the arrows scroll. Elsewhere, and with --once or -o json, it is shown once.',
  ],
  access: 'viewer',
  options: {
    once: flag('show the fleet once and end'),
    sort: choice('ORDER', SORTS, 'sort order of the agents [cpu]'),
  },
  run: async (context, { once, sort = 'cpu' }) => {
    const { signal, streams, globals, clock } = context;
    const api = await context.api();
    const isLive = !once && globals.output === 'table' && streams.stdout.isTTY === true && streams.stdin.isTTY === true;
    if (isLive) {
      const { watchFleet } = await import('../top/live-fleet.js');
      await watchFleet(context, api, sort);
      return {};
    }
    const fleet = await readFleet(api, signal);
    const history = new ProcessorHistory();
    history.add(fleet);
    const agents = sortFleet(fleet.agents, sort);
    return {
      body: fleetBody(fleet),
      names: agents.map(({ agent }) => agentHandle(agent)),
      view: snapshotView({ fleet, history, agents, columns: columnsOf(context) }, clock.now()),
    };
  },
});

const columnsOf = ({ streams: { stdout }, globals }: Context): number | null =>
  stdout.isTTY === true && globals.output === 'table' ? (stdout.columns ?? null) : null;
