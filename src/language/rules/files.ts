/** Rules on files and directories beside the module that resources take as their content. */
import { fileUnix } from '../../resources/file-unix.js';
import { hasExpression } from '../expression.js';
import { isTemplatePath, type UsedFiles } from '../files-beside.js';
import type { OutlineOption } from '../kind-choice.js';
import type { KindSet, KnownKind } from '../kind-set.js';
import { type Named, named } from '../located.js';
import type { RuleContext } from '../outline.js';
import { quoted } from '../printable.js';
import { listPath, MAX_TREE_BYTES, readList } from '../trees.js';

/** Checks that every `source` is the path of a file, or of a directory, that is there and can be sent. */
export function checkFiles({ outline, mistakes }: RuleContext, files: UsedFiles): void {
  for (const { kind, node, path } of outline.entries.flatMap(({ options }) => options)) {
    const { sourced, treed } = kind;
    const source = sourced || treed ? named(node.members.get('source')?.value, `${path}/source`) : null;
    if (source === null) continue;
    const problem = treed ? problemOfTree(source, files) : problemOf(source, files);
    if (problem !== null) mistakes.error('file_unusable', problem, source.path, source);
    const digest = sourced ? node.members.get('sha256') : undefined;
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

function problemOfTree({ text }: Named, files: UsedFiles): string | null {
  if (hasExpression(text)) {
    return '"source" cannot hold an expression, because its files travel with the module; write a variant for each directory';
  }
  if (text.endsWith('/')) return `the directory ${quoted(text)} ends in "/"; leave that out`;
  const list = files.find(listPath(text));
  if (typeof list === 'string') return `the directory ${quoted(text)} ${list}`;
  const entries = readList(list.text ?? '');
  if (entries === null) return `the list of the directory ${quoted(text)} is damaged; send the module again`;
  let size = 0;
  for (const { type, path } of entries) {
    const at = `${text}/${path}`;
    if (type === 'directory') continue;
    if (isTemplatePath(at)) {
      return `the file ${quoted(at)} is a template, and the files of a directory are sent as they are; keep it beside the directory, and write a file-unix with template: for it`;
    }
    const file = files.find(at);
    if (typeof file === 'string') return `the file ${quoted(at)} ${file}`;
    size += file.size;
  }
  if (size <= MAX_TREE_BYTES) return null;
  return `the files in the directory ${quoted(text)} have ${size} bytes together, and at most ${MAX_TREE_BYTES} are sent; pack them, and give the machine an address for them`;
}

/** Returns a function that lists what comes with a resource from a directory beside the module; nothing for a wrong one. */
export const insideOf =
  (kinds: KindSet, files: UsedFiles) =>
  ({ kind, node }: OutlineOption): readonly { readonly kind: KnownKind; readonly path: string }[] => {
    const source = kind.treed ? named(node.members.get('source')?.value, '') : null;
    const fileKind = kinds.get(fileUnix.kind);
    if (source === null || fileKind === undefined || problemOfTree(source, files) !== null) return [];
    const list = files.find(listPath(source.text));
    const entries = typeof list === 'string' ? null : readList(list.text ?? '');
    return (entries ?? []).map(({ type, path }) => ({ kind: type === 'directory' ? kind : fileKind, path }));
  };
