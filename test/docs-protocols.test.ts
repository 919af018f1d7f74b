/** The documents of the protocols: code comments cite only what is there, and the values in them are those of the code. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ENGINE_LIMITS } from '../daemon/engine/engine-limits.js';
import { ONE_OFF_LIMITS } from '../src/contract/run-targets.js';
import { FRAME } from '../src/terminal/frames.js';
import { TERMINAL_LIMITS } from '../src/terminal/limits.js';
import { LINK_LIMITS } from '../src/wire/limits.js';
import { AgentMessageSchemas, OrchestratorMessageSchemas } from '../src/wire/messages.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = (name: string) => readFileSync(join(root, 'docs/protocols', name), 'utf8');

const sources = ['bin', 'src', 'daemon'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name)),
);

describe('comments', () => {
  it('cite documents that are there, by their path', () => {
    const citations = sources.flatMap((file) => {
      const comments = readFileSync(join(root, file), 'utf8').match(/\/\*\*[\s\S]*?\*\/|\/\/ .*/g) ?? [];
      return comments.flatMap((text) => (text.match(/[\w./-]+\.md\b/g) ?? []).map((cited) => ({ file, cited })));
    });
    expect(citations.length).toBeGreaterThan(10);
    expect(citations.filter(({ cited }) => !existsSync(join(root, cited)))).toEqual([]);
  });
});

describe('the limits', () => {
  const rows = page('limits.md').split('## ');
  const shown = (value: unknown) =>
    typeof value === 'object'
      ? Object.entries(value ?? {})
          .map(([name, one]) => `${name} ${one}`)
          .join(', ')
      : String(value);

  it.each([
    ['Agent link', LINK_LIMITS],
    ['Terminals', TERMINAL_LIMITS],
    ['Values of a request', ONE_OFF_LIMITS],
    ['Engine', ENGINE_LIMITS],
  ] as const)('of "%s" have their value and a reason', (title, limits) => {
    const section = rows.find((one) => one.startsWith(title)) ?? '';
    const found = [...section.matchAll(/^\| `(\w+)` \| ([^|]+) \| [^|]{10,} \|$/gm)].map(([, name, value]) => [
      name,
      value,
    ]);
    expect(found).toEqual(Object.entries(limits).map(([name, value]) => [name, shown(value)]));
  });
});

describe('the messages', () => {
  it.each(Object.keys({ ...AgentMessageSchemas, ...OrchestratorMessageSchemas }))('%s is described', (type) => {
    expect(page('agent-link.md')).toMatch(new RegExp(`^\\| (.*, )?\`${type}\`(, .*)? \\|`, 'm'));
  });

  it.each(Object.entries(FRAME))('of terminals and forwards: %s is described', (_, type) => {
    expect(page('terminal.md')).toMatch(new RegExp(`^\\| .*0x${type.toString(16).padStart(2, '0')}\\b`, 'm'));
  });
});
