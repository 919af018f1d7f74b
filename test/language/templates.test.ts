/** Templates with an engine, beside the cases in `cases/parse/liquid*` and `cases/resolve/liquid*`. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { finish } from '../../src/kernel/steps.js';
import { mask } from '../../src/kernel/tainted.js';
import type { FillContext } from '../../src/language/filling.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { parseSteps, parseTemplate } from '../../src/language/templates/parse-template.js';
import { renderTemplate } from '../../src/language/templates/render-template.js';
import type { CompiledTemplate } from '../../src/language/templates/template.js';
import { SecretName, type ValueMap } from '../../src/language/values.js';
import { Work } from '../../src/language/work.js';
import { drawn } from '../support/exhaustive.js';

function template(text: string, others: Readonly<Record<string, string>> = {}): CompiledTemplate {
  const all = new Map<string, CompiledTemplate>();
  for (const [id, content] of [...Object.entries(others), ['main', text]] as const) {
    all.set(id, { id, text: content, parts: parseTemplate(content).parts, others: all });
  }
  return all.get('main') as CompiledTemplate;
}

const fillingOf = (
  inputs: ValueMap,
  secrets: Readonly<Record<string, string>> = {},
  more: Partial<FillContext> = {},
): FillContext => ({
  agent: { node_id: 'id', name: 'name', attributes: {}, tags: {} },
  secret: (name) => ({ value: secrets[name] ?? '', tag: 'abcd' }),
  problems: [],
  taint: new Map(),
  each: null,
  work: new Work(),
  inputs,
  shared: {},
  room: { left: 1e9 },
  ...more,
});

function rendered(
  compiled: CompiledTemplate,
  inputs: ValueMap = {},
  secrets?: Readonly<Record<string, string>>,
  more?: Partial<FillContext>,
) {
  const filling = fillingOf(inputs, secrets, more);
  const { text, spans } = finish(renderTemplate(compiled, filling, '/content'));
  return { text, spans, problems: filling.problems.map(({ message }) => message) };
}

/** Returns the number of steps. */
function stepsOf(steps: Iterable<unknown>): number {
  let count = 0;
  for (const _ of steps) count += 1;
  return count;
}

describe('a template with thousands of tags', () => {
  it.each([
    ['expressions', '{{ tags.none }}\n', 4_900],
    ['tags on one line', '{% if tags.a == "b" %}{% endif %}', 2_400],
    ['conditions', '{% if tags.a == "b" %}\nx\n{% else %}\ny\n{% endif %}\n', 1_600],
  ])('is parsed in steps of at most a hundred: %s', (_, text, count) => {
    // Its tags are found, looked at by lines, cut, and parsed.
    const tags = count * text.split('{').length - count;
    expect(stepsOf(parseSteps(text.repeat(count)))).toBeGreaterThan(Math.floor(tags / 2 / 100));
    expect(stepsOf(parseSteps(text))).toBe(0);
  });
});

describe('a template that works long', () => {
  const long = 'x'.repeat(20_000);
  const inputs = { many: Array.from({ length: 100 }, (_, index) => `h${index}`), long };
  const loop = '{% for a in inputs.many %}{% for b in inputs.many %}{{ b }}{% endfor %}{% endfor %}';
  it.each([
    ['loops in loops', loop, 8],
    ['another template', '{% render "one" %}', 8],
    ['a condition', `{% if tags.none %}{% else %}${loop}{% endif %}`, 8],
    ['many filters', '{{ inputs.long | replace: "z", "y" | size }}'.repeat(8), 3],
    ['a short text', 'a{{ inputs.many | size }}', 0],
  ])('is rendered in steps: %s', (_, text, least) => {
    const filling = fillingOf(inputs);
    const steps = stepsOf(renderTemplate(template(text, { one: loop }), filling, '/content'));
    expect(filling.problems).toEqual([]);
    if (least === 0) expect(steps).toBe(0);
    else expect(steps).toBeGreaterThanOrEqual(least);
  });
});

