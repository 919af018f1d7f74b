/** `orch forward` and `orch ssh-proxy`: connections through an agent. */
import { Writable } from 'node:stream';
import { ForwardConnection } from '../../client/forward/forward-connection.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { argumentList, defineCommand, optionalArgument } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { agentName } from '../format.js';
import { parseForward, placeText } from '../forward/forward-spec.js';
import { forwardLine, startForwarder } from '../forward/forwarder.js';
import { nodeArgument, resolveNode } from '../nodes/resolve-node.js';
import { lines, type Outcome } from '../outcome.js';

export const openForward = defineCommand({
  examples: [
    'orch forward db-01 5432:localhost:5432',
    'orch forward web-01 8080:localhost:80 9090:metrics.internal:9090',
    'orch forward db-01 5432:/run/postgresql/.s.PGSQL.5432',
    'orch forward app-01 /tmp/docker.sock:/run/docker.sock',
  ],
  detail: [
    'Listens on this machine until Ctrl-C. The machine of NODE resolves and reaches the target. Without BIND only',
    'programs of this machine can connect; * binds to all addresses. Port 0 chooses a free one. A path stands for a',
    'Unix socket on either side, and only you may connect to a local one. The settings of the agent have to permit',
    'the target (forward.targets). The audit log keeps targets, bytes and duration, never content. A lost link ends',
    'open connections; the next connection opens a new one.',
  ],
  access: 'operator',
  args: {
    node: nodeArgument,
    forwards: argumentList('FORWARD', '[BIND:]PORT:HOST:PORT, or with paths of Unix sockets'),
  },
  run: async (context, { node, forwards }) => {
    const [first, ...others] = forwards.map(parseForward);
    if (first === undefined) throw new Fault('usage', 'there is no forward');
    const { clock, signal } = context;
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal });
    const specs = [first, ...others] as const;
    const warn = (text: string) => context.warn(text);
    const forwarder = await startForwarder({ api, clock, nodeId: agent.node_id, specs, signal, warn });
    return (async function* () {
      try {
        for (const [index, place] of forwarder.places.entries()) {
          const spec = specs[index] ?? first;
          yield {
            body: { listen: placeText(place), node: agentName(agent), target: spec.targetText },
            oneLine: true as const,
            names: [placeText(place)],
            view: lines(forwardLine(place, agentName(agent), spec)),
          };
        }
        await aborted(signal);
      } finally {
        forwarder.close();
      }
    })();
  },
});

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

export const sshProxy = defineCommand({
  examples: ['orch ssh-proxy web-01', 'orch ssh-proxy web-01 2222'],
  detail: [
    'ssh still checks host key and user. "orch ssh-config" prints the lines for ~/.ssh/config.',
    'The settings of the agent have to permit it (ssh_proxy.targets).',
  ],
  access: 'operator',
  failureStatus: EXIT.lost,
  args: { node: nodeArgument, port: optionalArgument('PORT', 'port of the SSH server on the machine [22]') },
  run: async (context, { node, port }) => {
    const number = port === undefined ? null : Number(port);
    if (number !== null && !(Number.isInteger(number) && number >= 1 && number <= 65_535)) {
      throw new Fault('usage', `"${port}" is no port`);
    }
    const { clock, signal } = context;
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal });
    const body = number === null ? {} : { port: number };
    const opened = await api.call('openSshProxy', { params: { node_id: agent.node_id }, body, signal });
    let lost: Fault | null = null;
    const onLost = (cause: Fault) => {
      lost = cause;
    };
    const connection = new ForwardConnection({ api, clock, opened, onLost });
    await connection.ready;
    try {
      const reason = await relay(context, connection);
      if (reason !== null) throw lost ?? new Fault('unreachable', reason);
    } finally {
      connection.close();
    }
    return {} satisfies Outcome;
  },
});

/** Relays standard input and output. Returns null when the server has ended the connection, else why it broke. */
function relay({ streams, signal }: Context, connection: ForwardConnection): Promise<string | null> {
  return new Promise((resolve) => {
    const { stdin, stdout } = streams;
    const sink = new Writable({
      write: (chunk, _, done) => void stdout.write(chunk, (error) => done(error)),
      // The caller waits for the end of our output, which only our exit gives.
      final: (done) => {
        done();
        resolve(null);
      },
    });
    const destroy = () => void sink.destroy();
    signal.addEventListener('abort', () => resolve(null), { once: true });
    connection.connect(0, { source: stdin, sink, destroy }, resolve);
  });
}
