/** Requests a second, beside servers that answer with the same bytes and do nothing else. */
import type { Load, LoadTarget } from '../http-load.js';
import type { BareHttpsQuestion } from '../limits/bare-https.js';
import { Program } from '../programs.js';
import { alternate, atLeastTimes, type Goal, numbersOf, OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import type { ApiBench } from './api.js';
import { idOfAgent } from './filled-orchestrator.js';

const ROUNDS = sized(5, 1);
/** Milliseconds of one round of one server. */
const ROUND = sized(1_000, 100);
const AGENTS = sized(1_000, 100);
const FASTIFY = 'fastify over TLS';
const BARE = 'node:https';

interface Work {
  readonly name: string;
  readonly path: string;
  readonly connections: number;
  readonly fresh?: boolean;
  readonly goal: Goal | null;
}

const WORK: readonly Work[] = [
  { name: 'GET /status, 10 connections', path: '/status', connections: 10, goal: atLeastTimes(0.6, FASTIFY) },
  { name: 'GET /status, 50 connections', path: '/status', connections: 50, goal: atLeastTimes(0.6, FASTIFY) },
  {
    name: 'GET /agents/{id}, 10 connections',
    path: `/agents/${idOfAgent(7)}`,
    connections: 10,
    goal: atLeastTimes(0.5, FASTIFY),
  },
  {
    name: 'GET /agents of 100, 10 connections',
    path: '/agents?limit=100',
    connections: 10,
    goal: atLeastTimes(0.5, FASTIFY),
  },
  { name: 'GET /status, a new connection each', path: '/status', connections: 10, fresh: true, goal: null },
];

export async function measureThroughput({ measure, missing, filled, load }: ApiBench): Promise<void> {
  for (const { name, path, connections, fresh = false, goal } of WORK) {
    const rate = `api: ${name}`;
    const slowest = `api: ${name}, p99`;
    await measure([rate, slowest], async () => {
      const { orchestrator, session } = await grown(filled);
      const token = await session();
      const ours = orchestrator.get(path, token);
      const { text } = await orchestrator.api.raw('GET', `/api/v1${path}`);
      const loader = await load();
      const servers: Program[] = [];
      const limit = async (server: BareHttpsQuestion['server']): Promise<LoadTarget | null> => {
        const program = new Program('bare-https');
        servers.push(program);
        const port = await program.ask<number | null>({ server, answers: { [path]: JSON.parse(text) } });
        const request = ours.request.replace(`GET /api/v1${path}`, `GET ${path}`);
        return port === null ? null : { port, request };
      };
      try {
        const targets = new Map<string, LoadTarget>([[OURS, ours]]);
        const fastify = await limit('fastify');
        if (fastify === null) missing(FASTIFY, 'not installed; npm ci');
        else targets.set(FASTIFY, fastify);
        const bare = await limit('node:https');
        if (bare !== null) targets.set(BARE, bare);
        const ask = (target: LoadTarget, ms: number) =>
          loader.ask<Load>({ do: 'load', target, connections, ms, fresh });
        // The first requests compile what the later ones run.
        for (const target of targets.values()) await ask(target, ROUND / 2);
        const programs = new Map([...targets].map(([server, target]) => [server, () => ask(target, ROUND)]));
        const runs = await alternate(ROUNDS, programs);
        return [
          rowOf({ what: rate, unit: '/s', runs: numbersOf(runs, ({ perSecond }) => perSecond), goal }),
          rowOf({ what: slowest, unit: 'ms', runs: numbersOf(runs, ({ p99 }) => p99), goal: null }),
        ];
      } finally {
        await Promise.all(servers.map((server) => server.stop()));
      }
    });
  }
}

async function grown(filled: ApiBench['filled']) {
  const made = await filled();
  await made.growTo(AGENTS);
  return { orchestrator: made.orchestrator, session: () => made.session() };
}
