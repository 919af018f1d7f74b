/** Installed programs of others that do the same work. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { Bench } from './row.js';

export const CFENGINE = 'cf-agent';
export const PUPPET = 'puppet';

/** Debian package of each program. */
const PACKAGES: Readonly<Record<string, string>> = {
  [CFENGINE]: 'cfengine3',
  [PUPPET]: 'puppet-agent',
  cc: 'gcc',
};

/** Returns its path, or null when it is not installed; the bench then names it as missing. */
export function findProgram(name: string, { missing }: Pick<Bench, 'missing'>): string | null {
  const places = (process.env.PATH ?? '').split(delimiter).map((directory) => join(directory, name));
  const found = places.find((place) => existsSync(place));
  if (found === undefined) missing(name, `not installed; apt-get install ${PACKAGES[name] ?? name}`);
  return found ?? null;
}

/** Makes a work directory with a key for CFEngine, and returns the environment that selects it. */
export function prepareCfengine(program: string, directory: string): NodeJS.ProcessEnv {
  const env = { CFENGINE_TEST_OVERRIDE_WORKDIR: directory };
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  symlinkSync(dirname(program), join(directory, 'bin'));
  const { status, stderr } = spawnSync('cf-key', { env: { ...process.env, ...env } });
  if (status !== 0) throw new Error(`cf-key ended with ${status}: ${stderr}`);
  return env;
}

/** Quotes a text for a policy. */
export const cfengineText = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`;