describe('the text of a template', () => {
  it('stays as it is without tags', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('{', '}', '%', '#', '$', ' ', '\n', '\r\n', '-', 'x', '"')), (signs) => {
        const text = signs.join('');
        fc.pre(!/\{[{%]|\{#[^}]*#\}/.test(text));
        expect(rendered(template(text))).toEqual({ text, spans: [], problems: [] });
      }),
      { numRuns: drawn(2000) },
    );
  });

  it('stays as it is between raw and endraw', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('{{', '}}', '{%', '%}', OPEN, '{#', '#}', ' ', '\n', 'raw', 'x')),
        (signs) => {
          const text = signs.join('');
          const { text: found, problems } = rendered(template(`<{% raw %}${text}{% endraw %}>`));
          expect({ found, problems }).toEqual({ found: `<${text}>`, problems: [] });
        },
      ),
      { numRuns: drawn(2000) },
    );
  });

  it('keeps every line of a line without tags, whatever tags stand on lines of their own', () => {
    const line = fc.oneof(
      fc
        .constantFrom('{% if inputs.yes %}', '  {% endif %}', '{% comment %} {{ x }} {% endcomment %}  ')
        .map((text) => ({
          text,
          stays: false,
        })),
      fc.stringMatching(/^[a-z ]*$/).map((text) => ({ text, stays: true })),
    );
    fc.assert(
      fc.property(fc.array(line), fc.constantFrom('\n', '\r\n'), (lines, end) => {
        let open = 0;
        const balanced = lines.filter(({ text }) => {
          if (text.includes('endif')) return open > 0 && open-- > 0;
          if (text.includes('{% if')) open += 1;
          return open <= 30;
        });
        while (open-- > 0) balanced.push({ text: '{% endif %}', stays: false });
        const { text, problems } = rendered(template(balanced.map((one) => one.text + end).join('')), { yes: true });
        const kept = balanced.filter(({ stays }) => stays).map((one) => one.text + end);
        expect({ text, problems }).toEqual({ text: kept.join(''), problems: [] });
      }),
      { numRuns: drawn(2000) },
    );
  });
});

describe('names in a template', () => {
  it('keep their values around a loop in a loop, and may be called as anything', () => {
    const text =
      '{% for __proto__ in inputs.a %}{% for b in inputs.a %}{{ b }}{% endfor %}{{ __proto__ }}{{ forloop.index }};' +
      '{% render "one", __proto__: __proto__ %}{% endfor %}';
    const compiled = template(text, { one: '{% for b in inputs.a %}{{ __proto__ }}{{ forloop.last }}{% endfor %};' });
    expect(rendered(compiled, { a: ['x', 'y'] })).toEqual({
      text: 'xyx1;xfalsextrue;xyy2;yfalseytrue;',
      spans: [],
      problems: [],
    });
  });
});

describe('a template for the elements of a loop', () => {
  const print = fc.constantFrom(
    '{{ agent.name }}',
    '{{ inputs.a | upcase }}',
    '{{ inputs.none }}',
    '{{ inputs.bad | to_number }}',
    '{{ inputs.key }}',
    '{{ each.key }}',
    '{{ each.value | to_number }}',
    '{{ each.value | append: inputs.a }}',
    '{{ secrets.A }}',
    '{% render "one", key: inputs.a %}',
    'text ',
    '\n',
  );
  const condition = fc.constantFrom(
    ...['tags.role == "web"', 'not (tags.role == "web")', 'inputs.bad == "x"', 'each.key == "k"', 'inputs.none == nil'],
    ...['tags.role == "web" or each.key == "k"', 'each.key == "k" or tags.role == "web"', 'inputs.n > 2'],
    ...[
      'each.key != "k" and inputs.n > 2',
      '(inputs.bad | to_number) > 2',
      'inputs.n > 2 and (each.value | to_number) > 1',
    ],
  );
  const { part } = fc.letrec<{ part: string; block: string }>((tie) => ({
    part: fc.oneof({ maxDepth: 3 }, print, tie('block')),
    block: fc
      .tuple(
        fc.constantFrom('if', 'else', 'elsif', 'for'),
        condition,
        condition,
        fc.array(tie('part'), { maxLength: 3 }),
      )
      .map(([form, one, two, parts]) => {
        const inside = parts.join('');
        if (form === 'for') return `{% for x in inputs.list %}${inside}{{ x }}{% else %}${inside}{% endfor %}`;
        const last = form === 'if' ? '' : form === 'else' ? `{% else %}${inside}` : `{% elsif ${two} %}${inside}`;
        return `{% if ${one} %}${inside}${last}{% endif %}`;
      }),
  }));

  it('gives each the same text, spans and messages as without the others', () => {
    const inputs = { a: 'a', bad: 'x', n: 3, list: ['1', '2'], key: new SecretName('A') };
    const agent = { node_id: 'id', name: 'name', attributes: {}, tags: { role: 'web' } };
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), fc.boolean(), (parts, isWeb) => {
        const compiled = template(parts.join(''), { one: '{{ key }}{{ inputs.a }}' });
        const more = isWeb ? { agent } : {};
        const preRendered = new Map<CompiledTemplate, CompiledTemplate>();
        for (const each of [
          { key: 'k', value: '1' },
          { key: 'l', value: 'x' },
        ]) {
          const alone = rendered(compiled, inputs, { A: 'secret' }, { ...more, each });
          expect(rendered(compiled, inputs, { A: 'secret' }, { ...more, each, preRendered })).toEqual(alone);
        }
      }),
      { numRuns: drawn(3000) },
    );
  });

  it('is filled in once for what no element changes', () => {
    const text =
      '{{ agent.name }}: {% if inputs.n > 2 or each.key == "k" %}{{ each.key }} of {{ inputs.a }}{% endif %}.';
    const compiled = template(text);
    const preRendered = new Map<CompiledTemplate, CompiledTemplate>();
    rendered(compiled, { a: 'a', n: 3 }, {}, { each: { key: 'k', value: '1' }, preRendered });
    expect(preRendered.get(compiled)?.parts.map((one) => (one.type === 'text' ? one.text : one.type))).toEqual([
      'name: ',
      'print',
      ' of a.',
    ]);
  });
});

