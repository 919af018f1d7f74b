/** Rules on templates: unique ids, references that resolve, and content that fits what uses it. */

import { type MistakeList, type Place, textLines } from '../diagnostic.js';
import { hasExpression } from '../expression.js';
import type { Scope } from '../expression-types.js';
import { isTemplatePath, type UsedFiles } from '../files-beside.js';
import type { OutlineOption } from '../kind-choice.js';
import { items, member, type Named, named, scalarAt } from '../located.js';
import { suggestion } from '../nearest.js';
import { otherNameIn } from '../other-names.js';
import type { Outline, OutlineEntry, OutlineTemplate, RuleContext } from '../outline.js';
import { quoted } from '../printable.js';
import { type KnownTemplates, templateProblems } from '../templates/check-template.js';
import { parseTemplate } from '../templates/parse-template.js';
import { conditionsIn, type Part, rendersIn, type TemplateProblem } from '../templates/template.js';
import { openingsIn } from '../templates/tokens.js';

interface TemplateTexts {
  /** The text of the module. */
  readonly text: string;
  readonly files: UsedFiles;
}

/** Checks that template ids are unique, references resolve, every template is used, and those with an engine fit their uses. */
export function checkTemplates(context: RuleContext, { text, files }: TemplateTexts): void {
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
  const rendered = new RenderedTemplates(known, { text, files, mistakes });
  for (const id of rendered.renderedByOthers) unused.delete(id);
  const checked = new Set<string>();
  for (const { option, scope, loop } of optionsOf(outline)) {
    const { kind, node, path } = option;
    const reference = kind.templated ? named(node.members.get('template')?.value, `${path}/template`) : null;
    if (reference === null) continue;
    unused.delete(reference.text);
    const template = known.get(reference.text);
    if (template === undefined && isTemplatePath(reference.text)) {
      for (const id of rendered.addFile(reference.text, reference)) unused.delete(id);
      rendered.check(reference.text, scope, loop);
    } else if (template === undefined) {
      const meant = suggestion(reference.text, known.keys());
      const advice = meant === '' && reference.text.includes('/') ? '; a template in a file ends in ".liquid"' : meant;
      const message = `no template has the id ${quoted(reference.text)}${advice}`;
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

interface Reporting extends TemplateTexts {
  readonly mistakes: MistakeList;
}

/** A template with an engine. */
interface RenderedText {
  readonly text: string;
  /** Where the module holds it, or names its file. */
  readonly place: Place & { readonly path: string };
  /** Reports a mistake, or a warning, at an offset of the text. */
  report(problem: TemplateProblem, isWarning?: boolean): void;
}

interface Told {
  readonly message: string;
  readonly isWarning: boolean;
  readonly path: string;
  readonly place: Place;
}

function tell({ message, isWarning, path, place }: Told, mistakes: MistakeList): void {
  if (isWarning) mistakes.warning('clause_unmatchable', message, path, place);
  else mistakes.error('template_invalid', message, path, place);
}

/** The templates with an engine of a module, and those in files beside it. Reports the mistakes that each has in itself. */
class RenderedTemplates {
  /** Ids of the templates that others insert. */
  readonly renderedByOthers: ReadonlySet<string>;
  private readonly rendered = new Map<string, readonly Part[]>();
  private readonly known: KnownTemplates;
  private readonly texts = new Map<string, RenderedText>();
  private readonly reporting: Reporting;
  private readonly checked = new Set<string>();
  private readonly reported = new Set<string>();

  constructor(templates: ReadonlyMap<string, OutlineTemplate>, reporting: Reporting) {
    this.reporting = reporting;
    const plain = [...templates].flatMap(([id, { isRendered }]) => (isRendered ? [] : [id]));
    this.known = { rendered: this.rendered, plain: new Set(plain) };
    const own = [...templates].filter(([, { isRendered }]) => isRendered);
    for (const [id] of own) this.rendered.set(id, []);
    this.renderedByOthers = new Set(own.flatMap(([id, template]) => this.add(id, this.ownText(template))));
  }

  /**
   * Adds the template in a file beside the module, once. Reports at `place` a file that cannot be used. Returns the ids of the
   * templates that it inserts.
   */
  addFile(path: string, place: RenderedText['place']): readonly string[] {
    if (this.texts.has(path)) return [];
    const { files, mistakes } = this.reporting;
    const file = files.find(path);
    const text = typeof file === 'string' ? '' : (file.text ?? '');
    if (typeof file === 'string') {
      mistakes.error('file_unusable', `the template ${quoted(path)} ${file}`, place.path, place);
    }
    const lines = textLines(text);
    const report = ({ offset, message }: TemplateProblem, isWarning = false) => {
      const { line, column } = lines.positionAt(offset);
      tell({ message: `${path}:${line}:${column}: ${message}`, isWarning, path: place.path, place }, mistakes);
    };
    return this.add(path, { text, place, report });
  }

  /** Checks a template where a resource uses it, once for each loop and condition. */
  check(id: string, scope: Scope, loop: string | null): void {
    const key = JSON.stringify([id, loop, [...scope.present].sort()]);
    if (this.checked.has(key)) return;
    this.checked.add(key);
    for (const problem of templateProblems(id, this.known, scope)) this.report(problem.id, problem);
  }

  /** Adds a template, and those in files that it inserts. Returns the ids of all that are inserted. */
  private add(id: string, template: RenderedText): readonly string[] {
    const { parts, problems } = parseTemplate(template.text);
    this.texts.set(id, template);
    this.rendered.set(id, parts);
    for (const problem of problems) this.report(id, problem);
    for (const { offset, condition } of conditionsIn(parts)) {
      const message = otherNameIn(condition);
      if (message !== null) template.report({ offset, message }, true);
    }
    const others = rendersIn(parts);
    const files = others.filter(
      (other) => isTemplatePath(other) && !this.rendered.has(other) && !this.known.plain.has(other),
    );
    return [...others, ...files.flatMap((file) => this.addFile(file, template.place))];
  }

  private ownText({ node, path }: OutlineTemplate): RenderedText {
    const content = scalarAt(node, '/content');
    const { start, end } = content ?? node;
    const place = { path: `${path}/content`, start, end };
    if (content === undefined || typeof content.value !== 'string') return { place, text: '', report() {} };
    const { value } = content;
    // The parsed text lacks the indentation of blocks and the escapes of quotes, but keeps the order of openings.
    const written = openingsIn(this.reporting.text.slice(content.start, content.end));
    const read = openingsIn(value);
    return {
      place,
      text: value,
      report: ({ offset, message }, isWarning = false) => {
        const nth = written.length === read.length ? written[read.indexOf(offset)] : undefined;
        const start = content.start + (nth ?? 0);
        const at = nth === undefined ? content : { start, end: start + 2 };
        tell({ message, isWarning, path: place.path, place: at }, this.reporting.mistakes);
      },
    };
  }

  private report(id: string, { offset, message }: TemplateProblem): void {
    const key = JSON.stringify([id, offset, message]);
    if (this.reported.has(key)) return;
    this.reported.add(key);
    this.texts.get(id)?.report({ offset, message });
  }
}
