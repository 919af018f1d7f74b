/** Scripts whose first line names another program than the one that runs them. */
import { type LocatedMap, member, scalarAt } from '../located.js';
import type { RuleContext } from '../outline.js';
import { quoted } from '../printable.js';

/** Warns, because the line is a comment for every program of scripts. */
export function checkShebangs({ outline, mistakes }: RuleContext): void {
  const scripts = [
    ...outline.entries.flatMap(({ options }) =>
      options.filter(({ kind }) => kind.kind.kind === 'script').map(({ node, path }) => ({ node, path })),
    ),
    ...outline.checks.flatMap(({ node, path }) => {
      const script = member(node, 'script');
      return script?.type === 'map' ? [{ node: script, path: `${path}/script` }] : [];
    }),
  ];
  for (const script of scripts) checkScript(script, mistakes);
}

function checkScript(
  { node, path }: { readonly node: LocatedMap; readonly path: string },
  mistakes: RuleContext['mistakes'],
): void {
  const program = scalarAt(node, '/program')?.value;
  if (typeof program !== 'string') return;
  for (const part of ['apply', 'check', 'undo', 'run']) {
    const text = scalarAt(node, `/${part}`);
    const named = typeof text?.value === 'string' ? interpreterOf(text.value) : null;
    if (text === undefined || named === null || named === program || ALIKE[program]?.includes(named)) continue;
    const message = `the first line names ${quoted(named)}, but ${program} runs this text and ignores the line; put the program into a file of its own, and run that`;
    mistakes.warning('shebang_ignored', message, `${path}/${part}`, text);
  }
}

/** Interpreters whose scripts a program runs as well. */
const ALIKE: Readonly<Record<string, readonly string[]>> = {
  sh: ['dash', 'ash'],
  bash: ['sh', 'dash', 'ash'],
  python3: ['python'],
};

/** Returns the name of the program in a first line such as `#!/usr/bin/env python3`; null without one. */
function interpreterOf(text: string): string | null {
  const [line = ''] = text.slice(0, 256).split('\n', 1);
  if (!line.startsWith('#!')) return null;
  const words = line
    .slice(2)
    .trim()
    .split(/\s+/)
    .map((word) => word.slice(word.lastIndexOf('/') + 1));
  const [first = '', ...rest] = words;
  return (first === 'env' ? rest.find((word) => !word.startsWith('-') && !word.includes('=')) : first) || null;
}
