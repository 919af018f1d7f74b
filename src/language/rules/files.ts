/** Rules on files beside the module that resources take as their content. */
import { hasExpression } from '../expression.js';
import { isTemplatePath, type UsedFiles } from '../files-beside.js';
import { type Named, named } from '../located.js';
import type { RuleContext } from '../outline.js';
import { quoted } from '../printable.js';

/** Checks that every `source` is the path of a file that is there. */
export function checkFiles({ outline, mistakes }: RuleContext, files: UsedFiles): void {
  for (const { kind, node, path } of outline.entries.flatMap(({ options }) => options)) {
    const source = kind.sourced ? named(node.members.get('source')?.value, `${path}/source`) : null;
    if (source === null) continue;
    const problem = problemOf(source, files);
    if (problem !== null) mistakes.error('file_unusable', problem, source.path, source);
    const digest = node.members.get('sha256');
    if (digest !== undefined) {
      const message = 'the SHA-256 of a file beside the module is not written; orch takes that of the file';
      mistakes.error('invalid_value', message, `${path}/sha256`, digest.key);
    }
  }
}

function problemOf({ text }: Named, files: UsedFiles): string | null {
  if (hasExpression(text)) {
    return '"source" cannot hold an expression, because its file travels with the module; write an entry for each file';
  }
  if (isTemplatePath(text)) return `${quoted(text)} is a template; write template: ${text} in place of source`;
  const file = files.find(text);
  return typeof file === 'string' ? `the file ${quoted(text)} ${file}` : null;
}
