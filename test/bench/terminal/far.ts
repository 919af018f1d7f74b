/** A remote shell over a link of any rate whose signals take their time, beside OpenSSH over the same link. */
import { SlowWay } from '../../support/slow-way.js';
import { alternate, atLeastTimes, atMostTimes, OURS, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import type { Fleet } from './fleet.js';
import { quietAfter } from './quiet.js';
import type { Sshd } from './sshd.js';
import { SSH, type Target } from './targets.js';
import { rateRows } from './throughput.js';

/** Milliseconds there and back. */
const TRIP = 100;
const ROUNDS = sized(5, 1);
const LINES = sized(200_000, 20_000);
const RATE = `terminal: throughput, round trip ${TRIP} ms`;
const QUIET = `terminal: Ctrl-C to quiet, a fast reader, round trip ${TRIP} ms`;

export const FAR_ROWS = [RATE, QUIET];

export async function measureFar(fleet: Fleet, sshd: Sshd | null): Promise<readonly Row[]> {
  const { env } = fleet;
  const ways: SlowWay[] = [];
  const wayTo = async (port: number) => {
    const way = await SlowWay.to(port, TRIP / 2);
    ways.push(way);
    return way.port;
  };
  try {
    const url = `https://127.0.0.1:${await wayTo(Number(fleet.api.url.port))}`;
    const at = ['--url', url, '--tls-fingerprint', fleet.fingerprint];
    const targets: Target[] = [
      { name: OURS, command: fleet.orch('term', fleet.name, '--escape-char', 'none', ...at), env },
    ];
    if (sshd !== null) targets.push({ name: SSH, command: sshd.over(await wayTo(sshd.port)), env });
    const rates = await rateRows(targets, { what: RATE, lines: LINES, goal: atLeastTimes(1, SSH) });
    const programs = new Map(targets.map((target) => [target.name, () => quietAfter(target)]));
    const quiet = await alternate(ROUNDS, programs);
    return [...rates, rowOf({ what: QUIET, unit: 'ms', runs: quiet, goal: atMostTimes(1, SSH) })];
  } finally {
    for (const way of ways) await way.close();
  }
}
