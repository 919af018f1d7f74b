/** Where copies are measured, and how their programs run. */
import { spawn } from 'node:child_process';
import type { Fleet } from '../terminal/fleet.js';
import type { Jump } from './jump.js';

export interface Place {
  /** Directory that the agent may read and write. */
  readonly root: string;
  readonly fleet: Fleet;
  /** Null without an OpenSSH server. */
  readonly jump: Jump | null;
}

/** A program that runs until it has ended, or `stop` is called. */
export interface Running {
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** Starts a program, whose end rejects unless its status is 0. */
export function start([file = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): Running {
  const child = spawn(file, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (text) => {
    errors += text;
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status) => {
      if (status === 0) resolve();
      else reject(new Error(`${file} ${args.join(' ')} ended with ${status}: ${errors.trim()}`));
    });
  });
  ended.catch(() => undefined);
  return {
    ended,
    stop: async () => {
      child.kill();
      await ended.catch(() => undefined);
    },
  };
}

/** Runs a program to its end. Returns its time in seconds. */
export async function timeOf(command: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const begin = performance.now();
  await start(command, env).ended;
  return (performance.now() - begin) / 1000;
}