describe('secrets in a template', () => {
  const key = fc.constantFrom('A', 'B');
  const piece = fc.oneof(
    fc.constantFrom('text ', '\n').map((text) => ({ written: text, value: null as string | null, text })),
    key.map((name) => ({ written: `{{ secrets.${name} }}`, value: name as string | null, text: '' })),
    key.map((name) => ({ written: `{{ inputs.sites.x.${name} }}`, value: name as string | null, text: '' })),
    key.map((name) => ({
      written: `{% for s in inputs.sites %}{% render "one", key: s.value.${name} %}{% endfor %}`,
      value: name as string | null,
      text: '',
    })),
  );

  it('are exactly the spans', () => {
    fc.assert(
      fc.property(fc.array(piece), fc.string(), fc.string(), (pieces, a, b) => {
        const secrets = { A: a, B: b };
        const compiled = template(`.${pieces.map(({ written }) => written).join('.')}.`, { one: '{{ key }}' });
        const inputs = { sites: { x: { A: new SecretName('A'), B: new SecretName('B') } } };
        const { text, spans, problems } = rendered(compiled, inputs, secrets);
        expect(problems).toEqual([]);
        const named = pieces.flatMap(({ value }) => (value === null ? [] : [value]));
        expect(spans.map(({ secret }) => secret)).toEqual(named);
        expect(spans.map(({ start, end }) => text.slice(start, end))).toEqual(
          named.map((name) => secrets[name as 'A' | 'B']),
        );
        const shown = pieces.map(({ value, text: plain }) => (value === null ? plain : `‹secret ${value} #abcd›`));
        expect(mask(text, spans)).toBe(`.${shown.join('.')}.`);
      }),
      { numRuns: drawn(2000) },
    );
  });
});

describe('a hostile template', () => {
  const many = Array.from({ length: 4000 }, (_, index) => `h${index}`);
  const inputs = { many, numbers: many.map((_, index) => (index * 7919) % 4001), big: 'x'.repeat(60_000) };
  const loop = (inner: string) =>
    `{% for a in inputs.many %}{% for b in inputs.many %}${inner}{% endfor %}{% endfor %}`;
  it.each([
    ['loops in loops', loop('')],
    ['loops that print', loop('{{ b }}')],
    ['comparisons with a long text', loop('{% if inputs.big contains b %}{% endif %}')],
    ['filters of a long text', loop('{{ inputs.big | replace: "x", "y" | upcase | size }}')],
    ['filters of a long list', loop('{{ inputs.many | sort | uniq | join: "" | size }}')],
    ['numbers that are sorted', '{{ inputs.numbers | sort | first }}'.repeat(20)],
    ['a list that is written out', '{{ inputs.many | to_yaml | size }}'.repeat(20)],
    ['templates that render others in loops', loop('{% render "other" %}')],
  ])('is refused after a bounded amount of work: %s', (_, text) => {
    const { problems } = rendered(template(text, { other: loop('') }), inputs);
    expect(problems).toEqual([
      expect.stringMatching(/^content: the loops and filters in it do too much work; .* \(line 1 of the template /),
    ]);
  });

  it('is refused when its text gets too long', () => {
    const { text, problems } = rendered(template(loop('{{ inputs.big }}')), inputs);
    expect({ text, problems }).toEqual({
      text: '',
      problems: ['content: the text is too long with its expressions filled in (line 1 of the template "main")'],
    });
  });

  it('that renders itself is refused also without the check of the module', () => {
    const { problems } = rendered(template('{% render "main" %}'));
    expect(problems).toEqual([
      'content: templates render others at most 32 levels deep (line 1 of the template "main")',
    ]);
  });
});
