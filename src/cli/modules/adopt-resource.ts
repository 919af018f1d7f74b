/** Edits the text of a module so that a resource is declared as a machine has it; comments and formatting stay. */
import { applyPatch, parsePatch, reversePatch } from 'diff';
import { isAlias, isMap, isScalar, type Pair, parseDocument, Scalar, visit } from 'yaml';
import type { DriftResource } from '../../contract/runs.js';
import type { Declaration } from '../../language/declarations.js';
import { hasExpression } from '../../language/expression.js';
import { OPEN } from '../../language/parse-expression.js';
import { UNDECLARED } from '../../resources/purge.js';

/** The edited text, or why a person has to do it. */
type Edit = { readonly text: string } | { readonly why: string };

/** @param place of the declaration in the module */
export function adoptResource(
  text: string,
  { path: pointer, element, beside }: Pick<Declaration, 'path' | 'element' | 'beside'>,
  resource: DriftResource,
): Edit {
  if (element !== null) return { why: `it is the element "${element}" of a loop, and the same text makes the others` };
  if (resource.sensitive) return { why: 'it holds a secret, and secrets are not printed' };
  if (resource.action === 'create')
    return { why: 'it is missing on the machine: remove it from the module, or apply it' };
  if (resource.action === 'remove') {
    return { why: 'it is there on the machine: take its "absent" out of the module, or apply it' };
  }
  if (resource.changes.some(({ field }) => field === UNDECLARED)) {
    return { why: 'it holds what nothing declares: declare that, or apply the module' };
  }
  if (resource.changes.length === 0) return { why: resource.reason ?? 'no field of it differs' };
  if (beside !== null) return { why: besideWhy(beside, resource.changes) };
  let edited = text;
  for (const { field, before, after } of resource.changes) {
    const edit = adoptField(edited, `${pointer}/${field}`, (value) =>
      field === 'content' ? contentOf(value, before, resource.diff) : machineValue(value, { field, before, after }),
    );
    if ('why' in edit) return edit;
    edited = edit.text;
  }
  return { text: edited };
}

/** Returns what to do about a file or directory that comes with a directory beside the module. */
function besideWhy(beside: string, changes: DriftResource['changes']): string {
  if (changes.some(({ field }) => field === 'content')) return copyWhy(beside);
  const fields = changes.map(({ field }) => field).join(', ');
  return `it comes from "${beside}" beside the module: change its ${fields} in the resource of the directory`;
}

const copyWhy = (source: string): string =>
  `its content is the file "${source}" beside the module: copy that of the machine there`;

/** A value of YAML, or why there is none. */
type Found = { readonly value: string | number | boolean } | { readonly why: string };

/** Returns the content of the machine, which the diff tells from the declared one. */
function contentOf(declared: unknown, before: string | null, diff: string | null): Found {
  if (before !== null) return { why: `its content on the machine is ${before}` };
  if (typeof declared !== 'string') return { why: 'its content is no text in the module' };
  const [patch] = diff === null || diff.includes('\n… ') || diff.startsWith('… ') ? [] : parsePatch(diff);
  if (patch === undefined) return { why: 'the difference is too long to be reported in full' };
  const options = { fuzzFactor: 0, autoConvertLineEndings: false };
  const value = applyPatch(declared, reversePatch(patch), options);
  return value === false
    ? { why: 'its content in the module is not the applied one: apply the module first' }
    : { value };
}

