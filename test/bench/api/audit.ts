/** Pages of a long audit log, for twelve kinds of query. */
import type { LoadTarget } from '../http-load.js';
import { atMost, OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { percentile } from '../statistics.js';
import type { ApiBench } from './api.js';
import { idOfAgent, nameOfAgent } from './filled-orchestrator.js';

const EVENTS = sized(1_000_000, 2_000);
const ROUNDS = sized(3, 1);
/** Requests of each kind in a round. */
const PAGES = sized(50, 2);
const DAY = 86_400_000;

const daysAgo = (days: number): string => encodeURIComponent(new Date(Date.now() - days * DAY).toISOString());

const queries = (): readonly string[] => [
  '',
  '?limit=500',
  '?category=agent',
  '?category=operator',
  '?event_type=agent.connected',
  '?event_type=agent.refused',
  `?agent=${nameOfAgent(7)}`,
  `?agent=${idOfAgent(900)}&event_type=agent.refused`,
  `?after=${daysAgo(30)}&before=${daysAgo(29)}`,
  `?before=${daysAgo(50)}`,
  `?before=${daysAgo(40)}&category=operator`,
  `?agent=${nameOfAgent(11)}&after=${daysAgo(20)}`,
];

export async function measureAudit({ measure, say, filled, load }: ApiBench): Promise<void> {
  const half = `audit: a page among ${EVENTS} events, p50 of all queries`;
  const slowest = `audit: a page among ${EVENTS} events, p99 of the slowest of ${queries().length} queries`;
  await measure([half, slowest], async () => {
    const made = await filled();
    await made.growTo(1_000);
    say(`audit: ${EVENTS} events are written`);
    await made.replaceEvents(EVENTS);
    const { orchestrator } = made;
    const token = await made.session();
    const loader = await load();
    const ask = async (query: string): Promise<readonly number[]> => {
      const targets: readonly LoadTarget[] = Array(PAGES).fill(orchestrator.get(`/audit${query}`, token));
      return loader.ask<readonly number[]>({ do: 'sequence', targets });
    };
    for (const query of queries()) await ask(query);
    const halves: number[] = [];
    const worst: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const times: (readonly number[])[] = [];
      for (const query of queries()) times.push(await ask(query));
      halves.push(percentile(times.flat(), 0.5));
      worst.push(Math.max(...times.map((each) => percentile(each, 0.99))));
    }
    return [
      rowOf({ what: half, unit: 'ms', runs: new Map([[OURS, halves]]), goal: null }),
      rowOf({ what: slowest, unit: 'ms', runs: new Map([[OURS, worst]]), goal: atMost(10, 'ms') }),
    ];
  });
}
