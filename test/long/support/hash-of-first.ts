/** The SHA-256 of so many bytes that a command begins with, run here. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';

export function hashOfFirst(bytes: number, [file = '', ...args]: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  let left = bytes;
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      hash.update(chunk.subarray(0, left));
      left -= Math.min(left, chunk.length);
      if (left === 0) child.kill();
    });
    child.on('close', () => resolve(left === 0 ? hash.digest('hex') : `${left} bytes are missing`));
  });
}
