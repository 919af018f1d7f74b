/** How the programs of a terminal read it: the settings of the terminal, which Node has no call for. */
import { spawn } from 'node:child_process';
import type { Reading } from '../../terminal/frames.js';

/** Milliseconds after which the answer is `unknown`. */
const PATIENCE = 2_000;
const ENV = { PATH: '/usr/bin:/bin:/usr/local/bin', LC_ALL: 'C' };

/**
 * Asks `stty`, which takes a few milliseconds and does not touch the terminal. Resolves with `unknown` where there is none.
 * @param descriptor the program's side of the terminal
 */
export function readSettings(descriptor: number): Promise<Reading> {
  return new Promise((resolve) => {
    const stty = spawn('stty', ['-a'], { stdio: [descriptor, 'pipe', 'ignore'], env: ENV });
    const late = setTimeout(() => stty.kill('SIGKILL'), PATIENCE);
    let told = '';
    stty.stdout?.setEncoding('latin1').on('data', (text: string) => {
      told += text;
    });
    stty.once('error', () => {
      clearTimeout(late);
      resolve('unknown');
    });
    stty.once('close', () => {
      clearTimeout(late);
      resolve(readingOf(told));
    });
  });
}

function readingOf(told: string): Reading {
  const words = new Set(told.split(/[\s;]+/));
  if (words.has('-icanon')) return 'keys';
  if (!words.has('icanon')) return 'unknown';
  return words.has('echo') ? 'lines' : 'hidden';
}
