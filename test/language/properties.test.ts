/** Properties of every text, every module and every agent. */

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { isFault } from '../../src/kernel/fault.js';
import { findCycles, stableOrder } from '../../src/kernel/order.js';
import { mask } from '../../src/kernel/tainted.js';
import { clauseMatches } from '../../src/language/clause.js';
import { DIAGNOSTIC_CODES, renderDiagnostic } from '../../src/language/diagnostic.js';
import type { AgentFacts } from '../../src/language/evaluate.js';
import { parseText } from '../../src/language/expression.js';
import { type FillContext, fillText } from '../../src/language/filling.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { type ParsedModule, parseModule } from '../../src/language/parse-module.js';
import { resolve } from '../../src/language/resolve.js';
import type { ModuleDefinition } from '../../src/language/schema.js';
import { matches, parseSelector } from '../../src/language/selector.js';
import { Work } from '../../src/language/work.js';
import { drawn } from '../support/exhaustive.js';
import { agent, module, soundModule } from '../support/language.js';

const runs = { numRuns: drawn(200) };
const codes: ReadonlySet<string> = new Set(DIAGNOSTIC_CODES);

/** A definition or errors; every place lies in the text; the places are in order. */
function expectSound(text: string, { definition, diagnostics }: ParsedModule): void {
  expect(definition === null).toBe(diagnostics.some(({ severity }) => severity === 'error'));
  const lines = text.replace(/^\ufeff/, '').split('\n');
  let before = { line: 1, column: 1 };
  for (const diagnostic of diagnostics) {
    const { line, column, endColumn, code } = diagnostic;
    expect(codes.has(code)).toBe(true);
    expect(line).toBeLessThanOrEqual(lines.length);
    expect(column).toBeLessThanOrEqual((lines[line - 1] ?? '').length + 1);
    if (endColumn !== undefined) expect(endColumn).toBeGreaterThan(column);
    expect(line > before.line || (line === before.line && column >= before.column)).toBe(true);
    before = { line, column };
    expect(renderDiagnostic(diagnostic, { file: 'f', source: text })).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f]/);
  }
}

describe('any text', () => {
  it('gives a definition or errors, never an exception', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })), (text) =>
        expectSound(text, parseModule(text)),
      ),
      { numRuns: drawn(1000) },
    );
  });

  it('made of the signs of YAML too', () => {
    const sign = fc.constantFrom(
      ...[
        '\n',
        '\n  ',
        '\n    ',
        '\t',
        ' ',
        ': ',
        '- ',
        '? ',
        '[',
        ']',
        '{',
        '}',
        ', ',
        '"',
        "'",
        '|',
        '>',
        '#',
        '&a',
        '*a',
      ],
      ...[
        '!t',
        '%',
        '@',
        '---',
        '...',
        '<<',
        '~',
        '\r\n',
        '\\',
        '1',
        'name',
        'supports',
        'resources',
        'resource',
        'id',
        OPEN,
      ],
      ...[
        'file-unix',
        'path',
        'variants',
        'when',
        'platform',
        'linux',
        'templates',
        'content',
        'depends_on',
        '}}',
        '__proto__',
      ],
    );
    const text = fc.array(sign, { maxLength: 60 }).map((signs) => signs.join(''));
    fc.assert(
      fc.property(text, (one) => expectSound(one, parseModule(one))),
      { numRuns: drawn(1500) },
    );
  });

  const folder = fileURLToPath(new URL('cases/parse/', import.meta.url));
  const samples = readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => String(parse(readFileSync(folder + name, 'utf8')).input));

  it('made of a module with parts cut out, doubled and exchanged', () => {
    const edit = fc.record({
      at: fc.nat(2000),
      length: fc.nat(30),
      to: fc.nat(2000),
      how: fc.constantFrom('cut', 'double', 'move'),
    });
    fc.assert(
      fc.property(fc.constantFrom(...samples), fc.array(edit, { minLength: 1, maxLength: 5 }), (sample, edits) => {
        let text = sample;
        for (const { at, length, to, how } of edits) {
          const start = at % (text.length + 1);
          const part = text.slice(start, start + length);
          if (how !== 'double') text = text.slice(0, start) + text.slice(start + length);
          const target = to % (text.length + 1);
          if (how !== 'cut') text = text.slice(0, target) + part + text.slice(target);
        }
        expectSound(text, parseModule(text));
      }),
      { numRuns: drawn(800) },
    );
  });
});

const secret = (name: string) => ({ value: `value of ${name}`, tag: 'abcd' });

const parsed = (definition: ModuleDefinition) => parseModule(stringify(definition));

