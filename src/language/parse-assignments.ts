/** Parses a file of assignments and reports every mistake with its place. */
import * as Type from 'typebox';
import { ASSIGNMENT_MODES } from '../kernel/assignment-modes.js';
import { isFault } from '../kernel/fault.js';
import { MODULE_NAME_PATTERN } from '../kernel/ids.js';
import type { JsonValue } from '../kernel/json.js';
import { validator } from '../kernel/validator.js';
import { checkShape } from './check-shape.js';
import {
  type Diagnostic,
  diagnosticsOf,
  MistakeList,
  type Place,
  type Position,
  type TextLines,
  textLines,
} from './diagnostic.js';
import { dataOf, items, type Located, member, type Named, named, placeAt, scalarAt } from './located.js';
import { quoted } from './printable.js';
import { readYaml } from './read-yaml.js';
import { parseSelector } from './selector.js';

/** Values of inputs by module. */
const VALUES = Type.Record(
  Type.String({ pattern: MODULE_NAME_PATTERN }),
  Type.Record(Type.String(), Type.Unsafe<JsonValue>(Type.Unknown())),
);

const AssignmentSchema = Type.Object(
  {
    name: Type.String({ pattern: MODULE_NAME_PATTERN }),
    modules: Type.Array(Type.String({ pattern: MODULE_NAME_PATTERN }), {
      maxItems: 1000,
      uniqueItems: true,
    }),
    selector: Type.String({ minLength: 1, maxLength: 4096 }),
    description: Type.Optional(Type.Union([Type.String({ maxLength: 4096 }), Type.Null()])),
    mode: Type.Optional(Type.Enum(ASSIGNMENT_MODES)),
    values: Type.Optional(VALUES),
  },
  { additionalProperties: false, title: 'Assignment' },
);

const AssignmentsFileSchema = Type.Object(
  { assignments: Type.Array(AssignmentSchema, { maxItems: 10_000 }) },
  { additionalProperties: false, title: 'File of assignments' },
);
type AssignmentsFile = Type.Static<typeof AssignmentsFileSchema>;
export type DeclaredAssignment = AssignmentsFile['assignments'][number];

export interface ParsedAssignments {
  /** Null when there is an error. */
  readonly assignments: readonly DeclaredAssignment[] | null;
  readonly diagnostics: readonly Diagnostic[];
  /** Returns the position of a JSON pointer in the text, or of its nearest existing ancestor. */
  locate(pointer: string): Position;
}

const files = validator(AssignmentsFileSchema);

/** Parses and validates any text; never throws. */
export function parseAssignments(source: string): ParsedAssignments {
  const text = source.startsWith('\ufeff') ? source.slice(1) : source;
  const lines = textLines(text);
  const mistakes = new MistakeList();
  const root = readYaml(text, lines, mistakes, { noun: 'list of assignments', begin: 'assignments' });
  if (root !== null) check(root, lines, mistakes);
  return {
    assignments: root === null || mistakes.failed ? null : assignmentsOf(root, mistakes),
    diagnostics: diagnosticsOf(mistakes.found, lines),
    locate: (pointer) => lines.positionAt(root === null ? 0 : placeAt(root, pointer).start),
  };
}

function check(root: Located, lines: TextLines, mistakes: MistakeList): void {
  const label = 'a file of assignments';
  checkShape(AssignmentsFileSchema, root, { mistakes, path: '', label, expressions: false });
  const names = new Map<string, Named>();
  for (const [index, node] of items(member(root, 'assignments')).entries()) {
    const path = `/assignments/${index}`;
    checkName(named(member(node, 'name'), `${path}/name`), { names, lines, mistakes });
    checkSelector(root, `${path}/selector`, mistakes);
  }
}

interface Naming {
  readonly names: Map<string, Named>;
  readonly lines: TextLines;
  readonly mistakes: MistakeList;
}

function checkName(name: Named | null, { names, lines, mistakes }: Naming): void {
  if (name === null) return;
  const first = names.get(name.text);
  if (first === undefined) {
    names.set(name.text, name);
    return;
  }
  const { line } = lines.positionAt(first.start);
  const message = `a second assignment ${quoted(name.text)}; the first is on line ${line}`;
  mistakes.error('duplicate_name', message, name.path, name);
}

function checkSelector(root: Located, path: string, mistakes: MistakeList): void {
  const node = scalarAt(root, path);
  if (typeof node?.value !== 'string' || node.value === '') return;
  try {
    parseSelector(node.value);
  } catch (error) {
    if (!isFault(error, 'invalid_selector')) throw error;
    const { position } = error.data ?? {};
    const message = error.message.replace(/^.*?, position \d+: /s, '');
    mistakes.error('invalid_selector', message, path, placeIn(node, typeof position === 'number' ? position : 1));
  }
}

/** A character of a text, where it is written as it is; else the whole of it. */
function placeIn(node: Place & { readonly value: unknown; readonly raw: string }, position: number): Place {
  const lead = node.raw === node.value ? 0 : node.raw.slice(1, -1) === node.value ? 1 : null;
  if (lead === null) return node;
  const start = node.start + lead + position - 1;
  return { start, end: start };
}

/** Reports mistakes that only the schema finds, in the schema's words. */
function assignmentsOf(root: Located, mistakes: MistakeList): readonly DeclaredAssignment[] | null {
  const data = dataOf(root);
  if (files.check(data)) return data.assignments;
  for (const { path, message } of files.problems(data)) {
    mistakes.error('invalid_value', message, path, placeAt(root, path));
  }
  return null;
}
