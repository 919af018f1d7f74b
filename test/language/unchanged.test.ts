/**
 * Modules that were written before the language had conditions and loops mean what they meant: `unchanged-modules.json` holds
 * the hashes of their definitions and desired states as the last build before these made them. It is never made anew.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { isFault } from '../../src/kernel/fault.js';
import { canonicalJson } from '../../src/kernel/json.js';
import type { AgentFacts } from '../../src/language/evaluate.js';
import { parseModule } from '../../src/language/parse-module.js';
import { resolve } from '../../src/language/resolve.js';
import unchanged from './unchanged-modules.json' with { type: 'json' };

const LINUX = { platform: 'linux', init_system: 'systemd', arch: 'x86_64', hostname: 'web-01' };
const TAGS = { env: 'prod', role: 'web', site: 'home', tier: 'web', team: 'a', zone: '1', mode: '0644', color: 'red' };
const agent = (attributes: Readonly<Record<string, string>>): AgentFacts => ({
  node_id: '0'.repeat(32),
  name: 'web-01',
  attributes: { ...LINUX, ...attributes },
  tags: TAGS,
});
const AGENTS = [
  agent({ distro: 'debian', version: '12' }),
  agent({ distro: 'fedora', version: '40' }),
  agent({ platform: 'windows', init_system: 'scm' }),
];

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Returns the hashes of a module's definition, and of what it makes of each agent or why it does not; null for a wrong module. */
function hashesOf(text: string): readonly string[] | null {
  const { definition } = parseModule(text);
  if (definition === null) return null;
  const modules = [{ name: definition.name, definition }];
  const states = AGENTS.map((one) => {
    try {
      const secret = (name: string) => ({ value: `value of ${name}`, tag: '0000' });
      const { resources, checks } = resolve({ modules, agent: one, secret });
      return canonicalJson({ resources, checks });
    } catch (error) {
      if (!isFault(error)) throw error;
      return error.code;
    }
  });
  return [canonicalJson(definition), ...states].map(sha256);
}

const textOf = (path: string): string => {
  const text = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  if (!path.includes('/cases/')) return text;
  const { input } = parse(text);
  return typeof input === 'string' ? input : '';
};

describe('a module of earlier days', () => {
  it.each(Object.entries(unchanged))('%s means what it meant', (path, hashes) => {
    expect(hashesOf(textOf(path))).toEqual(hashes);
  });

  it('is one of many', () => {
    expect(Object.keys(unchanged).length).toBeGreaterThan(70);
  });
});