function outcomeOf(definitions: readonly ModuleDefinition[], facts: AgentFacts) {
  const modules = definitions.map((definition) => ({ name: definition.name, definition }));
  try {
    return resolve({ modules, agent: facts, secret });
  } catch (error) {
    if (isFault(error)) return error;
    throw error;
  }
}

describe('any module', () => {
  it('reads back as it was written', () => {
    fc.assert(
      fc.property(module('m'), (definition) => {
        const { definition: read } = parsed(definition);
        if (read !== null) expect(read).toEqual(definition);
      }),
      runs,
    );
  });

  it('that validation accepts without a warning resolves for every agent that it supports', () => {
    let resolved = 0;
    fc.assert(
      fc.property(module('m'), agent, fc.boolean(), (drawnModule, facts, alsoHere) => {
        const platform = facts.attributes.platform ?? '';
        const supports = [...(drawnModule.supports ?? []), ...(alsoHere ? [{ platform }] : [])];
        const definition = { ...drawnModule, supports };
        const { definition: read, diagnostics } = parsed(definition);
        fc.pre(read !== null);
        const supported = supports.some((one) => clauseMatches(one, facts));
        const outcome = outcomeOf([read], facts);
        if (!supported) {
          expect(outcome).toMatchObject({ code: 'module_not_supported' });
          return;
        }
        if (isFault(outcome)) {
          // Ties and doubled resources are errors, so that only a gap is left, and that is a warning.
          expect(outcome.code).toBe('variant_missing');
          expect(diagnostics.map(({ code }) => code)).toContain('variant_gap');
          return;
        }
        resolved += 1;
        expect(outcome.resources).toHaveLength(read.resources?.length ?? 0);
      }),
      { numRuns: drawn(400) },
    );
    expect(resolved).toBeGreaterThan(0);
  });

  it('resolves alike however often, and whatever the order of its keys', () => {
    const turned = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(turned);
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, member]) => [key, turned(member)]),
      );
    };
    fc.assert(
      fc.property(module('m'), agent, (definition, facts) => {
        const { definition: first } = parsed(definition);
        const { definition: second } = parseModule(stringify(turned(definition)));
        expect(second === null).toBe(first === null);
        fc.pre(first !== null && second !== null);
        const outcome = outcomeOf([first], facts);
        expect(outcomeOf([first], facts)).toEqual(outcome);
        // The first message may follow the order of the text.
        if (isFault(outcome)) expect(outcomeOf([second], facts)).toMatchObject({ code: outcome.code });
        else expect(outcomeOf([second], facts)).toEqual(outcome);
      }),
      runs,
    );
  });

  it('keeps its resources in order when other modules come behind it', () => {
    fc.assert(
      fc.property(soundModule('a'), soundModule('b'), agent, (a, b, facts) => {
        fc.pre(parsed(a).definition !== null && parsed(b).definition !== null);
        const [alone, both] = [outcomeOf([a], facts), outcomeOf([a, b], facts)];
        fc.pre(!isFault(alone) && !isFault(both));
        for (const [position, { after }] of both.resources.entries()) {
          for (const before of after) expect(before).toBeLessThan(position);
        }
        const ofA = new Set(alone.resources.map(({ identity }) => identity));
        const merged = (b.resources ?? []).length + alone.resources.length > both.resources.length;
        const kept = both.resources.map(({ identity }) => identity).filter((identity) => ofA.has(identity));
        if (!merged) expect(kept).toEqual(alone.resources.map(({ identity }) => identity));
        else expect([...kept].sort()).toEqual([...ofA].sort());
      }),
      { numRuns: drawn(400) },
    );
  });
});

describe('any graph', () => {
  const graph = fc.nat(8).chain((size) =>
    fc.array(fc.uniqueArray(fc.nat(Math.max(0, size - 1)), { maxLength: 3 }), {
      minLength: size,
      maxLength: size,
    }),
  );

  /** The same order by looking for the first free node again and again. */
  function orderSlowly(dependencies: readonly (readonly number[])[]): readonly number[] | null {
    const placed: number[] = [];
    for (const _ of dependencies) {
      const next = dependencies.findIndex(
        (before, node) => !placed.includes(node) && before.every((other) => placed.includes(other)),
      );
      if (next === -1) return null;
      placed.push(next);
    }
    return placed;
  }

  it('has a stable order or cycles that explain why not', () => {
    fc.assert(
      fc.property(graph, (dependencies) => {
        const order = stableOrder(dependencies);
        const cycles = findCycles(dependencies);
        expect(order).toEqual(orderSlowly(dependencies));
        expect(order === null).toBe(cycles.length > 0);
        for (const cycle of cycles) {
          for (const [index, node] of cycle.entries()) {
            expect(dependencies[node]).toContain(cycle[(index + 1) % cycle.length]);
          }
        }
        const broken = new Set(cycles.flat());
        const rest = dependencies.map((before, node) =>
          broken.has(node) ? [] : before.filter((other) => !broken.has(other)),
        );
        expect(stableOrder(rest)).not.toBeNull();
      }),
      { numRuns: drawn(2000) },
    );
  });
});

