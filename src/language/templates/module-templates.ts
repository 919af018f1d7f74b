/** The templates of a module, and everything that its texts name. */
import { mapped, type Steps } from '../../kernel/steps.js';
import { referencesIn } from '../expression.js';
import type { Templates } from '../fill.js';
import type { Reference } from '../parse-expression.js';
import type { ModuleDefinition } from '../schema.js';
import { parseSteps } from './parse-template.js';
import { type CompiledTemplate, referencesOfParts } from './template.js';

/** Compiles the templates of a module. Steps over some tags of one at a time. */
export function* templateSteps({ templates }: ModuleDefinition): Steps<Templates> {
  const plain = new Map<string, string>();
  const rendered = new Map<string, CompiledTemplate>();
  for (const { id, content, engine } of templates ?? []) {
    if (engine === undefined) plain.set(id, content);
    else {
      rendered.set(id, { id, text: content, parts: (yield* parseSteps(content)).parts, others: rendered });
      yield;
    }
  }
  return { plain, rendered };
}

/**
 * Returns the references of all expressions in the texts of a module, also of those in templates with an engine. Steps over a
 * resource and a template at a time.
 */
export function* referenceSteps(
  { resources, ...rest }: ModuleDefinition,
  { rendered }: Templates,
): Steps<readonly Reference[]> {
  const inTexts = yield* mapped([rest, ...(resources ?? [])], referencesIn);
  const inTemplates = yield* mapped([...rendered.values()], ({ parts }) => referencesOfParts(parts));
  return [...inTexts, ...inTemplates].flat();
}

/** Returns the names of all secrets in the texts of a module, in steps as `referenceSteps`. One agent may need fewer. */
export function* secretSteps(definition: ModuleDefinition): Steps<ReadonlySet<string>> {
  const references = yield* referenceSteps(definition, yield* templateSteps(definition));
  return new Set(references.flatMap(({ from, name }) => (from === 'secrets' ? [name] : [])));
}
