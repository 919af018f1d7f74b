/** Shell blocks of a Markdown page, and the directives that stand before them in HTML comments. */

export interface ShellBlock {
  /** Line of the page that the block begins on. */
  readonly line: number;
  readonly text: string;
  /** True for a session, in which commands follow `$ ` and their output follows them. */
  readonly isConsole: boolean;
  /** Reason why no test runs the block; null if a test must run it. */
  readonly notRun: string | null;
  /** Place that the block runs in, from `<!-- run: PLACE -->` [default: `host`]. */
  readonly place: string;
}

const FENCE = /^( *)```(\w*)\n([\s\S]*?)^\1```$/gm;
const DIRECTIVE = /<!-- (not run|run): ([^>]+?) -->\s*$/;

/** Returns the blocks marked as `sh` or `console`, or not marked at all. Throws for a comment that is no directive. */
export function shellBlocksOf(markdown: string): readonly ShellBlock[] {
  return [...markdown.matchAll(FENCE)]
    .filter(([, , language]) => ['', 'sh', 'console'].includes(language ?? ''))
    .map((match) => {
      const before = markdown.slice(0, match.index);
      const line = before.split('\n').length;
      const [, kind, value = ''] = DIRECTIVE.exec(before) ?? [];
      if (kind === undefined && /-->\s*$/.test(before)) throw new Error(`line ${line}: the comment is no directive`);
      const indent = match[1] ?? '';
      const text = (match[3] ?? '').replaceAll(new RegExp(`^${indent}`, 'gm'), '');
      const isConsole = match[2] === 'console';
      return {
        line,
        text,
        isConsole,
        notRun: kind === 'not run' ? value : null,
        place: kind === 'run' ? value : 'host',
      };
    });
}

/** A command of a block, and the output that a `console` block shows below it. */
export interface ShownCommand {
  readonly command: string;
  /** Lines in which `…` stands for any text. They may have others between them. */
  readonly output: readonly string[];
}

/** Returns the commands of a block in their order, with continued lines joined and without comments. */
export function commandsOf({ text, isConsole }: ShellBlock): readonly ShownCommand[] {
  const commands: { command: string; output: string[] }[] = [];
  for (const line of text.replaceAll(/\\\n/g, '').split('\n')) {
    const command =
      isConsole && !line.startsWith('$ ')
        ? null
        : line
            .replace(/^\$ /, '')
            .replace(/(^|\s+)# .*$/, '')
            .trim();
    if (command === null) commands.at(-1)?.output.push(line.trim());
    else if (command !== '') commands.push({ command, output: [] });
  }
  return commands;
}

/** Returns the first line that an output lacks in its place, or undefined if the output is as a page shows it. */
export function missingLine(shown: readonly string[], output: string): string | undefined {
  let rest = output.split('\n').map((line) => line.trim().replaceAll(/\s+/g, ' '));
  return shown.find((line) => {
    const pattern = line
      .replaceAll(/\s+/g, ' ')
      .split('…')
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    const found = rest.findIndex((one) => new RegExp(`^${pattern.join('.*')}$`).test(one));
    if (found < 0) return true;
    rest = rest.slice(found + 1);
    return false;
  });
}
