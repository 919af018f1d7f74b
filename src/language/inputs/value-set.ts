/** Value sets: documents that give inputs of modules their values, for the agents that a clause matches. */
import * as Type from 'typebox';
import { MODULE_NAME_PATTERN } from '../../kernel/ids.js';
import { closed } from '../../kernel/schema.js';
import { escapePointer } from '../../kernel/validator.js';
import { checkShape } from '../check-shape.js';
import {
  type Diagnostic,
  diagnosticsOf,
  MistakeList,
  type Position,
  type TextLines,
  textLines,
} from '../diagnostic.js';
import { hasExpression } from '../expression.js';
import {
  clauseOf,
  dataOf,
  isPlain,
  items,
  type Located,
  type LocatedMap,
  member,
  namedItems,
  placeAt,
} from '../located.js';
import { quoted } from '../printable.js';
import { readYaml } from '../read-yaml.js';
import { type AttributeClause, valueClauseSchema } from '../schema.js';
import { INPUT_NAME_PATTERN } from './input.js';
import { sizeProblem } from './value-size.js';

/** Maximum entries of a value set. */
const MAX_ENTRIES = 2_000;

const SHARED = Type.Object({}, { patternProperties: {}, additionalProperties: true });

const entrySchema = closed(
  {
    when: valueClauseSchema,
    shared: Type.Optional(SHARED),
    set: Type.Optional(Type.Object({}, { additionalProperties: Type.Object({}) })),
  },
  { title: 'Entry of values', description: 'Values for the agents that the clause matches' },
);

const valueSetSchema = closed(
  {
    rank: Type.Optional(
      Type.Array(Type.String({ pattern: '^tag\\.[^\\s]+$', description: 'a tag, such as tag.role' }), {
        maxItems: 64,
        uniqueItems: true,
        description:
          'Tags in the order of their weight: of two clauses with equally many keys, that with the first of them wins',
      }),
    ),
    values: Type.Array(entrySchema, { maxItems: MAX_ENTRIES, description: 'Values with the agents that get them' }),
  },
  { title: 'Value set', description: 'Values of inputs' },
);

/** Values for the agents that a clause matches. */
export interface ValueEntry {
  readonly when: AttributeClause;
  /** Values for all modules, as text. */
  readonly shared: Readonly<Record<string, string>>;
  /** Values by module and input, as they are written. */
  readonly set: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Lines of the values from 1, by `MODULE:INPUT` and by `shared:NAME`. */
  readonly lines: Readonly<Record<string, number>>;
}

export interface ValueSet {
  /** Keys of clauses for tags in the order of their weight; null for a set that does not say. */
  readonly rank: readonly string[] | null;
  readonly entries: readonly ValueEntry[];
}

/** Returns the names of the modules whose inputs entries set. */
export const modulesSetBy = (entries: readonly Pick<ValueEntry, 'set'>[]): ReadonlySet<string> =>
  new Set(entries.flatMap((entry) => Object.keys(entry.set)));

export interface ParsedValueSet {
  /** Null when there is an error. */
  readonly set: ValueSet | null;
  readonly diagnostics: readonly Diagnostic[];
  /** Returns the position of a JSON pointer in the text, or of its nearest existing ancestor. */
  locate(pointer: string): Position;
}

/** Parses and validates any text; never throws. */
export function parseValueSet(source: string): ParsedValueSet {
  const text = source.startsWith('\ufeff') ? source.slice(1) : source;
  const lines = textLines(text);
  const mistakes = new MistakeList();
  const root = readYaml(text, lines, mistakes, { noun: 'value set', begin: 'values' });
  if (root !== null) checkShape(valueSetSchema, root, { mistakes, path: '', label: 'a value set', expressions: false });
  const set = root === null || mistakes.failed ? null : setOf(root, lines, mistakes);
  return {
    set: mistakes.failed ? null : set,
    diagnostics: diagnosticsOf(mistakes.found, lines),
    locate: (pointer) => lines.positionAt(root === null ? 0 : placeAt(root, pointer).start),
  };
}

function setOf(root: Located, lines: TextLines, mistakes: MistakeList): ValueSet {
  const rank = member(root, 'rank');
  return {
    rank: rank === undefined ? null : namedItems(rank, '/rank').map(({ text }) => text),
    entries: items(member(root, 'values')).map((node, index) =>
      entryOf(node, { lines, mistakes, path: `/values/${index}` }),
    ),
  };
}

interface Reading {
  readonly lines: TextLines;
  readonly mistakes: MistakeList;
  /** JSON pointer of the entry. */
  readonly path: string;
}

function entryOf(node: Located, { lines, mistakes, path }: Reading): ValueEntry {
  const shared: Record<string, string> = {};
  const set: Record<string, Record<string, unknown>> = {};
  const lineOf: Record<string, number> = {};
  for (const [name, { key, value }] of membersOf(member(node, 'shared'))) {
    const at = `${path}/shared/${escapePointer(name)}`;
    if (!checkName(name, INPUT_NAME_PATTERN, 'a shared value', at, key, mistakes)) continue;
    if (value.type !== 'scalar' || value.value === null || !isPlain(value.value)) {
      mistakes.error('wrong_type', `${quoted(name)} must be a text, a number, true or false`, at, value);
      continue;
    }
    shared[name] = String(value.value);
    lineOf[`shared:${name}`] = lines.positionAt(key.start).line;
  }
  for (const [module, { key, value }] of membersOf(member(node, 'set'))) {
    const at = `${path}/set/${escapePointer(module)}`;
    if (!checkName(module, MODULE_NAME_PATTERN, 'a module', at, key, mistakes)) continue;
    const inputs: Record<string, unknown> = {};
    for (const [name, input] of membersOf(value)) {
      const pointer = `${at}/${escapePointer(name)}`;
      if (!checkName(name, INPUT_NAME_PATTERN, 'an input', pointer, input.key, mistakes)) continue;
      const size = sizeProblem(input.value, quoted(name));
      if (size !== null) mistakes.error('invalid_value', size, pointer, input.key);
      warnExpressions(input.value, pointer, mistakes);
      inputs[name] = dataOf(input.value);
      lineOf[`${module}:${name}`] = lines.positionAt(input.key.start).line;
    }
    set[module] = inputs;
  }
  return { when: clauseOf(member(node, 'when')) ?? {}, shared, set, lines: lineOf };
}

const membersOf = (node: Located | undefined): LocatedMap['members'] =>
  node?.type === 'map' ? node.members : new Map();

function checkName(
  name: string,
  pattern: string,
  noun: string,
  path: string,
  place: { readonly start: number; readonly end: number },
  mistakes: MistakeList,
): boolean {
  if (new RegExp(pattern).test(name)) return true;
  mistakes.error('invalid_value', `${quoted(name)} is no name of ${noun}`, path, place);
  return false;
}

function warnExpressions(node: Located, path: string, mistakes: MistakeList): void {
  if (node.type === 'list') {
    for (const [index, item] of node.items.entries()) warnExpressions(item, `${path}/${index}`, mistakes);
  } else if (node.type === 'map') {
    for (const [name, { value }] of node.members) warnExpressions(value, `${path}/${escapePointer(name)}`, mistakes);
  } else if (typeof node.value === 'string' && hasExpression(node.value)) {
    mistakes.warning(
      'expression_ignored',
      'expressions are not filled in in values; write them in the module',
      path,
      node,
    );
  }
}
