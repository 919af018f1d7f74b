/**
 * Texts that are made to exhaust the parser. They are parsed in a process apart, with little memory, so that an abort
 * that no `catch` can see fails the test. What counts is the outcome: one clear refusal.
 */
import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { OPEN } from '../../src/language/parse-expression.js';

const PARSER = new URL('../../dist/src/language/parse-module.js', import.meta.url).href;

/** Prints one line for each text, so that after an abort it is known which one was the last to come through. */
const PROGRAM = `
  import { readFileSync, writeSync } from 'node:fs';
  import { parseModule } from '${PARSER}';
  for (const [name, text] of JSON.parse(readFileSync(0, 'utf8'))) {
    const { definition, diagnostics } = parseModule(text);
    const first = diagnostics.find(({ severity }) => severity === 'error');
    const at = first && first.line + ':' + first.column;
    const outcome = { accepted: definition !== null, code: first?.code, at, count: diagnostics.length };
    writeSync(1, JSON.stringify([name, outcome]) + '\\n');
  }
`;

interface Outcome {
  readonly accepted: boolean;
  readonly code?: string;
  readonly at?: string;
  readonly count: number;
}

/** The result of each text, by name. */
function parseApart(texts: readonly (readonly [name: string, text: string])[]): ReadonlyMap<string, Outcome> {
  const args = ['--max-old-space-size=256', '--input-type=module', '-e', PROGRAM];
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, args, {
    input: JSON.stringify(texts),
    encoding: 'utf8',
  });
  const outcomes = new Map<string, Outcome>(
    stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line)),
  );
  const last = [...outcomes.keys()].at(-1);
  expect({ status, signal, stderr }, `the parser died behind "${last}"`).toEqual({
    status: 0,
    signal: null,
    stderr: '',
  });
  return outcomes;
}

const HEAD = 'name: web\nsupports: [{platform: linux}]\nresources:\n';
const lines = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => line(i)).join('');

/** A module whose template has a content. It ends inside of the list of templates. */
const liquid = (content: string) =>
  `${HEAD}- {file-unix: {path: /a, template: t}}\ntemplates:\n- {id: t, engine: liquid, content: '${content}'}\n`;

const REFUSED: readonly (readonly [name: string, text: string, code: string, at: string])[] = [
  ['2,000 opening brackets', '['.repeat(2000), 'too_deep', '1:65'],
  ['a million opening brackets', '['.repeat(1024 * 1024), 'too_deep', '1:65'],
  ['50,000 opening braces', '{'.repeat(50_000), 'too_deep', '1:65'],
  ['30,000 nested list items', `${'- '.repeat(30_000)}a`, 'too_deep', '1:129'],
  ['1,000 nested mappings', lines(1000, (i) => `${' '.repeat(i)}a:\n`), 'too_deep', '65:66'],
  ['50,000 explicit keys', '? '.repeat(50_000), 'too_deep', '1:129'],
  ['brackets 65 deep in a value', `${HEAD}  - resource: ${'['.repeat(65)}`, 'too_deep', '4:76'],
  ['30,000 keys', lines(30_000, (i) => `k${i}: v\n`), 'too_many_tokens', '14286:9'],
  ['30,000 equal keys', lines(30_000, () => 'k: v\n'), 'too_many_tokens', '14286:4'],
  ['12,000 equal keys', `${HEAD}${lines(12_000, () => 'k: v\n')}`, 'unknown_key', '4:1'],
  ['204 kB of anchors', '&a '.repeat(68_000), 'yaml_anchor', '1:301'],
  [
    'anchors and aliases that multiply',
    lines(
      9,
      (i) =>
        `k${i}: &a${i} [${Array(10)
          .fill(i === 0 ? 'x' : `*a${i - 1}`)
          .join()}]\n`,
    ),
    'yaml_alias',
    '5:38',
  ],
  ['204 kB of aliases', '*a '.repeat(68_000), 'yaml_alias', '1:301'],
  ['204 kB of tags', '!a '.repeat(68_000), 'yaml_tag', '1:1'],
  ['30,000 directives', '%A\n'.repeat(30_000), 'yaml_directive', '1:1'],
  ['30,000 documents', '---\n'.repeat(30_000), 'yaml_documents', '2:1'],
  ['300,000 empty quotes', `a: ${'""'.repeat(300_000)}`, 'too_many_tokens', '1:199994'],
  ['90,000 commas', `[${','.repeat(90_000)}`, 'yaml_syntax', '1:3'],
  ['500,000 comments', '#\n'.repeat(500_000), 'too_many_tokens', '50001:1'],
  ['a quote that never ends', `name: "${'\n'.repeat(1_000_000)}`, 'yaml_syntax', '1:7'],
  ['100,000 NUL characters', '\0'.repeat(100_000), 'control_character', '1:1'],
  ['more than a mebibyte', 'x'.repeat(1024 * 1024 + 1), 'too_large', '1:1'],
  ['more than a mebibyte of two-byte characters', 'é'.repeat(512 * 1024 + 1), 'too_large', '1:1'],
  [
    '1,900 resources that could be one thing',
    HEAD + lines(1900, (i) => `- variants: [{when: {tag.a: a${i}}, resource: {file-unix: {path: /a}}}]\n`),
    'too_complex',
    '3:1',
  ],
  ['2,500 resources', HEAD + lines(2500, (i) => `- {resource: {file-unix: {path: /a${i}}}}\n`), 'invalid_value', '4:1'],
  [
    '100,000 wrong expressions',
    `${HEAD}- resource: {file-unix: {path: /a, content: "${'$'}${'{{ x }}$'.repeat(100_000)}"}}\n`,
    'expression_syntax',
    '4:46',
  ],
  [
    '100,000 expressions with a quote that is never closed',
    `${HEAD}- resource: {file-unix: {path: /a, content: '${`${OPEN}t|"}}`.repeat(100_000)}'}}\n`,
    'expression_syntax',
    '4:46',
  ],
  [
    'a loop of 7,000 elements around 1,200 resources',
    `${HEAD}- for_each: {${lines(7_000, (i) => `a${i}: 1,`)}}\n  resources:\n` +
      lines(1200, (i) => `  - {id: r${i}, script: {program: sh, apply: ":"}}\n`),
    'loop_invalid',
    '6:5',
  ],
  [
    'a list of 10,000 mappings of different fields',
    `${HEAD}- {key: k, for_each: [${lines(10_000, (i) => `{a${i}: 1},`)}], file-unix: {path: /a}}\n`,
    'loop_invalid',
    '4:2473',
  ],
  [
    'a condition of 500,000 parentheses',
    `${HEAD}- {if: "${'('.repeat(500_000)}", file-unix: {path: /a}}\n`,
    'condition_invalid',
    '4:8',
  ],
  ['a template of 2,000 conditions in each other', liquid('{% if true %}'.repeat(2_000)), 'template_invalid', '6:453'],
  ['a template of 100,000 tags that are never closed', liquid('{% '.repeat(100_000)), 'template_invalid', '6:37'],
  [
    'a template of 100,000 expressions that are never closed',
    liquid('{{ '.repeat(100_000)),
    'template_invalid',
    '6:37',
  ],
  ['a template of 20,000 tags', liquid('{% comment %}{% endcomment %}'.repeat(20_000)), 'template_invalid', '6:145037'],
  [
    'a template of 50,000 blanks beside tags',
    liquid(`{% if${' '.repeat(50_000)}%}`.repeat(10)),
    'template_invalid',
    '6:37',
  ],
  [
    'templates that render 2 to the power of 30 others',
    `${liquid('{% render "t1" %}')}${lines(30, (i) => `- {id: t${i + 1}, engine: liquid, content: '${`{% render "t${i + 2}" %}`.repeat(2)}'}\n`)}- {id: t31, engine: liquid, content: x}\n`,
    'template_invalid',
    '6:37',
  ],
  [
    '900 cycles',
    HEAD + lines(1800, (i) => `- {id: r${i}, depends_on: [r${i ^ 1}], resource: {file-unix: {path: /a${i}}}}\n`),
    'dependency_cycle',
    '4:25',
  ],
];

