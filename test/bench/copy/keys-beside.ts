/** By how much a copy at full speed delays a key of a terminal on the same machine. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { atMost, OURS, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { median } from '../statistics.js';
import { open, type Target } from '../terminal/targets.js';
import type { Typist } from '../terminal/typist.js';
import { MACHINE } from './jump.js';
import { plant } from './large-file.js';
import { type Place, start } from './place.js';

const ROUNDS = sized(5, 1);
const KEYS = sized(100, 3);
const MEGABYTES = sized(2000, 16);
/** Milliseconds between keys, as a fast typist has. */
const PAUSE = 20;
/** Milliseconds until a copy moves data. */
const BEGIN = sized(1_000, 0);
const WHAT = 'copy: delay of a key beside a copy at full speed, p50';

export const KEY_ROWS = [WHAT];

export async function measureKeys({ root, fleet, jump }: Place): Promise<readonly Row[]> {
  const { env, name } = fleet;
  const directory = join(root, 'keys');
  mkdirSync(directory);
  const [source, target] = [join(directory, 'source'), join(directory, 'target')];
  plant(source, MEGABYTES);
  const sides: { readonly shell: Target; readonly copy: readonly string[] }[] = [
    {
      shell: { name: OURS, command: fleet.orch('term', name, '--escape-char', 'none'), env },
      copy: fleet.orch('cp', source, `${name}:${target}`),
    },
  ];
  if (jump !== null) {
    const shell = { name: 'ssh -J beside scp', command: jump.ssh('-tt', MACHINE), env };
    sides.push({ shell, copy: jump.scp(source, `${MACHINE}:${target}`) });
  }
  const runs = new Map<string, number[]>(sides.map(({ shell }) => [shell.name, []]));
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const { shell, copy } of sides) {
        const typist = await open(shell);
        try {
          typist.forget();
          typist.type("stty raw -echo; printf 'now-%s' raw; exec cat\r");
          await typist.shows(/now-raw/);
          await typed(typist);
          const alone = await typed(typist);
          const running = start(copy, env);
          try {
            await wait(BEGIN);
            runs.get(shell.name)?.push((await typed(typist)) - alone);
          } finally {
            await running.stop();
          }
        } finally {
          await typist.close();
        }
      }
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  return [rowOf({ what: WHAT, unit: 'ms', runs, goal: atMost(5, 'ms') })];
}

/** Types keys. Returns the median of their milliseconds. */
async function typed(typist: Typist): Promise<number> {
  const times: number[] = [];
  for (let key = 0; key < KEYS; key += 1) {
    times.push(await typist.key('k'));
    await wait(PAUSE);
  }
  return median(times);
}
