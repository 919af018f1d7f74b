/** The files and directories that come with a `directory-unix` from a directory beside its module. */
import { escapePointer } from '../kernel/validator.js';
import type { CompiledOption } from './compile-module.js';
import { bodiesFor } from './compiled-tree.js';
import type { KnownKind } from './kind-set.js';
import type { Realized } from './realize.js';

/**
 * Returns a resource and, for a directory with a source, what comes with it: a resource for each file and directory, in the order in
 * which they can be made. They are resources like all others, so plans, conflicts, removals and restores need no rules of their own.
 */
export function withTree(one: Realized): readonly Realized[] {
  const { tree } = one.option;
  if (tree === null) return [one];
  const { own, entries } = bodiesFor(tree, one.body);
  const options = { directory: optionOf(one.option, one.option.kind), file: optionOf(one.option, tree.fileKind) };
  const taints = { directory: taintOf(one, 'mode'), file: taintOf(one, 'file_mode') };
  const inside = entries.map(({ kind, body }): Realized => {
    const [option, taint] = [options[kind], taints[kind]];
    // No id: it would be that of many, and a file that goes is one that the module no longer declares.
    return { ...one, id: null, name: null, option, body, taint, identity: option.kind.kind.identity(body, null) };
  });
  return [{ ...one, body: own }, ...inside];
}

const optionOf = (option: CompiledOption, kind: KnownKind): CompiledOption => ({ ...option, kind, triggers: [] });

function taintOf({ taint }: Realized, mode: string): Realized['taint'] {
  if (taint.size === 0) return taint;
  const names = [
    ['owner', 'owner'],
    ['group', 'group'],
    [mode, 'mode'],
  ] as const;
  return new Map(
    names.flatMap(([from, to]) => {
      const spans = taint.get(`/${escapePointer(from)}`);
      return spans === undefined ? [] : [[`/${to}`, spans] as const];
    }),
  );
}
