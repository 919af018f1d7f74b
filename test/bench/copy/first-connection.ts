/** Time from the command to the first byte of a connection behind the agent. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { alternate, atMostTimes, OURS, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { MACHINE } from './jump.js';
import type { Place } from './place.js';

const ROUNDS = sized(9, 1);
const WHAT = 'forward: from the command to the first byte';
const THEIRS = 'ssh -W';

export const FIRST_CONNECTION_ROWS = [WHAT];

export async function measureFirstConnection({ fleet, jump }: Place): Promise<readonly Row[]> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('welcome\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const programs = new Map([[OURS, () => firstByte(fleet.orch('ssh-proxy', fleet.name, `${port}`), fleet.env)]]);
  if (jump !== null) {
    programs.set(THEIRS, () => firstByte(jump.ssh('-W', `127.0.0.1:${port}`, MACHINE), fleet.env));
  }
  try {
    const runs = await alternate(ROUNDS, programs);
    return [rowOf({ what: WHAT, unit: 'ms', runs, goal: atMostTimes(1.5, THEIRS) })];
  } finally {
    server.close();
  }
}

/** Starts a program and ends it after its first byte. Returns the milliseconds to it. */
async function firstByte([file = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const begin = performance.now();
  const child = spawn(file, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (text) => {
    errors += text;
  });
  const ended = once(child, 'close');
  const time = await new Promise<number>((resolve, reject) => {
    child.stdout.once('data', () => resolve(performance.now() - begin));
    child.once('close', (status) => reject(new Error(`${file} ended with ${status}: ${errors.trim()}`)));
  });
  child.kill('SIGKILL');
  await ended;
  return time;
}
