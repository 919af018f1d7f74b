/** Rules on expressions: valid syntax where they are filled in, a warning elsewhere. */
import { escapePointer } from '../../kernel/validator.js';
import { CHECK_KINDS } from '../../resources/checks/check-kinds.js';
import { hasExpression, parseText } from '../expression.js';
import type { OutlineOption } from '../kind-choice.js';
import { isReference } from '../kind-set.js';
import { type Located, type LocatedScalar, member } from '../located.js';
import type { RuleContext } from '../outline.js';
import { OPEN } from '../parse-expression.js';

export function checkExpressions(context: RuleContext, text: string): void {
  const { outline } = context;
  const visit = (node: Located, path: string): void => {
    if (node.type === 'scalar') checkSyntax(node, path, { ...context, text });
    else for (const [key, child] of childrenOf(node)) visit(child, `${path}/${escapePointer(key)}`);
  };
  for (const option of outline.entries.flatMap((entry) => entry.options)) {
    for (const [name, node] of filledMembers(option)) visit(node, `${option.path}/${escapePointer(name)}`);
  }
  for (const { node, path } of outline.templates) {
    const content = member(node, 'content');
    if (content) visit(content, `${path}/content`);
  }
  for (const { node, path } of outline.checks) {
    for (const kind of CHECK_KINDS) {
      const body = member(node, kind);
      if (body) visit(body, `${path}/${kind}`);
    }
  }
  warnElsewhere(outline.root, '', context);
}

/** Returns the body members with expressions; ids are names inside the module and stay unchanged. */
const filledMembers = ({ node, kind }: OutlineOption): readonly (readonly [string, Located])[] =>
  [...node.members].flatMap(([name, { value }]) => (isReference(name, kind) ? [] : [[name, value]]));

function childrenOf(node: Exclude<Located, LocatedScalar>): readonly (readonly [string, Located])[] {
  if (node.type === 'list') return node.items.map((item, index) => [String(index), item]);
  return [...node.members].map(([name, { value }]) => [name, value]);
}

function checkSyntax(node: LocatedScalar, path: string, context: RuleContext & { readonly text: string }): void {
  if (typeof node.value !== 'string' || !hasExpression(node.value)) return;
  const { problems } = parseText(node.value);
  if (problems.length === 0) return;
  // The parsed text lacks the indentation of blocks and the escapes of quotes, but keeps the order of expressions.
  const written = openings(context.text.slice(node.start, node.end));
  const read = new Map(openings(node.value).map((offset, index) => [offset, index]));
  for (const { offset, message } of problems) {
    const nth = written.length === read.size ? written[read.get(offset) ?? -1] : undefined;
    const start = node.start + (nth ?? 0);
    const end = nth === undefined ? node.end : start + OPEN.length;
    context.mistakes.error('expression_syntax', message, path, { start, end });
  }
}

function openings(text: string): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(OPEN); at !== -1; at = text.indexOf(OPEN, at + 1)) found.push(at);
  return found;
}

/** Paths of bodies, of the content of templates, and of bodies of checks. */
const FILLED =
  /^\/resources\/\d+(\/variants\/\d+)?\/resource$|^\/templates\/\d+\/content$|^\/verify\/\d+\/(script|http|tcp|unit)$/;

function warnElsewhere(node: Located, path: string, context: RuleContext): void {
  if (FILLED.test(path)) return;
  if (node.type !== 'scalar') {
    for (const [key, child] of childrenOf(node)) warnElsewhere(child, `${path}/${escapePointer(key)}`, context);
  } else if (typeof node.value === 'string' && hasExpression(node.value)) {
    const message =
      'expressions are filled in only inside bodies of resources and checks, and in the content of templates';
    context.mistakes.warning('expression_ignored', message, path, node);
  }
}
