/** Expected output in files; UPDATE_GOLDENS=1 writes them anew, to be reviewed like code. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { Ran } from './cli.js';

const folder = fileURLToPath(new URL('../goldens/', import.meta.url));

export function expectGolden(name: string, text: string): void {
  const path = `${folder}${name}.txt`;
  if (process.env.UPDATE_GOLDENS === '1') writeFileSync(path, text);
  expect(text).toBe(readFileSync(path, 'utf8'));
}

/** What a person sees of a command, with what they typed. */
export function transcript(argv: readonly string[], { status, stdout, stderr }: Ran): string {
  const typed = argv.map((word) => (/^[\w./:@=-]+$/.test(word) ? word : `'${word}'`)).join(' ');
  const error = stderr === '' ? '' : `--- standard error\n${stderr}`;
  return `$ orch ${typed}\n${stdout}${error}--- exit status ${status}\n`;
}