describe('any text with expressions', () => {
  const filling = (secrets: Readonly<Record<string, string>>): FillContext => ({
    agent: { node_id: 'id', name: 'name', attributes: {}, tags: { t: `${OPEN} secrets.a }}` } },
    secret: (name) => ({ value: secrets[name] ?? '', tag: 'abcd' }),
    problems: [],
    taint: new Map(),
    each: null,
    work: new Work(),
    inputs: {},
    shared: {},
    room: { left: 1e6 },
  });
  const part = fc.oneof(
    fc.string().filter((text) => !text.includes('{') && !text.includes('}') && !text.includes('$')),
    fc.constantFrom(`${OPEN} secrets.a }}`, `${OPEN}secrets.b}}`, `${OPEN} tags.t }}`, `${OPEN} agent.name }}`),
  );

  it('is filled in once, and the spans are exactly the secrets', () => {
    fc.assert(
      fc.property(fc.array(part), fc.string(), fc.string(), (texts, a, b) => {
        const { parts, problems } = parseText(texts.join(''));
        expect(problems).toEqual([]);
        const secrets = { a, b };
        const { text, spans } = fillText(parts, filling(secrets), '');
        const values = new Map([
          [`${OPEN} secrets.a }}`, a],
          [`${OPEN}secrets.b}}`, b],
          [`${OPEN} tags.t }}`, `${OPEN} secrets.a }}`],
          [`${OPEN} agent.name }}`, 'name'],
        ]);
        expect(text).toBe(texts.map((one) => values.get(one) ?? one).join(''));
        expect(spans.map(({ start, end, secret: name }) => [name, text.slice(start, end)])).toEqual(
          texts.flatMap((one) =>
            one.includes('secrets.a') ? [['a', a]] : one.includes('secrets.b') ? [['b', b]] : [],
          ),
        );
        const shown = texts.map((one) =>
          one.includes('secrets.') ? `‹secret ${one.includes('.a') ? 'a' : 'b'} #abcd›` : (values.get(one) ?? one),
        );
        expect(mask(text, spans)).toBe(shown.join(''));
      }),
      runs,
    );
  });

  it('that escapes every opening comes back as it was', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('$', '{', '}', OPEN, 'x', ' ', '\n')), (signs) => {
        const text = signs.join('');
        const escaped = text.replaceAll(OPEN, () => `$${OPEN}`);
        const { parts, problems } = parseText(escaped);
        expect(problems).toEqual([]);
        expect(parts.join('')).toBe(text);
      }),
      { numRuns: drawn(2000) },
    );
  });
});

describe('any selector', () => {
  const facts = { attributes: { platform: 'linux' }, tags: { a: 'x', b: '' } };

  it('is read or refused with a place in it', () => {
    const sign = fc.constantFrom(
      'a',
      'b',
      'platform',
      'tag.',
      '=',
      '==',
      '!=',
      '!',
      ' ',
      ',',
      '(',
      ')',
      'in',
      'notin',
      'x',
      '*',
      '"',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(sign).map((signs) => signs.join('')),
        ),
        (text) => {
          try {
            matches(parseSelector(text), facts);
          } catch (error) {
            if (!isFault(error, 'invalid_selector')) throw error;
            expect(error.data?.position).toBeGreaterThanOrEqual(1);
            expect(error.data?.position).toBeLessThanOrEqual(text.length + 1);
          }
        },
      ),
      { numRuns: drawn(3000) },
    );
  });

  it('holds where its opposite does not', () => {
    const pair = fc.constantFrom(['=', '!='], ['==', '!='], [' in (', ' notin (']);
    const key = fc.constantFrom('a', 'b', 'c', 'platform', 'arch', 'tag.a');
    const values = fc.constantFrom('x', 'y', 'linux', '');
    fc.assert(
      fc.property(pair, key, values, ([one = '', other = ''], name, value) => {
        const end = one.endsWith('(') ? `${value === '' ? ',' : ''}${value})` : value;
        expect(matches(parseSelector(name + one + end), facts)).toBe(
          !matches(parseSelector(name + other + end), facts),
        );
        expect(matches(parseSelector(name), facts)).toBe(!matches(parseSelector(`!${name}`), facts));
      }),
      runs,
    );
  });
});
