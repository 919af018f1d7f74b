/** Rules on templates: unique ids, references that resolve, and content that fits what uses it. */

import type { MistakeList } from '../diagnostic.js';
import { hasExpression } from '../expression.js';
import type { Scope } from '../expression-types.js';
import type { OutlineOption } from '../kind-choice.js';
import { items, member, type Named, named, scalarAt } from '../located.js';
import { suggestion } from '../nearest.js';
import type { Outline, OutlineEntry, OutlineTemplate, RuleContext } from '../outline.js';
import { quoted } from '../printable.js';
import { type KnownTemplates, templateProblems } from '../templates/check-template.js';
import { parseTemplate } from '../templates/parse-template.js';
import { type Part, rendersIn, type TemplateProblem } from '../templates/template.js';
import { openingsIn } from '../templates/tokens.js';

/** Checks that template ids are unique, references resolve, every template is used, and those with an engine fit their uses. */
export function checkTemplates(context: RuleContext, text: string): void {
  const { outline, mistakes, lineOf } = context;
  const unused = new Map<string, Named>();
  const known = new Map<string, OutlineTemplate>();
  for (const template of outline.templates) {
    const { id } = template;
    if (id === null) continue;
    const first = unused.get(id.text);
    if (first === undefined) unused.set(id.text, id);
    else {
      const message = `template ${quoted(id.text)} is already defined on line ${lineOf(first)}`;
      mistakes.error('duplicate_template', message, id.path, id);
    }
    known.set(id.text, template);
  }
  const rendered = new RenderedTemplates(known, { text, mistakes });
  for (const id of rendered.renderedByOthers) unused.delete(id);
  const checked = new Set<string>();
  for (const { option, scope, loop } of optionsOf(outline)) {
    const { kind, node, path } = option;
    const reference = kind.templated ? named(node.members.get('template')?.value, `${path}/template`) : null;
    if (reference === null) continue;
    unused.delete(reference.text);
    const template = known.get(reference.text);
    if (template === undefined) {
      const message = `no template has the id ${quoted(reference.text)}${suggestion(reference.text, known.keys())}`;
      mistakes.error('unknown_template', message, reference.path, reference);
    } else if (template.isRendered) rendered.check(reference.text, scope, loop);
    else if (!checked.has(reference.text)) {
      checked.add(reference.text);
      checkContent(option, template, mistakes);
    }
  }
  // A body that could not be read may use any template.
  if (outline.entries.some(hasUnread)) return;
  for (const id of unused.values()) {
    mistakes.warning('unused_template', `template ${quoted(id.text)} is not used by any resource`, id.path, id);
  }
}

const hasUnread = ({ node, options }: OutlineEntry): boolean => {
  const written = (node.members.has('resource') ? 1 : 0) + items(member(node, 'variants')).length;
  return options.length < written;
};

const optionsOf = ({ entries }: Outline) =>
  entries.flatMap(({ options, scope, loop }) => options.map((option) => ({ option, scope, loop })));

/** Checks that a template's content is valid as the resource's own content. */
function checkContent({ kind, body }: OutlineOption, template: OutlineTemplate, mistakes: MistakeList): void {
  const content = named(member(template.node, 'content'), `${template.path}/content`);
  if (!content || body === null || hasExpression(content.text)) return;
  const { template: _, ...rest } = body;
  for (const problem of kind.kind.check({ ...rest, content: content.text })) {
    if (problem.path === '/content') mistakes.error('invalid_value', problem.message, content.path, content);
  }
}

interface Reporting {
  /** The text of the module. */
  readonly text: string;
  readonly mistakes: MistakeList;
}

/** The templates with an engine of a module. Reports the mistakes that each has in itself. */
class RenderedTemplates {
  /** Ids of the templates that others insert. */
  readonly renderedByOthers: ReadonlySet<string>;
  private readonly known: KnownTemplates;
  private readonly templates: ReadonlyMap<string, OutlineTemplate>;
  private readonly reporting: Reporting;
  private readonly checked = new Set<string>();
  private readonly reported = new Set<string>();

  constructor(templates: ReadonlyMap<string, OutlineTemplate>, reporting: Reporting) {
    this.templates = templates;
    this.reporting = reporting;
    const rendered = new Map<string, readonly Part[]>();
    const plain = new Set<string>();
    for (const [id, template] of templates) {
      const content = scalarAt(template.node, '/content')?.value;
      if (!template.isRendered) plain.add(id);
      else {
        const { parts, problems } = parseTemplate(typeof content === 'string' ? content : '');
        for (const problem of problems) this.report(id, problem);
        rendered.set(id, parts);
      }
    }
    this.known = { rendered, plain };
    this.renderedByOthers = new Set([...rendered.values()].flatMap(rendersIn));
  }

  /** Checks a template where a resource uses it, once for each loop and condition. */
  check(id: string, scope: Scope, loop: string | null): void {
    const key = JSON.stringify([id, loop, [...scope.present].sort()]);
    if (this.checked.has(key)) return;
    this.checked.add(key);
    for (const problem of templateProblems(id, this.known, scope)) this.report(problem.id, problem);
  }

  private report(id: string, { offset, message }: TemplateProblem): void {
    const key = JSON.stringify([id, offset, message]);
    const template = this.templates.get(id);
    const content = template && scalarAt(template.node, '/content');
    if (content === undefined || typeof content.value !== 'string' || this.reported.has(key)) return;
    this.reported.add(key);
    // The parsed text lacks the indentation of blocks and the escapes of quotes, but keeps the order of openings.
    const { text, mistakes } = this.reporting;
    const written = openingsIn(text.slice(content.start, content.end));
    const read = openingsIn(content.value);
    const nth = written.length === read.length ? written[read.indexOf(offset)] : undefined;
    const start = content.start + (nth ?? 0);
    const place = nth === undefined ? content : { start, end: start + 2 };
    mistakes.error('template_invalid', message, `${template?.path}/content`, place);
  }
}
