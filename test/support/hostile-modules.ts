/** Modules that parse, and whose templates, loops and conditions are made to keep the orchestrator busy. */

const HEAD = 'name: hostile\nsupports: [{platform: linux}]\n';
/** Characters of the long text, and elements of the long list. */
const LONG = 60_000;
const MANY = 4_000;

const times = (count: number, text: (index: number) => string, between = ''): string =>
  Array.from({ length: count }, (_, index) => text(index)).join(between);

const INPUTS = `inputs:
  many: {type: list, of: {type: string}, default: [${times(MANY, (index) => `h${index}`, ',')}]}
  numbers: {type: list, of: {type: integer}, default: [${times(MANY, (index) => String((index * 7919) % 4001), ',')}]}
  big: {type: string, default: "${'x'.repeat(LONG)}"}
`;

/** Files that all have the text of one template. */
const files = (count: number, template: string, others = ''): string =>
  `${HEAD}${INPUTS}resources:
${times(count, (index) => `- {file-unix: {path: /srv/file-${index}, template: main}}\n`)}templates:
- id: main
  engine: liquid
  content: |
    ${template.replaceAll('\n', '\n    ')}
${others}`;

const loop = (inner: string): string =>
  `{% for a in inputs.many %}{% for b in inputs.many %}${inner}{% endfor %}{% endfor %}`;
const once = (inner: string): string => `{% for a in inputs.many %}${inner}{% endfor %}`;
const resourcesIf = (condition: string): string =>
  `${HEAD}${INPUTS}resources:\n${times(150, (index) => `- {for_each: inputs.many, if: '${condition}', file-unix: {path: "/srv/${index}/\${{ each.key }}"}}\n`)}`;

/** Texts by what is hostile in them. */
export const HOSTILE_MODULES: ReadonlyMap<string, string> = new Map([
  ['loops in loops', files(150, loop(''))],
  ['loops in four loops', files(150, loop(loop('{{ a }}').replaceAll('for a', 'for c').replaceAll('for b', 'for d')))],
  ['loops that print', files(150, loop('{{ b }}'))],
  ['a long text in a loop', files(150, once('{{ inputs.big }}'))],
  ['searches in a long text', files(150, loop('{% if inputs.big contains b %}{% endif %}'))],
  ['replaced characters of a long text', files(150, '{{ inputs.big | replace: "x", "y" | size }}'.repeat(200))],
  ['removed characters of a long text', files(150, '{{ inputs.big | remove: "x" | size }}'.repeat(200))],
  ['split and joined texts', files(150, '{{ inputs.big | split: "x" | join: "" | size }}'.repeat(200))],
  ['sorted lists', files(150, loop('{{ inputs.many | sort | uniq | join: "" | size }}'))],
  ['sorted numbers', files(150, '{{ inputs.numbers | sort | first }}'.repeat(200))],
  ['lists as YAML', files(150, '{{ inputs.many | to_yaml | size }}'.repeat(200))],
  ['indented lines', files(150, '{{ inputs.many | to_yaml | indent: 2 | size }}'.repeat(200))],
  ['long versions', files(150, '{{ inputs.big | at_least_version: "1" }}'.repeat(200))],
  ['many comparisons', files(150, once(`{% if ${times(90, () => 'a == "y"', ' or ')} %}{% endif %}`))],
  [
    'comparisons of long texts',
    files(150, once(`{% if ${times(40, () => 'inputs.big == inputs.big', ' and ')} %}{% endif %}`)),
  ],
  [
    'templates that render others',
    files(
      150,
      loop('{% render "two" %}'),
      '- {id: two, engine: liquid, content: \'{% render "three" %}\'}\n- {id: three, engine: liquid, content: x}\n',
    ),
  ],
  ['thousands of missing values', files(150, '{{ tags.none }}\n'.repeat(4_900))],
  ['long texts to the limit', files(60, '{{ inputs.big }}'.repeat(16))],
  [
    'health checks with filters',
    `${HEAD}${INPUTS}resources: [{file-unix: {path: /srv/file}}]\nverify:\n${times(100, (index) => `- {unit: 'a${index}-\${{ inputs.big | replace: "x", "y" | replace: "y", "x" | remove: "x" }}.service'}\n`)}`,
  ],
  [
    'patterns of lines in one file',
    `${HEAD}resources:\n${times(700, (index) => `- {line-unix: {path: /etc/hosts, line: "${index} ${'x'.repeat(200)}", match: "^${index} .*(a|b)+c$"}}\n`)}`,
  ],
  [
    'values deep inside each other',
    `${HEAD}inputs:\n  deep:\n    type: map\n    of: {type: map, of: {type: map, of: {type: map, of: {type: list, of: {type: string}}}}}\n    default: {${times(8, (a) => `a${a}: {${times(8, (b) => `b${b}: {${times(8, (c) => `c${c}: {d: [x, y]}`, ', ')}}`, ', ')}}`, ', ')}}\nresources:\n${times(150, (index) => `- {file-unix: {path: /srv/file-${index}, template: main}}\n`)}templates:\n- {id: main, engine: liquid, content: '${'{{ inputs.deep | to_yaml | size }}'.repeat(100)}'}\n`,
  ],
  ['conditions of many elements', resourcesIf(times(80, () => 'each.key == "y"', ' or '))],
  ['conditions with filters', resourcesIf(times(20, () => 'inputs.big contains each.key', ' or '))],
]);
