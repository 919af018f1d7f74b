/** Rules on expressions: syntax and types where they are filled in, a warning elsewhere. */
import type { TSchema } from 'typebox';
import * as Type from 'typebox';
import { escapePointer } from '../../kernel/validator.js';
import { CHECK_KINDS, CHECK_SCHEMAS } from '../../resources/checks/check-kinds.js';
import { namesOfTypes } from '../check-shape.js';
import { hasExpression, isOneExpression, parseText } from '../expression.js';
import { insertionProblem, type Scope, typeOfExpression } from '../expression-types.js';
import type { OutlineOption } from '../kind-choice.js';
import { isReference } from '../kind-set.js';
import { type Located, type LocatedScalar, member, scalarAt } from '../located.js';
import type { Outline, RuleContext } from '../outline.js';
import { type Expression, OPEN } from '../parse-expression.js';
import { branchesOf, memberSchema, takesOnlyText, typesOf } from '../shape-schema.js';
import { nounOf, type ValueType } from '../values.js';

export function checkExpressions(context: RuleContext, text: string): void {
  const { outline } = context;
  const checking = { ...context, text, reported: new Set<string>() };
  for (const { scope, options } of outline.entries) {
    for (const option of options) {
      const { kind, path, node } = option;
      for (const [name, member] of filledMembers(option)) {
        const schema = memberSchema(kind.kind.schema, name);
        visit(member, { ...checking, path: `${path}/${escapePointer(name)}`, schema, scope });
      }
      const id = kind.templated ? scalarAt(node, '/template')?.value : undefined;
      const template = outline.templates.find((one) => one.id?.text === id);
      if (template?.isRendered === false) checkTemplate(template, scope, checking);
    }
  }
  for (const template of outline.templates) if (!template.isRendered) checkTemplate(template, null, checking);
  for (const { node, path } of outline.checks) {
    for (const kind of CHECK_KINDS) {
      const body = member(node, kind);
      const schema = CHECK_SCHEMAS[kind];
      if (body) visit(body, { ...checking, path: `${path}/${kind}`, schema, scope: outline.scope });
    }
  }
  warnElsewhere(outline.root, '', context);
}

interface Checking extends RuleContext {
  readonly text: string;
  /** Mistakes in templates that are reported, which several resources may use. */
  readonly reported: Set<string>;
}

interface Visiting extends Checking {
  readonly path: string;
  /** Schema of the value with its expressions filled in; null if it is not known. */
  readonly schema: TSchema | null;
  /** Null to check the syntax only. */
  readonly scope: Scope | null;
}

/** @param scope that of a resource which uses the template; null to check the syntax only */
function checkTemplate({ node, path }: Outline['templates'][number], scope: Scope | null, checking: Checking): void {
  const content = member(node, 'content');
  if (content) visit(content, { ...checking, path: `${path}/content`, schema: Type.String(), scope });
}

function visit(node: Located, visiting: Visiting): void {
  if (node.type === 'scalar') {
    checkText(node, visiting);
    warnOfBraces(node, visiting);
    return;
  }
  for (const [name, child] of childrenOf(node)) {
    const schema = memberSchema(visiting.schema, node.type === 'list' ? null : name);
    visit(child, { ...visiting, path: `${visiting.path}/${escapePointer(name)}`, schema });
  }
}

/** Returns the body members with expressions; ids are names inside the module and stay unchanged. */
const filledMembers = ({ node, kind }: OutlineOption): readonly (readonly [string, Located])[] =>
  [...node.members].flatMap(([name, { value }]) => (isReference(name, kind) ? [] : [[name, value]]));

function childrenOf(node: Exclude<Located, LocatedScalar>): readonly (readonly [string, Located])[] {
  if (node.type === 'list') return node.items.map((item, index) => [String(index), item]);
  return [...node.members].map(([name, { value }]) => [name, value]);
}