interface Change {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** Maximum characters of a value that an agent reports in full. */
const WHOLE = 511;

/** Returns the value of the machine in the type of the declared one. */
function machineValue(declared: unknown, { field, before, after }: Change): Found {
  const here = `${field} is "${before ?? 'none'}" on the machine`;
  if (before === null || before.length > WHOLE) return { why: `its ${here}` };
  // Both values of a boolean are known, whatever they are called.
  if (typeof declared === 'boolean' && before !== after) return { value: !declared };
  if (typeof declared === 'number' && String(declared) === after && String(Number(before)) === before) {
    return { value: Number(before) };
  }
  const isSame = field === 'mode' ? isSameMode(declared, after) : declared === after;
  if (typeof declared === 'string' && isSame) return { value: before };
  return { why: `its ${here}, and the module does not declare "${after ?? 'none'}" in that field` };
}

const isSameMode = (declared: unknown, after: string | null): boolean =>
  typeof declared === 'string' && after !== null && Number.parseInt(declared, 8) === Number.parseInt(after, 8);

/** Replaces the scalar at a pointer. Checks that nothing else has changed. */
function adoptField(text: string, pointer: string, next: (value: unknown) => Found): Edit {
  const document = parseDocument(text, { keepSourceTokens: true });
  const path = writtenPath(
    document,
    pointer
      .split('/')
      .slice(1)
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
      .map((part) => (/^\d+$/.test(part) ? Number(part) : part)),
  );
  const field = String(path.at(-1));
  const body: unknown = document.getIn(path.slice(0, -1), true);
  if (isAlias(body)) return { why: `the resource is the alias *${body.source}, so edit its anchor` };
  if (!isMap(body)) return { why: 'the resource is not written as a mapping' };
  const node: unknown = (body.items as Pair[]).find(({ key }) => isScalar(key) && key.value === field)?.value;
  if (node === undefined) return { why: missingWhy(field, body.toJSON()) };
  if (isAlias(node)) return { why: `its ${field} is the alias *${node.source}, so edit its anchor` };
  if (!isScalar(node) || node.range == null) return { why: `its ${field} is a list or a mapping` };
  if (node.anchor !== undefined || node.tag !== undefined) return { why: `its ${field} has an anchor or a tag` };
  if (typeof node.value === 'string' && hasExpression(node.value)) {
    return { why: `its ${field} has the expression ${node.value.slice(node.value.indexOf(OPEN)).split('\n')[0]}` };
  }
  const found = next(node.value);
  if ('why' in found) return found;
  const { value } = found;
  if (typeof value === 'string' && value.includes(OPEN)) {
    return { why: `its ${field} on the machine contains ${OPEN}, which orch would evaluate` };
  }
  const expected = parseDocument(text);
  expected.setIn(path, value);
  for (const spelled of spellings(text, node, value)) {
    const [start, end] = node.range;
    const edited = text.slice(0, start) + spelled + text.slice(end);
    const result = parseDocument(edited);
    if (result.errors.length === 0 && isEqual(result.toJSON(), expected.toJSON()) && keepsComments(document, result)) {
      return { text: edited };
    }
  }
  return { why: `its ${field} cannot be written in the place of the present one` };
}

/** Returns the path as the text has it: the kind may stand in place of `resource`. */
function writtenPath(document: Document, path: readonly (string | number)[]): readonly (string | number)[] {
  const at = path.indexOf('resource');
  return at === -1 || document.hasIn(path.slice(0, at + 1)) ? path : path.toSpliced(at, 1);
}

function missingWhy(field: string, body: Readonly<Record<string, unknown>>): string {
  if (field === 'content' && typeof body.template === 'string') {
    return `its content comes from the template "${body.template}": edit that, for every resource that uses it`;
  }
  if (field === 'content' && typeof body.source === 'string') {
    return copyWhy(body.source);
  }
  return `the module does not declare its ${field}`;
}

const isEqual = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

type Document = ReturnType<typeof parseDocument>;

/** Returns true when both documents have the same comments. */
const keepsComments = (one: Document, other: Document): boolean => isEqual(commentsOf(one), commentsOf(other));

function commentsOf(document: Document): readonly string[] {
  const comments = [document.commentBefore ?? '', document.comment ?? ''];
  visit(document, {
    Node: (_, { commentBefore, comment }) => void comments.push(commentBefore ?? '', comment ?? ''),
  });
  return comments;
}

/** Returns ways to write a value, the one most like the present one first. */
function spellings(text: string, node: Scalar, value: string | number | boolean): readonly string[] {
  if (typeof value !== 'string') return [String(value)];
  const quoted = JSON.stringify(value);
  const single = `'${value.replaceAll("'", "''")}'`;
  const isBlock = node.type === Scalar.BLOCK_LITERAL || node.type === Scalar.BLOCK_FOLDED;
  // A block ends with the line break after it.
  const isEnded = isBlock && node.range != null && text.slice(node.range[0], node.range[1]).endsWith('\n');
  if (isBlock) return [...blockOf(text, node, value), isEnded ? `${quoted}\n` : quoted];
  const isLine = !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(value);
  if (node.type === Scalar.PLAIN) return isLine ? [value, quoted] : [quoted];
  return node.type === Scalar.QUOTE_SINGLE && isLine ? [single, quoted] : [quoted];
}

/** Returns the value as a literal block with the indentation of the present block; none where a block cannot hold it. */
function blockOf(text: string, { range }: Scalar, value: string): readonly string[] {
  if (range == null || value === '' || /^[ \n]|[^\n\t\P{C}]/u.test(value)) return [];
  const present = text.slice(range[0], range[1]);
  const indent = /\n( +)\S/.exec(present)?.[1];
  if (indent === undefined) return [];
  const body = value.replace(/\n+$/, '');
  const ending = value.slice(body.length);
  const chomp = ending === '\n' ? '' : ending === '' ? '-' : '+';
  const lines = `${body}${ending === '' ? '' : ending.slice(1)}`
    .split('\n')
    .map((line) => (line === '' ? '' : indent + line));
  const comment = /^[|>][-+\d]*([ \t]+#[^\n]*)\n/.exec(present)?.[1] ?? '';
  return [`|${chomp}${comment}\n${lines.join('\n')}${present.endsWith('\n') ? '\n' : ''}`];
}
