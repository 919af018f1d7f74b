/** A login: a challenge, its signature, a session, and its end. */
import { cpuTime } from '../process-figures.js';
import { OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { percentile } from '../statistics.js';
import type { ApiBench } from './api.js';

const LOGINS = sized(100, 4);
const ROUNDS = sized(3, 1);
const AT_ONCE = 4;

export async function measureLogin({ measure, filled }: ApiBench): Promise<void> {
  const half = 'api: login, p50';
  const slowest = 'api: login, p99';
  const cpu = 'api: CPU of the orchestrator for each login';
  const rate = `api: logins a second, ${AT_ONCE} at a time`;
  await measure([half, slowest, cpu, rate], async () => {
    const { orchestrator } = await filled();
    const timed = async () => {
      const start = performance.now();
      await orchestrator.logIn();
      return performance.now() - start;
    };
    await timed();
    const rounds: { p50: number; p99: number; cpu: number; rate: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = cpuTime(orchestrator.pid);
      const times: number[] = [];
      while (times.length < LOGINS) times.push(await timed());
      const used = (cpuTime(orchestrator.pid) - before) / LOGINS;
      const start = performance.now();
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          for (let login = 0; login < LOGINS / AT_ONCE; login += 1) await orchestrator.logIn();
        }),
      );
      const perSecond = (LOGINS * 1_000) / (performance.now() - start);
      rounds.push({ p50: percentile(times, 0.5), p99: percentile(times, 0.99), cpu: used, rate: perSecond });
    }
    const runs = (of: (round: (typeof rounds)[number]) => number) => new Map([[OURS, rounds.map(of)]]);
    return [
      rowOf({ what: half, unit: 'ms', runs: runs(({ p50 }) => p50), goal: null }),
      rowOf({ what: slowest, unit: 'ms', runs: runs(({ p99 }) => p99), goal: null }),
      rowOf({ what: cpu, unit: 'ms', runs: runs((round) => round.cpu), goal: null }),
      rowOf({ what: rate, unit: '/s', runs: runs((round) => round.rate), goal: null }),
    ];
  });
}
