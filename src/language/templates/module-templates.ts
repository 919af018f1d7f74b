/** The templates of a module, and everything that its texts name. */
import { finish, type Steps } from '../../kernel/steps.js';
import { referencesIn } from '../expression.js';
import type { Templates } from '../fill.js';
import type { Reference } from '../parse-expression.js';
import type { ModuleDefinition } from '../schema.js';
import { parseTemplate } from './parse-template.js';
import { type CompiledTemplate, referencesOfParts } from './template.js';

/** Compiles the templates of a module in steps of one. */
export function* templateSteps({ templates }: ModuleDefinition): Steps<Templates> {
  const plain = new Map<string, string>();
  const rendered = new Map<string, CompiledTemplate>();
  for (const { id, content, engine } of templates ?? []) {
    if (engine === undefined) plain.set(id, content);
    else {
      rendered.set(id, { id, text: content, parts: parseTemplate(content).parts, others: rendered });
      yield;
    }
  }
  return { plain, rendered };
}

/** Returns the references of all expressions in the texts of a module, also of those in templates with an engine. */
export const referencesOfTexts = (
  definition: ModuleDefinition,
  { rendered }: Templates = finish(templateSteps(definition)),
): readonly Reference[] => [
  ...referencesIn(definition),
  ...[...rendered.values()].flatMap(({ parts }) => referencesOfParts(parts)),
];

/** Returns the names of all secrets in the texts of a module. One agent may need fewer. */
export const secretsOfTexts = (definition: ModuleDefinition): ReadonlySet<string> =>
  new Set(referencesOfTexts(definition).flatMap(({ from, name }) => (from === 'secrets' ? [name] : [])));