const block = (text: string) => lines(text.split('\n').length, (i) => `        ${text.split('\n')[i]}\n`);
const ACCEPTED: readonly (readonly [string, string])[] = [
  ['64 levels', `${HEAD}  - resource: {file-unix: {path: /a, content: "${'['.repeat(70)}"}}\n`],
  [
    '1,000 files',
    HEAD + lines(1000, (i) => `- {resource: {file-unix: {path: /a${i}, content: "${'x'.repeat(200)}"}}}\n`),
  ],
  ['a text of a mebibyte', `${HEAD}- resource: {file-unix: {path: /a, content: "${'x'.repeat(1024 * 1024 - 150)}"}}\n`],
  [
    'a chain of 1,500',
    HEAD +
      lines(1500, (i) => `- {id: r${i}, depends_on: [r${i + 1}], resource: {file-unix: {path: /a${i}}}}\n`) +
      '- {id: r1500, resource: {file-unix: {path: /z}}}\n',
  ],
  [
    'a group of 1,000 that follows another one',
    `${HEAD}- id: first\n  resources:\n${lines(990, (i) => `  - {file-unix: {path: /a${i}}}\n`)}` +
      `- depends_on: [first]\n  resources:\n${lines(990, (i) => `  - {file-unix: {path: /b${i}}}\n`)}`,
  ],
  [
    'a loop of 2,000',
    `${HEAD}- {for_each: [${lines(2_000, (i) => `a${i},`)}], file-unix: {path: "/$${'{{ each.key }}'}"}}\n`,
  ],
  [
    '500 conditions',
    HEAD + lines(500, (i) => `- {if: '${'tags.a == "b" and '.repeat(50)}true', file-unix: {path: /a${i}}}\n`),
  ],
  [
    'signs of YAML inside a block',
    `${HEAD}- resource:\n    file-unix:\n      path: /a\n      content: |\n${block('[[ {{ &a *b !c\n%d\n--- e\n'.repeat(500))}`,
  ],
  [
    '200,000 escaped expressions',
    `${HEAD}- resource: {file-unix: {path: /a, content: "${'$$'}${'{{ $$'.repeat(150_000)}"}}\n`,
  ],
];

describe('hostile texts', () => {
  let outcomes: ReadonlyMap<string, Outcome>;
  beforeAll(() => {
    outcomes = parseApart([...REFUSED.map(([name, text]) => [name, text] as const), ...ACCEPTED]);
  });

  it.each(REFUSED.map(([name, , code, at]) => ({ name, code, at })))('$name: refused', ({ name, code, at }) => {
    const outcome = outcomes.get(name);
    expect(outcome).toMatchObject({ accepted: false, code, at });
    expect(outcome?.count).toBeLessThanOrEqual(1001);
  });

  it.each(ACCEPTED.map(([name]) => name))('%s: accepted', (name) => {
    expect(outcomes.get(name)).toEqual({ accepted: true, count: 0 });
  });
});
