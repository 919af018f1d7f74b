/** The pager of long output on a terminal. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Env } from '../env.js';
import type { OutputStream } from './streams.js';
import { widthOf } from './terminal-text.js';

export interface Pager {
  readonly command: string;
  /** Variable that names it; null for the default one. */
  readonly from: 'ORCH_PAGER' | 'PAGER' | null;
}

const STANDARD = 'less -FRX';

/** Returns the pager: `ORCH_PAGER`, then `PAGER`, then `less -FRX`. Null if an empty text or `cat` turns it off. */
export function choosePager(env: Env): Pager | null {
  const from = env.ORCH_PAGER !== undefined ? 'ORCH_PAGER' : env.PAGER ? 'PAGER' : null;
  const command = (from === null ? STANDARD : (env[from] ?? '')).trim();
  return command === '' || command === 'cat' ? null : { command, from };
}

/** Returns false if the pager is the default one and is not installed. */
export function isThere({ command, from }: Pager, { PATH = '' }: Env): boolean {
  if (from !== null) return true;
  const [program = ''] = command.split(' ');
  return PATH.split(delimiter).some((directory) => directory !== '' && existsSync(join(directory, program)));
}

/** Returns whether a text fits the terminal, with a line left for the prompt of the shell. */
export function fits(text: string, { columns = 80, rows = 24 }: Pick<OutputStream, 'columns' | 'rows'>): boolean {
  const lines = text.split('\n').slice(0, -1);
  if (lines.length >= rows) return false;
  const heights = lines.map((line) => Math.max(1, Math.ceil(widthOf(stripVTControlCharacters(line)) / columns)));
  return heights.reduce((sum, height) => sum + height, 0) < rows;
}

/** Exit statuses of a shell that could not run the command. */
const NOT_RUN: readonly (number | null)[] = [126, 127];

/**
 * Shows a text in the pager, and resolves when the operator has left it, true. Resolves with false if there is no such
 * program, so that nothing was shown.
 */
export function page(
  text: string,
  pager: Pager,
  { env, fd }: { readonly env: Env; readonly fd: number },
): Promise<boolean> {
  return new Promise((resolve) => {
    // Like git: colours, no pager for what fits, and the text stays on the screen. The operator's own LESS wins.
    const child = spawn(pager.command, {
      shell: true,
      stdio: ['pipe', fd, 'inherit'],
      env: { LESS: 'FRX', LV: '-c', ...env },
    });
    // The operator may leave before all was read.
    child.stdin?.on('error', () => {});
    child.on('error', () => resolve(false));
    child.on('close', (status) => resolve(!NOT_RUN.includes(status)));
    child.stdin?.end(text);
  });
}