function checkText(node: LocatedScalar, { path, schema, scope, ...checking }: Visiting): void {
  const { value } = node;
  if (typeof value !== 'string' || !hasExpression(value)) return;
  const { expressions, problems } = parseText(value);
  const isValue = isOneExpression(value) && schema !== null && !takesOnlyText(schema);
  const wrong = expressions.flatMap(({ offset, expression }) => {
    if (scope === null) return [];
    const message =
      insertionProblem(expression, scope, isValue) ?? (isValue ? misfit(expression, schema, scope, path) : null);
    return message === null ? [] : [{ offset, message }];
  });
  if (problems.length + wrong.length === 0) return;
  // The parsed text lacks the indentation of blocks and the escapes of quotes, but keeps the order of expressions.
  const written = openings(checking.text.slice(node.start, node.end));
  const read = new Map(openings(value).map((offset, index) => [offset, index]));
  for (const { offset, message } of [...problems, ...wrong]) {
    const nth = written.length === read.size ? written[read.get(offset) ?? -1] : undefined;
    const start = node.start + (nth ?? 0);
    const end = nth === undefined ? node.end : start + OPEN.length;
    const key = `${path}\0${offset}\0${message}`;
    if (checking.reported.has(key)) continue;
    checking.reported.add(key);
    checking.mistakes.error('expression_syntax', message, path, { start, end });
  }
}

/** Warns of an insertion of a template, such as `{{ inputs.port }}`, in a text that only fills in expressions. */
function warnOfBraces(node: LocatedScalar, { path, scope, mistakes, text, reported }: Visiting): void {
  if (typeof node.value !== 'string' || reported.has(`${path}\0{{`)) return;
  for (const [braces, name = ''] of node.value.matchAll(/(?<![${])\{\{-?\s*inputs\.([\w-]+)[^{}]*\}\}/g)) {
    if (scope?.inputs.has(name) !== true) continue;
    const at = text.slice(node.start, node.end).indexOf(braces);
    const place = at < 0 ? node : { start: node.start + at, end: node.start + at + braces.length };
    const message = `${braces} stays as it is written here: write $${braces}, or use a template with "engine: liquid"`;
    reported.add(`${path}\0{{`);
    mistakes.warning('expression_ignored', message, path, place);
    return;
  }
}

const JSON_TYPES: Readonly<Record<ValueType['type'], readonly string[]>> = {
  text: ['string'],
  number: ['number', 'integer'],
  boolean: ['boolean'],
  list: ['array'],
  map: ['object'],
  secret: ['string'],
  unknown: [],
};

/** Returns a message about an expression whose type the field never has, or null. */
function misfit(expression: Expression, schema: TSchema, scope: Scope, path: string): string | null {
  const typed = typeOfExpression(expression, scope);
  const types = branchesOf(schema).flatMap(typesOf);
  if (typeof typed === 'string' || types.length === 0 || typed.type.type === 'unknown') return null;
  if (JSON_TYPES[typed.type.type].some((type) => types.includes(type))) return null;
  return `"${path.split('/').at(-1)}" must be ${namesOfTypes(types)}, and this expression gives ${nounOf(typed.type)}`;
}

function openings(text: string): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(OPEN); at !== -1; at = text.indexOf(OPEN, at + 1)) found.push(at);
  return found;
}

/** Paths of bodies, of the content of templates, and of bodies of checks. */
const FILLED =
  /^\/resources\/\d+(\/resources\/\d+)?(\/variants\/\d+)?\/resource$|^\/templates\/\d+\/content$|^\/verify\/\d+\/(script|http|tcp|unit)$/;

/** Paths of conditions and loops, which have rules of their own. */
const REPEATED = /^\/resources\/\d+(\/resources\/\d+)?\/(if|for_each|key)$/;

function warnElsewhere(node: Located, path: string, context: RuleContext): void {
  if (FILLED.test(path) || REPEATED.test(path)) return;
  if (node.type !== 'scalar') {
    for (const [key, child] of childrenOf(node)) warnElsewhere(child, `${path}/${escapePointer(key)}`, context);
  } else if (typeof node.value === 'string' && hasExpression(node.value)) {
    const message =
      'expressions are filled in only inside bodies of resources and checks, and in the content of templates';
    context.mistakes.warning('expression_ignored', message, path, node);
  }
}
