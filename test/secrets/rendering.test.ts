/** Whatever a secret and a template hold: no rendering of a plan, an apply or a drift check shows the value. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apply, drift, plan } from '../../src/agent/converge.js';
import { mask } from '../../src/kernel/tainted.js';
import type { SecretSource } from '../../src/language/filling.js';
import { resolve } from '../../src/language/resolve.js';
import { maskResource } from '../../src/resources/tainted-body.js';
import type { RunContent } from '../../src/wire/parts.js';
import { clock, host } from '../support/agent.js';
import { drawn } from '../support/exhaustive.js';

/** Letters that occur neither in literals of the templates nor in what is printed around them. */
const unit = fc.constantFrom(
  ...'ABCDEFGHIJKLMNOPQRSTUVWXYZ',
  '$',
  '&',
  '`',
  '\\',
  '"',
  '%',
  '\n',
  '\t',
  'Ü',
  '€',
  '🔑',
  '{{',
  '}}',
  '$1',
);
const value = fc.string({ unit, minLength: 6, maxLength: 40 }).filter((text) => /[A-Z]{2}/.test(text));
const literal = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '=', '\n', ':'), maxLength: 12 });
const part = fc.oneof(literal, fc.constantFrom('$' + '{{ secrets.one }}', '$' + '{{ secrets.two }}'));
const template = fc
  .array(part, { minLength: 1, maxLength: 8 })
  .map((parts) => parts.join(''))
  .filter((text) => text.includes('secrets.'));

const scenario = fc.record({
  template,
  before: fc.tuple(value, value),
  now: fc.tuple(value, value),
  /** The state of the machine when the secrets have changed. */
  machine: fc.oneof(fc.constant('as applied'), fc.constant('nothing'), literal, fc.constant('changed by hand')),
});

const sourceOf =
  ([one, two]: readonly [string, string], digit: string): SecretSource =>
  (name) => ({ value: name === 'one' ? one : two, tag: digit.repeat(4) });

function contentOf(path: string, content: string, secret: SecretSource): RunContent {
  const body = { 'file-unix': { path, content } };
  const definition = { name: 'm', supports: [{}], resources: [{ resource: body }] };
  const agent = { node_id: 'n', name: 'web-01', attributes: { platform: 'linux' }, tags: {} };
  const { resources } = resolve({ modules: [{ name: 'm', definition }] as never, agent, secret });
  return { resources, removals: [] };
}

/** Every string inside a value. */
function stringsIn(found: unknown): readonly string[] {
  if (typeof found === 'string') return [found];
  return typeof found === 'object' && found !== null ? Object.values(found).flatMap(stringsIn) : [];
}

/** A value, and those of its lines that are long enough to be distinguished from common text. */
const tellTales = (secret: string): readonly string[] => [
  secret,
  ...secret.split('\n').filter((line) => /[A-Z]{2}/.test(line) && line.length >= 6),
];

describe('a value of at least six characters', () => {
  it('is in no rendering', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ template: text, before, now, machine }) => {
        const directory = mkdtempSync(join(tmpdir(), 'orch-render-'));
        try {
          const path = join(directory, 'file');
          const [old, young] = [
            contentOf(path, text, sourceOf(before, '1')),
            contentOf(path, text, sourceOf(now, '2')),
          ];
          const seen: unknown[] = [await plan(old, host(), { clock }), await apply(old, host(), { clock })];
          if (machine === 'nothing') rmSync(path);
          else if (machine === 'changed by hand')
            writeFileSync(path, `x\n${String(old.resources[0]?.body.content)}\ny`);
          else if (machine !== 'as applied') writeFileSync(path, machine);
          seen.push(await drift(old, host(), { clock }), await plan(young, host(), { clock }));
          seen.push(await drift(young, host(), { clock }), await apply(young, host(), { clock }));
          seen.push(old.resources.map(maskResource), young.resources.map(maskResource));
          const shown = stringsIn(seen).join('\0');
          for (const secret of [...before, ...now].flatMap(tellTales)) expect(shown).not.toContain(secret);
        } finally {
          rmSync(directory, { recursive: true, force: true });
        }
      }),
      { numRuns: drawn(300) },
    );
  });

  it('leaves the rest of the text as it was', () => {
    fc.assert(
      fc.property(template, fc.tuple(value, value), (text, values) => {
        const [resource] = contentOf('/f', text, sourceOf(values, '1')).resources;
        const spans = resource?.taint?.['/content'] ?? [];
        const expected = text.replace(/\$\{\{ secrets\.(one|two) \}\}/g, (_all, name) => `‹secret ${name} #1111›`);
        expect(mask(String(resource?.body.content), spans)).toBe(expected);
      }),
    );
  });
});
