/** Template ids are unique, what refers to a template finds it, and every template is used. */
import { hasExpression } from '../expression.js';
import type { OutlineOption } from '../kind-choice.js';
import { suggestion } from '../nearest.js';
import type { OutlineEntry } from '../outline.js';
import { quoted } from '../printable.js';
import { items, member, type Named, named } from '../read-located.js';
import type { RuleContext } from './rule.js';

export function checkTemplates({ outline, mistakes, lineOf }: RuleContext): void {
  const unused = new Map<string, Named>();
  const known = new Set<string>();
  for (const { id } of outline.templates) {
    if (id === null) continue;
    const first = unused.get(id.text);
    if (first === undefined) unused.set(id.text, id);
    else {
      const message = `template ${quoted(id.text)} is already defined on line ${lineOf(first)}`;
      mistakes.error('duplicate_template', message, id.path, id);
    }
    known.add(id.text);
  }
  const checked = new Set<string>();
  for (const option of outline.entries.flatMap((entry) => entry.options)) {
    const { kind, node, path } = option;
    const reference = kind.templated ? named(node.members.get('template')?.value, `${path}/template`) : null;
    if (reference === null) continue;
    unused.delete(reference.text);
    if (!known.has(reference.text)) {
      const message = `no template has the id ${quoted(reference.text)}${suggestion(reference.text, known)}`;
      mistakes.error('unknown_template', message, reference.path, reference);
    } else if (!checked.has(reference.text)) {
      checked.add(reference.text);
      checkContent(option, reference, { outline, mistakes });
    }
  }
  // A body that could not be read may use any of them.
  if (outline.entries.some(hasUnread)) return;
  for (const id of unused.values()) {
    mistakes.warning('unused_template', `template ${quoted(id.text)} is not used by any resource`, id.path, id);
  }
}

const hasUnread = ({ node, options }: OutlineEntry): boolean => {
  const written = (node.members.has('resource') ? 1 : 0) + items(member(node, 'variants')).length;
  return options.length < written;
};

/** The content that a template gives has to be one that the resource could have itself. */
function checkContent(
  { kind, body }: OutlineOption,
  reference: Named,
  { outline, mistakes }: Pick<RuleContext, 'outline' | 'mistakes'>,
): void {
  const template = outline.templates.find(({ id }) => id?.text === reference.text);
  const content = template && named(member(template.node, 'content'), `${template.path}/content`);
  if (!content || body === null || hasExpression(content.text)) return;
  const { template: _, ...rest } = body;
  for (const problem of kind.kind.check({ ...rest, content: content.text })) {
    if (problem.path === '/content') mistakes.error('invalid_value', problem.message, content.path, content);
  }
}
