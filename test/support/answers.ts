/** The answers of docs/how-do-i.md: questions with the modules that answer them. */
import { readFileSync } from 'node:fs';

export interface Answer {
  readonly question: string;
  /** Texts of whole modules, without value sets. */
  readonly modules: readonly string[];
}

const page = readFileSync(new URL('../../docs/how-do-i.md', import.meta.url), 'utf8');

/** Every question of the page in its order. A block of entries becomes a module that has the number of the question as its name. */
export const answers: readonly Answer[] = page
  .split(/^### /m)
  .slice(1)
  .map((text, at) => ({
    question: text.slice(0, text.indexOf('\n')),
    modules: [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) => {
      if (/^values:/m.test(block)) return [];
      return block.startsWith('- ') ? `name: answer-${at + 1}\nsupports: [{}]\nresources:\n${block}` : block;
    }),
  }));

/** The name of a module, by its first line of that kind. */
export const nameOf = (module: string): string => /^name: (\S+)$/m.exec(module)?.[1] ?? '';
